// SPDX-License-Identifier: Apache-2.0
// A device that fails, at any of its calls: what the host then does, in place too; what is lost and
// what is not, and that the codes say so.
#include <gtest/gtest.h>

#include <daelstrom/plan.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/work.hpp"
#include "support/figures.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kChunk = 64 << 10;

Engine automatic(HostDevice& device) {
    pipeline::Backends hosts;
    hosts.push_back(*core::open_backend("openssl"));
    return pipeline::make_auto_engine(
        std::move(hosts),
        [&device] {
            pipeline::Backends backends;
            backends.push_back(std::make_unique<HostDeviceBackend>(device));
            return backends;
        },
        {.backend = "auto", .threads = 2}, figures());
}

Result<Ran> run(Engine& engine, const KeyRing& ring, const Cipher& cipher, Work& work) {
    DAEL_LET(set, engine.keys(ring.keys));
    return engine.run(cipher, set, work.messages, work.codes);
}

const Cipher kXts{Mode::xts, Direction::encrypt, 16, 0, 512};

TEST(Failover, InPlaceTheHostDoesWhatTheDeviceHasNoRoomFor) {
    Random random(1);
    const KeyRing ring(random, 1);
    for (const Cipher& cipher : {gcm::sealing(), gcm::opening(), Cipher{Mode::ctr}}) {
        HostDevice device({.memory = 4096});
        {
            Engine engine = automatic(device);
            Work work(random, ring, {cipher, {2 << 20}});
            for (int call = 0; call < 2; ++call, work.again()) {
                const auto ran = run(engine, ring, cipher, work);
                ASSERT_TRUE(ran) << ran.error().message;
                EXPECT_EQ(ran->backend, "openssl");
                EXPECT_FALSE(ran->replaced);  // it has not failed
                EXPECT_EQ(work.fault(Code::ok), "");
            }
            EXPECT_GT(device.calls(), 0);
        }
        expect_clean(device);
    }
}

TEST(Failover, InPlaceTheHostDoesWhatTheDeviceFailsAtFromTheStart) {
    Random random(2);
    const KeyRing ring(random, 1);
    for (const char* call : {"create_stream", "allocate", "allocate_pinned", "tables"}) {
        HostDevice device({.fail_at = 1, .fail_call = call});
        {
            Engine engine = automatic(device);
            Work work(random, ring, {gcm::sealing(), {2 << 20}});
            const auto ran = run(engine, ring, gcm::sealing(), work);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_TRUE(ran->replaced);
            EXPECT_EQ(device.failed_call(), call);
            EXPECT_EQ(work.fault(Code::ok), "");
        }
        expect_clean(device);
    }
}

// A message without data, whose pointers are both null, is not in place, and nothing of the others.
TEST(Failover, BesideAMessageOfAdditionalDataAlone) {
    Random random(3);
    const KeyRing ring(random, 1);
    HostDevice device({.fail_at = 1, .fail_call = "copy_in"});
    {
        Engine engine = automatic(device);
        Work work(random, ring, {gcm::sealing(), std::vector<std::size_t>(16, 256 << 10), false});
        Bytes aad(20, 7), tag(16);
        work.messages.push_back({nullptr, nullptr, 0, aad.data(), aad.size(), tag.data()});
        work.codes.push_back(Code::internal);
        const auto ran = run(engine, ring, gcm::sealing(), work);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_TRUE(ran->replaced);
        EXPECT_EQ(work.codes.back(), Code::ok);
        EXPECT_EQ(tag, oracle(ring.raw[0], gcm::sealing(), work.messages.back()).tag);
        work.messages.pop_back();
        EXPECT_EQ(work.fault(Code::ok), "");
    }
    expect_clean(device);
}

