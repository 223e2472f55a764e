// SPDX-License-Identifier: Apache-2.0
// Many messages at once, and many callers at once: each message comes out as if it had been alone.
#include <list>
#include <thread>

#include "support/oracle.hpp"
#include "support/subject.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class XBatch : public SubjectTest {
  protected:
    // One batch of `count` messages with sizes below `limit`, in place and apart, each with its own
    // IV.
    void check_batch(Mode mode, Direction direction, std::size_t count, std::size_t limit,
                     Random& random) {
        if (!subject().supports(mode, direction, count)) return;
        const Bytes key_bytes = random.bytes(8 * (2 + random.below(3)));
        const auto key = Key::import(key_bytes);
        ASSERT_TRUE(key);
        struct Case {
            Bytes in;
            Poisoned source, apart;
            bool in_place;
        };
        std::list<Case> cases;
        std::vector<Message> messages;
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t size = random.below(limit);
            if (whole_blocks_only(mode)) size = size / kBlockSize * kBlockSize;
            const Bytes in = pattern(size, i);
            Case& one =
                cases.emplace_back(Case{in, Poisoned(in, random.below(16)),
                                        Poisoned(size, random.below(16)), random.below(2) == 0});
            messages.push_back(
                {one.source.data(), one.in_place ? one.source.data() : one.apart.data(), size,
                 random.block(), mode == Mode::ctr ? random.below(1000) : std::uint64_t{0}});
        }
        const auto done = subject().run(*key, mode, direction, messages);
        ASSERT_TRUE(done) << done.error().message;
        std::size_t i = 0;
        for (Case& one : cases) {
            const Message& message = messages[i++];
            Poisoned& target = one.in_place ? one.source : one.apart;
            const Bytes want =
                oracle(key_bytes, {mode, direction, message.iv, message.offset}, one.in);
            ASSERT_EQ(difference(want, target.span()), "")
                << name(mode) << " " << name(direction) << ", message " << i << " of " << count;
            ASSERT_TRUE(one.source.intact() && one.apart.intact()) << "message " << i;
        }
    }
};

TEST_P(XBatch, EveryMessageAsIfAlone) {
    Random random(362436069);
    for (const Mode mode : kModes)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt})
            // Around the numbers of lanes that multi-buffer code fills: 4, 8, 16.
            for (const std::size_t count : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33}) {
                check_batch(mode, direction, count, slow() ? 60 : 1500, random);
                if (HasFatalFailure()) return;
            }
}

TEST_P(XBatch, ManySmallMessages) {
    Random random(521288629);
    for (const Mode mode : kModes)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            check_batch(mode, direction, slow() ? 50 : 1000, 100, random);
            if (HasFatalFailure()) return;
        }
}

TEST_P(XBatch, OneLongMessageAmongShortOnes) {
    Random random(5783321);
    for (const Mode mode : kModes) {
        if (!subject().supports(mode, Direction::encrypt, 20)) continue;
        const Bytes key_bytes = random.bytes(16);
        const auto key = Key::import(key_bytes);
        ASSERT_TRUE(key);
        const std::size_t large = slow() ? 2048 : 300000 / 16 * 16;
        std::vector<Bytes> ins, outs;
        std::vector<Message> messages;
        for (std::size_t i = 0; i < 20; ++i) {
            ins.push_back(pattern(i == 7 ? large : 32, i));
            outs.emplace_back(ins.back().size());
        }
        for (std::size_t i = 0; i < 20; ++i)
            messages.push_back({ins[i].data(), outs[i].data(), ins[i].size(), random.block(), 0});
        const auto done = subject().run(*key, mode, Direction::encrypt, messages);
        ASSERT_TRUE(done) << done.error().message;
        for (std::size_t i = 0; i < 20; ++i)
            ASSERT_EQ(
                difference(oracle(key_bytes, {mode, Direction::encrypt, messages[i].iv, 0}, ins[i]),
                           outs[i]),
                "")
                << name(mode) << ", message " << i;
    }
}

TEST_P(XBatch, NoMessagesAndEmptyOnes) {
    Random random(1);
    const auto key = Key::import(random.bytes(32));
    ASSERT_TRUE(key);
    for (const Mode mode : kModes)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            EXPECT_TRUE(subject().run(*key, mode, direction, {})) << name(mode);
            const std::vector<Message> empty(5);  // null pointers, no bytes
            EXPECT_TRUE(subject().run(*key, mode, direction, empty)) << name(mode);
        }
}

// A backend's primitives, an Engine and a Key serve any number of threads at once.
TEST_P(XBatch, ManyThreadsAtOnce) {
    const Bytes shared_bytes = pattern(32);
    const auto shared = Key::import(shared_bytes);
    ASSERT_TRUE(shared);
    std::vector<std::string> faults(4);
    {
        std::vector<std::jthread> threads;
        for (std::size_t t = 0; t < faults.size(); ++t)
            threads.emplace_back([&, t] {
                Random random(t);
                for (int round = 0; round < (slow() ? 4 : 25) && faults[t].empty(); ++round)
                    for (const Mode mode : kModes) {
                        if (!subject().supports(mode, Direction::decrypt, 1)) continue;
                        const std::size_t size = 16 * (1 + random.below(slow() ? 10 : 400));
                        const Bytes own = random.bytes(16), in = pattern(size, t);
                        const auto key = round % 2 == 0 ? shared->duplicate() : Key::import(own);
                        const Key& used = round % 3 == 0 ? *shared : *key;
                        const Bytes& bytes = round % 3 == 0 || round % 2 == 0 ? shared_bytes : own;
                        Bytes out(size);
                        const Message message{in.data(), out.data(), size, random.block(), 0};
                        const auto done =
                            subject().run(used, mode, Direction::decrypt, std::span(&message, 1));
                        faults[t] =
                            !done
                                ? done.error().message
                                : difference(
                                      oracle(bytes, {mode, Direction::decrypt, message.iv, 0}, in),
                                      out);
                        if (!faults[t].empty()) break;
                    }
            });
    }
    for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

DAEL_FOR_EVERY_BACKEND(XBatch);

}  // namespace
