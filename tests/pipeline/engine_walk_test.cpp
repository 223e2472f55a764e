// SPDX-License-Identifier: Apache-2.0
// A random walk over engines, sets of keys, batches and pieces on a device made of threads, any of
// whose calls may fail: what comes out was made under the key that the set has and the start that
// the message has, no pair of them twice; what fails says what holds.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include <daelstrom/gcm.hpp>
#include <daelstrom/plan.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/work.hpp"
#include "support/child.hpp"
#include "support/figures.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kRoom = 2048;  // of device memory for a message: data, and its tag behind
constexpr std::size_t kTagAt = 1536;
constexpr std::size_t kMax = 4;  // messages of a batch
#if defined(__SANITIZE_THREAD__)
constexpr bool kChildrenOfThreads = false;  // that have threads themselves: it knows none
#else
constexpr bool kChildrenOfThreads = true;
#endif

// A set, and the keys that it must have.
struct Keyed {
    std::vector<Bytes> raw;
    std::optional<KeySet> set;
    bool lost = false;
};

struct Made {
    std::optional<Batch> batch;
    Cipher cipher;
    std::size_t of = 0;  // which set
    std::vector<Message> list;
    std::vector<Bytes> in;  // what lies in the device's memory before a launch, tags behind
    std::uint8_t* memory = nullptr;
    bool launched = false;
    DeviceNonces* nonces = nullptr;
    Message* there = nullptr;  // the list, where it lies in the device's memory
};

class Walker {
  public:
    explicit Walker(std::uint64_t seed) : random_(seed) {
        pipeline::Backends hosts;
        hosts.push_back(*core::open_backend("openssl"));
        engine_.emplace(pipeline::make_auto_engine(
            std::move(hosts),
            [this] {
                pipeline::Backends backends;
                backends.push_back(std::make_unique<HostDeviceBackend>(device_));
                return backends;
            },
            {.backend = "auto", .threads = 2}, figures()));
        for (Keyed& keyed : sets_) make_set(keyed);
    }
    ~Walker() {
        device_.fail(0);
        (void)device_.wait(Stream{});
        while (!batches_.empty()) drop(0);
        for (Keyed& keyed : sets_) keyed.set.reset();
        engine_.reset();
        expect_clean(device_);
    }

    void step() {
        const bool fails = random_.below(3) == 0;
        if (fails)
            device_.fail(1 + static_cast<int>(random_.below(random_.below(2) == 0 ? 4 : 30)));
        switch (random_.below(12)) {
            case 0:
            case 1:
                return host_list(sets_[random_.below(2)], random_);
            case 2:
                return prepare();
            case 3:
                return prepare_counting();
            case 4:
            case 5:
            case 6:
                return launch();
            case 7:
                return launch_list();
            case 8:
                return replace();
            case 9:
                return pieces();
            case 10:
                return random_.below(3) == 0 && kChildrenOfThreads ? in_a_child() : at_once();
            default:
                if (random_.below(2) == 0)
                    engine_->trim();
                else if (!batches_.empty())
                    drop(random_.below(batches_.size()));
                settle();
        }
    }

  private:
    void settle() {
        device_.fail(0);
        EXPECT_TRUE(device_.wait(Stream{}));
    }
    Bytes any_key() { return random_.bytes(kKeySizes[random_.below(3)]); }
    void make_set(Keyed& keyed) {
        keyed = {};
        for (int i = 0; i < 3; ++i) keyed.raw.push_back(any_key());
        keyed.set.emplace(*engine_->keys(KeyRing(keyed.raw).keys));
    }
    // A key and a start that something left under: never again.
    void left_under(const Bytes& key, const Block& start) {
        ASSERT_TRUE(used_.emplace(key, start).second) << "a start served twice under one key";
    }

