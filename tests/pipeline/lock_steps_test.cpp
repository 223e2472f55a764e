// SPDX-License-Identifier: Apache-2.0
// Children that are forked at each lock that the library takes, one by one: they go on with what
// their parent has and with what they make themselves, and say what cannot be; none waits.
#include <gtest/gtest.h>
#include <openssl/err.h>

#include <atomic>
#include <optional>
#include <thread>

#include <daelstrom/ctr.hpp>
#include <daelstrom/esp.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/plan.hpp>
#include <daelstrom/sealed.hpp>
#include <daelstrom/sealed_recipients.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/bytes.hpp"
#include "support/figures.hpp"
#include "support/host_device.hpp"
#include "support/lock_steps.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kSize = 300 << 10;

void expect_right(const LockSteps& steps, int least) {
    EXPECT_GE(steps.locks, least);
    for (const std::string& wrong : steps.wrong) ADD_FAILURE() << wrong;
    testing::Test::RecordProperty("locks", steps.locks);
    testing::Test::RecordProperty("waited", steps.waited);
}

// What any child may do, whatever its parent was at. An empty text, or what was wrong.
class AChild {
  public:
    AChild() : right_(oracle(key_, {Mode::ctr}, message()).out) {}

    std::string encrypts_with(Engine& engine) const {
        auto key = Key::import(key_);
        if (!key) return "a key: " + key.error().message;
        Bytes data(kSize);
        if (const auto ran = ctr::crypt(engine, *key, {}, data, data); !ran)
            return "CTR: " + ran.error().message;
        if (data != right_) return "CTR: other bytes";
        auto set = engine.keys({&*key, 1});
        if (!set) return "a set: " + set.error().message;
        for (int replaced = 0; replaced < 2; ++replaced) {
            Bytes sealed(1000), tag(16);
            const Message m{sealed.data(), sealed.data(), sealed.size(), nullptr, 0, tag.data()};
            Code code = Code::internal;
            if (const auto ran = engine.run(gcm::sealing(), *set, {&m, 1}, {&code, 1}); !ran)
                return "GCM: " + ran.error().message;
            if (const auto done = set->replace(0, *key, {}); !done)
                return "replace: " + done.error().message;
        }
        auto pieces = engine.begin({Mode::ctr}, *key, {});
        if (!pieces) return "pieces: " + pieces.error().message;
        engine.trim();
        return "";
    }
    std::string encrypts_anew() const {
        auto engine = Engine::open({.backend = "openssl", .threads = 2});
        if (!engine) return "an engine: " + engine.error().message;
        std::string wrong = encrypts_with(*engine);
        if (wrong.empty())  // libcrypto sets up what it has of each thread
            std::thread([&] { wrong = encrypts_with(*engine); }).join();
        return wrong;
    }
    std::string seals(Engine& engine) const {
        auto keys = sealed::Keys::from_key(key_, 4096);
        if (!keys) return "keys: " + keys.error().message;
        Bytes sealed(*sealed::sealed_size(*keys, kSize)), plain(kSize);
        if (const auto ran = sealed::seal(engine, *keys, {}, plain, sealed); !ran)
            return "seal: " + ran.error().message;
        if (const auto done = sealed::open(engine, *keys, {}, sealed, plain); !done)
            return "open: " + done.error().message;
        return "";
    }
    std::string makes_envelopes() const {
        std::string identity(sealed::kIdentitySize, ' ');
        if (const auto made = sealed::make_identity(
                {reinterpret_cast<std::uint8_t*>(identity.data()), identity.size()});
            !made)
            return "an identity: " + made.error().message;
        return "";
    }

    const Bytes key_ = Bytes(32, 1);

  private:
    Message message() {
        Message m{zeros_.data(), nullptr, zeros_.size()};
        return m;
    }
    Bytes zeros_ = Bytes(kSize);
    const Bytes right_;
};

// A lock of libcrypto that is the process's, held for an instant where a provider is loaded into a
// context and where texts of errors are looked up.
void take_what_is_libcryptos() {
    (void)ERR_get_next_error_library();
}