// What a call that fails tells, of an engine that has no host to turn to.
TEST(Failover, CodesTellWhatADeviceByNameHasLeft) {
    Random random(4);
    const KeyRing ring(random, 1);
    HostDevice device({.fail_at = 2, .fail_call = "run batch"});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                              {.threads = 2, .chunk = kChunk});
        Work work(random, ring, {gcm::sealing(), std::vector<std::size_t>(6, 1 << 20), true});
        const auto ran = run(engine, ring, gcm::sealing(), work);
        ASSERT_EQ(ran.code(), Code::device);
        EXPECT_EQ(work.fault(ran.code()), "");
        EXPECT_EQ(work.codes.back(), Code::device);  // it never came to that
        EXPECT_EQ(work.lost(), 0u);                  // through the staging buffers
        work.again();
        ASSERT_TRUE(run(engine, ring, gcm::sealing(), work));
        EXPECT_EQ(work.fault(Code::ok), "");
    }
    expect_clean(device);
}

// Any call of any job fails, once or a few times in a row. Ordinary memory is never lost, and
// neither is page-locked memory that is not worked in place.
TEST(Failover, WalkOverJobsAndTheCallsThatFail) {
    const Cipher ciphers[] = {{Mode::ctr},
                              {Mode::ecb},
                              {Mode::ecb, Direction::decrypt},
                              kXts,
                              {Mode::cbc, Direction::decrypt},
                              {Mode::cbc},
                              {Mode::cfb, Direction::decrypt},
                              {Mode::ofb},
                              {Mode::gcm_ctr},
                              gcm::sealing(),
                              gcm::opening()};
    std::size_t lost = 0, replaced = 0;
    for (Walks walks("jobs on a failing device", thorough(60u, 20u)); walks.next();) {
        SCOPED_TRACE(walks.text());
        Random random(walks.seed());
        const Cipher cipher = ciphers[random.below(std::size(ciphers))];
        const KeyRing ring(random, 1 + random.below(3), cipher.mode);
        HostDevice device({.reads_lists = random.below(4) != 0,
                           .reach = random.below(4) == 0 ? std::size_t{4} << 20 : 0});
        const bool pinned = random.below(2) != 0, in_place = random.below(4) != 0;
        const bool by_name = random.below(3) == 0;
        {
            std::vector<std::size_t> sizes{random.below(20 * kChunk)};
            for (std::size_t more = random.below(2) * random.below(8); more != 0; --more)
                sizes.push_back(random.below(random.below(3) == 0 ? 4 * kChunk : 5000));
            sizes.push_back(by_name ? 100 : 8 * kChunk);
            for (auto& size : sizes) size = fitting(cipher, size);
            Work work(random, ring, {cipher, sizes, in_place, pinned ? &device : nullptr});
            for (int round = 0; round < 4; ++round) {
                walks.step();
                Engine engine =
                    by_name ? pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                                    {.threads = 2, .chunk = kChunk})
                            : automatic(device);
                work.again();
                const bool throws = random.below(4) == 0;
                device.throw_instead(throws);
                device.fail(1 + static_cast<int>(random.below(round == 0 ? 20 : 100)), {},
                            random.below(4) == 0 ? 2 : 1);
                const auto ran = run(engine, ring, cipher, work);
                const std::string failed = device.failed_call() + (throws ? ", no memory" : "");
                device.fail(0);
                ASSERT_EQ(work.fault(ran.code()), "")
                    << work.messages.size() << " messages of " << name(cipher.mode)
                    << (in_place ? " in place" : " apart") << (pinned ? ", page-locked" : "")
                    << (by_name ? ", by name" : "") << "; failed: " << failed << ", "
                    << (ran ? "" : ran.error().message);
                if (!by_name && (!pinned || !in_place)) {
                    ASSERT_TRUE(ran)
                        << name(cipher.mode) << " " << failed << ": " << ran.error().message;
                }
                lost += ran ? 0 : work.lost();
                if (!ran && in_place && pinned && !by_name) {  // and for no other reason
                    EXPECT_NE(ran.error().message.find("is lost"), std::string::npos);
                }
                replaced += ran && ran->replaced;
                // Whoever failed once is of use again, but to an engine that remembers it.
                work.again();
                const auto next = run(engine, ring, cipher, work);
                ASSERT_TRUE(next) << failed << ": " << next.error().message;
                ASSERT_EQ(work.fault(Code::ok), "") << failed;
            }
        }
        for (const auto& violation : device.violations()) ADD_FAILURE() << violation;
    }
    std::printf("%zu calls replaced, %zu messages lost\n", replaced, lost);
    EXPECT_GT(replaced, 10u);
}

}  // namespace