    // Host memory, by the device or the host.
    void host_list(Keyed& keyed, Random& random) {
        const Cipher ciphers[] = {
            gcm::sealing(), gcm::opening(), {Mode::ctr}, {Mode::cbc, Direction::decrypt}};
        const Cipher cipher = ciphers[random.below(4)];
        const KeyRing ring(keyed.raw);
        std::vector<std::size_t> sizes{fitting(cipher, random.below(2) == 0 ? 300 << 10 : 1000)};
        for (std::size_t more = random.below(6); more != 0; --more)
            sizes.push_back(fitting(cipher, random.below(80 << 10)));
        Work work(random, ring, {cipher, sizes, random.below(4) != 0});
        const auto ran = engine_->run(cipher, *keyed.set, work.messages, work.codes);
        EXPECT_EQ(work.fault(ran.code()), "");
        EXPECT_EQ(static_cast<bool>(ran), !keyed.lost) << (ran ? "" : ran.error().message);
        if (&random == &random_) settle();
    }

    // Lists from the host, in the device's memory.
    void fill(Made& made) {
        for (std::size_t i = 0; i < made.list.size(); ++i)
            std::ranges::copy(made.in[i], made.memory + i * kRoom);
    }
    Made make(const Cipher& cipher, std::size_t of) {
        Made made;
        made.cipher = cipher;
        made.of = of;
        auto memory = device_.allocate(kMax * kRoom + kMax * sizeof(Message) + 64);
        if (!memory) return made;
        made.memory = static_cast<std::uint8_t*>(*memory);
        const std::size_t count = 1 + random_.below(kMax);
        for (std::size_t i = 0; i < count; ++i) {
            std::uint8_t* const at = made.memory + i * kRoom;
            Message m{at, at, 16 * random_.below(90)};
            if (authenticates(cipher.mode)) m.tag = at + kTagAt;
            if (cipher.mode != Mode::ecb) m.start = gcm::start(*nonces_.next());
            m.key = static_cast<std::uint32_t>(random_.below(3));
            made.list.push_back(m);
            made.in.push_back(random_.bytes(kRoom));
        }
        fill(made);
        return made;
    }
    void give_back(Made& made) {
        made.batch.reset();
        if (!made.memory) return;
        std::memset(made.memory, 0, kMax * kRoom + kMax * sizeof(Message) + 64);
        device_.release(made.memory);
    }
    void drop(std::size_t index) {
        (void)device_.wait(Stream{});
        give_back(batches_[index]);
        batches_.erase(batches_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    void keep(Made made, Result<Batch> batch) {
        settle();
        if (!batch) {
            const bool refused = sets_[made.of].lost;
            EXPECT_TRUE(batch.code() == Code::device || refused) << batch.error().message;
            return give_back(made);
        }
        EXPECT_FALSE(sets_[made.of].lost);
        made.batch.emplace(std::move(*batch));
        batches_.push_back(std::move(made));
        if (batches_.size() > 5) drop(0);
    }
    void prepare() {
        const Cipher ciphers[] = {gcm::sealing(), {Mode::ctr}, {Mode::ecb}, gcm::opening()};
        Made made = make(ciphers[random_.below(4)], random_.below(2));
        if (!made.memory) return settle();
        if (!modes::encrypts(made.cipher)) {  // some are forged
            const KeyRing ring(sets_[made.of].raw);
            for (std::size_t i = 0; i < made.list.size(); ++i)
                if (random_.below(3) != 0)
                    std::ranges::copy(
                        oracle(ring.raw[made.list[i].key], made.cipher, made.list[i]).tag,
                        made.in[i].begin() + kTagAt);
            fill(made);
        }
        const Messages messages{made.list.data(), static_cast<std::uint32_t>(made.list.size())};
        auto batch = engine_->prepare(made.cipher, *sets_[made.of].set, messages);
        keep(std::move(made), std::move(batch));
    }
    // A list in the device's memory, whose nonces count there.
    void prepare_counting() {
        Made made = make(gcm::sealing(), random_.below(2));
        if (!made.memory) return settle();
        std::uint8_t* const end = made.memory + kMax * kRoom;
        made.there = reinterpret_cast<Message*>(end);
        std::ranges::copy(made.list, made.there);
        made.nonces = reinterpret_cast<DeviceNonces*>(end + kMax * sizeof(Message));
        *made.nonces = {};
        made.nonces->fixed[0] = ++counting_;
        Messages messages{made.there, static_cast<std::uint32_t>(made.list.size()), Place::device};
        messages.nonces = made.nonces;
        auto batch = engine_->prepare(made.cipher, *sets_[made.of].set, messages);
        keep(std::move(made), std::move(batch));
    }
    void launch() {
        if (batches_.empty()) return prepare();
        Made& made = batches_[random_.below(batches_.size())];
        Keyed& keyed = sets_[made.of];
        fill(made);
        const bool once =
            modes::encrypts(made.cipher) && made.cipher.mode != Mode::ecb && !made.nonces;
        const std::uint64_t before = made.nonces ? made.nonces->next : 0;
        const auto ran = engine_->launch(*made.batch, Stream{});
        settle();
        if (keyed.lost || (once && made.launched)) {
            EXPECT_EQ(ran.code(), keyed.lost ? Code::device : Code::limit);
            for (std::size_t i = 0; i < made.list.size(); ++i)
                EXPECT_EQ(difference(made.in[i], {made.memory + i * kRoom, kRoom}), "");
            return;
        }
        made.launched = true;
        if (!ran) return;
        if (made.nonces) {
            EXPECT_EQ(made.nonces->next, before + made.list.size());
            std::copy_n(made.there, made.list.size(), made.list.begin());
        }
        const auto codes = made.batch->results(Stream{});
        ASSERT_TRUE(codes);
        check(made, keyed, *codes);
    }
    void launch_list() {
        const std::size_t of = random_.below(2);
        Keyed& keyed = sets_[of];
        Made made = make(gcm::sealing(), of);
        if (!made.memory) return settle();
        const auto ran = engine_->launch(made.cipher, *keyed.set, made.list, Stream{});
        settle();
        EXPECT_TRUE(!ran || !keyed.lost);
        if (ran) check(made, keyed, std::vector(made.list.size(), Code::ok));
        give_back(made);
    }
    // What the device has made, against OpenSSL under the keys that the set has now.
    void check(const Made& made, const Keyed& keyed, const std::vector<Code>& codes) {
        for (std::size_t i = 0; i < made.list.size(); ++i) {
            Message m = made.list[i];
            Bytes in = made.in[i];
            m.in = m.out = in.data();
            const Bytes& key = keyed.raw[m.key];
            const Answer answer = oracle(key, made.cipher, m);
            const std::span got(made.memory + i * kRoom, kRoom);
            if (modes::encrypts(made.cipher) && made.cipher.mode != Mode::ecb)
                left_under(key, m.start);
            const bool right =
                modes::encrypts(made.cipher) ||
                std::equal(answer.tag.begin(), answer.tag.end(), in.begin() + kTagAt);
            EXPECT_EQ(codes[i], right ? Code::ok : Code::authentication);
            if (!right) {
                EXPECT_EQ(difference(in, got), "") << "a forged message was written";
                continue;
            }
            EXPECT_EQ(difference(answer.out, got.first(m.size)), "") << name(made.cipher.mode);
            if (m.tag && modes::encrypts(made.cipher)) {
                EXPECT_EQ(difference(answer.tag, got.subspan(kTagAt, 16)), "");
            }
        }
    }

    void replace() {
        Keyed& keyed = sets_[random_.below(2)];
        if (keyed.lost || random_.below(8) == 0) {  // another one; batches of the old one stay
            settle();
            for (std::size_t i = batches_.size(); i-- != 0;)
                if (&sets_[batches_[i].of] == &keyed) drop(i);
            return make_set(keyed);
        }
        const auto index = static_cast<std::uint32_t>(random_.below(3));
        const Bytes raw = any_key();
        const auto replaced = keyed.set->replace(index, *Key::import(raw), Stream{});
        const auto says = [&](const char* words) {
            return replaced.error().message.find(words) != std::string::npos;
        };
        if (replaced)
            keyed.raw[index] = raw;
        else
            EXPECT_NE(keyed.lost = says("used up"), says("as it was"));
        settle();
    }

    // In host memory, by the host; with calls that are refused in between.
    void pieces() {
        const Cipher ciphers[] = {gcm::sealing(), {Mode::ctr}, {Mode::cbc}, {Mode::cfb}};
        const Cipher cipher = ciphers[random_.below(4)];
        const Bytes raw = any_key(), in = random_.bytes(16 * random_.below(60));
        Bytes out(in.size() + 16);
        Message whole{in.data(), out.data(), in.size()};
        whole.start = gcm::start(*nonces_.next());
        const Answer answer = oracle(raw, cipher, whole);
        auto pieces = engine_->begin(cipher, *Key::import(raw), whole.start);
        settle();
        ASSERT_TRUE(pieces) << pieces.error().message;
        std::size_t at = 0, written = 0;
        while (at < in.size()) {
            const std::size_t size = std::min(in.size() - at, random_.below(100));
            if (random_.below(3) == 0) {
                std::uint8_t both[64] = {};
                EXPECT_EQ(pieces->update(HostIn(both, 33), HostOut(both + 1, 63)).code(),
                          Code::overlap);
                EXPECT_EQ(pieces->update(HostIn(both, 64), HostOut(both, 3)).code(),
                          Code::invalid_argument);
            }
            const auto done =
                pieces->update(HostIn(in).subspan(at, size), HostOut(out).subspan(written));
            ASSERT_TRUE(done) << done.error().message;
            written += *done;
            at += size;
        }
        Bytes tag(authenticates(cipher.mode) ? 16 : 0);
        ASSERT_TRUE(pieces->finish(tag));
        EXPECT_EQ(difference(answer.out, std::span(out).first(written)), "");
        EXPECT_TRUE(tag.empty() || tag == answer.tag);
        EXPECT_EQ(pieces->update(HostIn(in).first(0), {}).code(), Code::invalid_argument);
    }

    // Two threads: a set each, and one that trims.
    void at_once() {
        Random other(random_.number());
        std::thread beside([&] {
            host_list(sets_[1], other);
            engine_->trim();
        });
        Random mine(random_.number());
        host_list(sets_[0], mine);
        beside.join();
        settle();
    }

    void in_a_child() {
        settle();
        const Keyed& keyed = sets_[random_.below(2)];
        expect_in_a_child([&] {
            const KeyRing ring(keyed.raw);
            Work work(random_, ring, {gcm::sealing(), {1000, 200 << 10}});
            const auto ran = engine_->run(gcm::sealing(), *keyed.set, work.messages, work.codes);
            return static_cast<bool>(ran) == !keyed.lost && work.fault(ran.code()).empty();
        });
    }

    Random random_;
    HostDevice device_{HostDeviceOptions{}};
    std::optional<Engine> engine_;
    Keyed sets_[2];
    std::vector<Made> batches_;
    NonceCounter nonces_{{}};
    std::set<std::pair<Bytes, Block>> used_;
    std::uint8_t counting_ = 0;
};

TEST(EngineWalk, KeySetsBatchesAndPiecesOnAFailingDevice) {
    for (Walks walks("engines on a failing device", 40); walks.next();) {
        SCOPED_TRACE(walks.text());
        Walker walker(walks.seed());
        for (int i = 0; i < 30 && !testing::Test::HasFailure(); ++i) {
            SCOPED_TRACE(i);
            walker.step();
            walks.step();
        }
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