// First: what is made once for the process is made amid it.
TEST(LockSteps, OfEnginesKeysSetsPiecesAndSealedData) {
    if (!kLockSteps) GTEST_SKIP() << "sanitizers have locks of their own";
    const AChild child;
    std::optional<Engine> engine;
    const auto work = [&] {
        engine.emplace(*Engine::open({.backend = "openssl", .threads = 2}));
        EXPECT_EQ(child.encrypts_with(*engine), "");
        EXPECT_EQ(child.seals(*engine), "");
        EXPECT_EQ(child.makes_envelopes(), "");
    };
    const auto in_child = [&]() -> std::string {
        std::string wrong = child.encrypts_anew();
        if (wrong.empty() && engine) wrong = child.encrypts_with(*engine);
        if (wrong.empty() && engine) wrong = child.seals(*engine);
        if (wrong.empty()) wrong = child.makes_envelopes();
        engine.reset();
        return wrong;
    };
    expect_right(fork_at_each_lock(work, in_child, "libcrypto", take_what_is_libcryptos), 20);
}

TEST(LockSteps, OfEnginesWithADevice) {
    if (!kLockSteps) GTEST_SKIP() << "sanitizers have locks of their own";
    const AChild child;
    HostDevice device;
    {
        pipeline::Backends hosts;
        hosts.push_back(*core::open_backend("openssl"));
        std::optional<Engine> engine(pipeline::make_auto_engine(
            std::move(hosts),
            [&] {
                pipeline::Backends backends;
                backends.push_back(std::make_unique<HostDeviceBackend>(device));
                return backends;
            },
            {.backend = "auto", .threads = 2}, figures()));
        const auto work = [&] {
            EXPECT_EQ(child.encrypts_with(*engine), "");
            EXPECT_TRUE(device.wait(Stream{}));  // a set's end comes after the work
        };
        const auto in_child = [&]() -> std::string {
            std::string wrong = child.encrypts_with(*engine);
            if (wrong.empty()) wrong = child.encrypts_anew();
            engine.reset();
            return wrong;
        };
        expect_right(fork_at_each_lock(work, in_child), 10);
    }
    expect_clean(device);
}

TEST(LockSteps, OfTablesOfSas) {
    if (!kLockSteps) GTEST_SKIP() << "sanitizers have locks of their own";
    const AChild child;
    Engine engine = *Engine::open({.backend = "openssl", .threads = 1});
    std::optional<SaFiller> filler;
    std::optional<SaTable> table;
    std::optional<esp::Decapsulator> receiver;
    std::atomic<bool> opened{false};
    std::optional<SaId> id;
    SaTableOptions options;
    options.budget = 1 << 20;
    options.plan = SaTableOptions::Plan::ahead;
    std::uint8_t number = 0;
    const auto fresh = [&] { return *Key::import(Bytes(32, ++number)); };
    const auto seal = [](SaTable& with, SaId sa) {
        std::uint8_t bytes[64] = {}, iv[8] = {}, tag[16] = {};
        const SaPacket packet{bytes, bytes, 64, nullptr, 0, iv, tag};
        return with.seal(sa, {&packet, 1}).code();
    };
    const auto work = [&] {
        filler.emplace(*SaFiller::open(engine));
        table.emplace(*SaTable::open(*filler, options));
        receiver.emplace(*table);
        opened = true;
        const SaId sa = *table->add(fresh(), {});
        id = sa;
        EXPECT_EQ(seal(*table, sa), Code::ok);
        EXPECT_TRUE(table->rekey(sa, fresh(), {}));
        EXPECT_EQ(seal(*table, sa), Code::ok);
        (void)table->counters();
        (void)table->status(sa);
        (void)table->explain();
        table->settle();
        EXPECT_TRUE(receiver->add(fresh(), {.spi = 1000}));
        (void)receiver->size();
        EXPECT_TRUE(receiver->remove(1000));
        EXPECT_TRUE(table->remove(sa));
        opened = false;
        id.reset();
        receiver.reset();
        table.reset();
        filler.reset();
    };
    const auto in_child = [&]() -> std::string {
        number = 100;
        if (opened) {
            if (table->add(fresh(), {}).code() != Code::limit) return "add";
            if (id && seal(*table, *id) != Code::limit) return "seal";
            table->settle();
            if (receiver->add(fresh(), {.spi = 1001}).code() != Code::limit) return "a receiver's";
            (void)table->counters();
            if (id) (void)table->status(*id);
            (void)table->explain();
            (void)receiver->size();
            receiver.reset();
            table.reset();
            filler.reset();
        }
        auto own = SaFiller::open(engine);
        if (!own) return "a filler: " + own.error().message;
        auto others = SaTable::open(*own, options);
        if (!others) return "a table: " + others.error().message;
        const auto sa = others->add(fresh(), {});
        if (!sa) return "an SA: " + sa.error().message;
        if (seal(*others, *sa) != Code::ok) return "a packet";
        return child.encrypts_with(engine);
    };
    expect_right(fork_at_each_lock(work, in_child), 4);
}

}  // namespace
