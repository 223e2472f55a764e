// SPDX-License-Identifier: Apache-2.0
// Many messages at once, under many keys, and many callers at once: each message comes out as if it
// had been alone, and one that is forged or makes no sense fails alone.
#include <thread>

#include "modes/traits.hpp"
#include "support/modes_test.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class XBatch : public ModesTest {
  protected:
    void check_sizes(const Cipher& cipher, std::size_t keys,
                     const std::vector<std::size_t>& sizes) {
        const KeyRing ring = this->ring(cipher, keys);
        TestBatch batch(random_, ring, cipher);
        batch.add_sizes(sizes);
        check(batch);
    }
    std::vector<std::size_t> sizes_below(std::size_t count, std::size_t limit) {
        std::vector<std::size_t> sizes(count);
        for (auto& size : sizes) size = random_.below(10) ? random_.below(limit) : 0;
        return sizes;
    }
};

TEST_P(XBatch, EveryMessageAsIfAlone) {
    for_each_cipher([&](const Cipher& cipher) {
        // Around the numbers of lanes that multi-buffer code fills, and of a warp's messages.
        for (const std::size_t count :
             sampled() ? std::vector<std::size_t>{1, 3, 8, 17, 33}
                       : std::vector<std::size_t>{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 63, 64,
                                                  65, 200}) {
            check_sizes(cipher, 1 + count % 7, sizes_below(count, slow() ? 60 : 1500));
            if (HasFatalFailure()) return;
        }
    });
}

TEST_P(XBatch, ManySmallMessages) {
    for_each_cipher([&](const Cipher& cipher) {
        const std::size_t count = slow() ? 50 : sampled() ? 200 : 1000;
        check_sizes(cipher, 5, sizes_below(count, 100));
        check_sizes(cipher, 1, sizes_below(count, 100));
    });
}

TEST_P(XBatch, EveryLengthUnderKeysOfEverySize) {
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size <= (slow() ? 200u : 2048u); size = next_length(size))
        sizes.push_back(size);
    for_each_cipher([&](const Cipher& cipher) { check_sizes(cipher, 7, sizes); });
}

TEST_P(XBatch, NoMessagesOneAndManyKeys) {
    for_each_cipher([&](const Cipher& cipher) {
        check_sizes(cipher, 1, {});
        check_sizes(cipher, 1, {48});
        check_sizes(cipher, 3, {0});
        check_sizes(cipher, 90, std::vector<std::size_t>(40, 100));
    });
}

// Long ones are cut where the mode allows it, between threads and chunks.
TEST_P(XBatch, LongOnesAmongShortOnes) {
    std::vector<std::size_t> sizes(60, slow() ? 40 : 1000);
    sizes[7] = slow() ? 2048 : ((sampled() ? 256 : 1024) << 10) + 16;
    sizes[8] = slow() ? 1007 : sampled() ? 100007 : 300007;
    for_each_cipher([&](const Cipher& cipher) {
        for (const std::size_t keys : {1, 3}) check_sizes(cipher, keys, sizes);
        if (!sampled()) check_sizes(cipher, 3, sizes_below(20, 300000));
    });
}

TEST_P(XBatch, EmptyMessagesOfNullPointers) {
    for_each_cipher([&](const Cipher& cipher) {
        const KeyRing keys = ring(cipher, 2);
        std::vector<Message> empty(5);
        std::vector<Bytes> tags(5, Bytes(16));
        for (std::size_t i = 0; i < 5 && authenticates(cipher.mode); ++i) {
            empty[i].tag = tags[i].data();
            empty[i].start = fitting_start(cipher, random_);
            std::ranges::copy(oracle(keys.raw[0], cipher, empty[i], {}).tag, tags[i].begin());
        }
        std::vector<Code> codes(5, Code::ok);
        EXPECT_TRUE(subject().run(cipher, keys.keys, {}, {})) << name(cipher.mode);
        EXPECT_TRUE(subject().run(cipher, keys.keys, empty, codes)) << name(cipher.mode);
        EXPECT_EQ(codes, std::vector(5, Code::ok));
    });
}

// Every third message is forged, in one way or another. It fails, its plaintext is nowhere; the
// others are right.
TEST_P(XBatch, AForgedMessageFailsAlone) {
    for_each_cipher([&](Cipher cipher) {
        if (!authenticates(cipher.mode) || cipher.direction == Direction::encrypt) return;
        for (const int tag : {16, 12, 8, 4, 32}) {
            if (!modes::valid_tag_size(cipher.mode, static_cast<std::size_t>(tag))) continue;
            cipher.tag = static_cast<std::uint8_t>(tag);
            const std::size_t count = slow() ? 12 : sampled() ? 60 : 300;
            const KeyRing keys = ring(cipher, 4);
            TestBatch batch(random_, keys, cipher);
            batch.add_sizes(sizes_below(count, slow() ? 100 : 3000));
            for (std::size_t i = 0; i < count; i += 3) batch.forge(i);
            check(batch);
            if (HasFatalFailure()) return;
        }
    });
}

TEST_P(XBatch, ABadMessageFailsAlone) {
    for_each_cipher([&](const Cipher& cipher) {
        const Mode mode = cipher.mode;
        const KeyRing keys = ring(cipher, 3);
        TestBatch batch(random_, keys, cipher);
        for (std::size_t i = 0; i < 40; ++i) batch.add({.size = 160, .out_at = i % 16});
        const auto refuse = [&](std::size_t i, Code code) -> Message& {
            batch.expect(i, code);
            return batch.messages[i];
        };
        refuse(1, Code::invalid_argument).key = 3;
        if (!makes_keystream(mode)) refuse(5, Code::invalid_argument).in = nullptr;
        refuse(6, Code::invalid_argument).out = nullptr;
        Message& overlapping = refuse(9, Code::overlap);
        overlapping.in = overlapping.out + 1;
        if (whole_blocks_only(mode)) refuse(20, Code::ragged_length).size = 33;
        if (mode == Mode::xts) refuse(20, Code::ragged_length).size = 15;
        if (authenticates(mode) || mode == Mode::gcm_ctr) {
            Message& long_one = refuse(20, Code::limit);
            long_one.in = long_one.out;
            // One byte more than the counter lasts for.
            long_one.size = authenticates(mode)
                                ? modes::most(mode).data + 1
                                : ((std::uint64_t{1} << 32) - 1) * 16 - long_one.skip + 1;
        }
        if (authenticates(mode)) refuse(33, Code::invalid_argument).tag = nullptr;
        if (mode == Mode::xaes256gcm) refuse(34, Code::invalid_argument).start_rest[15] = 1;
        if (mode == Mode::gcm_siv) refuse(34, Code::invalid_argument).start[12] = 1;
        if (!authenticates(mode)) {
            Message& with_aad = refuse(39, Code::invalid_argument);
            with_aad.aad = with_aad.in;
            with_aad.aad_size = 1;
        }
        refuse(38, Code::invalid_argument).skip = makes_keystream(mode) ? 16 : 1;
        check(batch);
    });
}

// A backend's primitives, an Engine and a Key serve any number of threads at once: with keys that
// they share, and with keys of their own.
TEST_P(XBatch, ManyThreadsAtOnce) {
    for_each_cipher([&](const Cipher& cipher) {
        const KeyRing shared = ring(cipher, 5);
        std::vector<std::string> faults(4);
        {
            std::vector<std::jthread> threads;
            for (std::size_t t = 0; t < faults.size(); ++t)
                threads.emplace_back([&, t] {
                    Random random(t);
                    for (int round = 0; round < (sampled() ? 4 : 8) && faults[t].empty(); ++round) {
                        const KeyRing own(random, 3, cipher.mode);
                        TestBatch batch(random, round % 2 ? shared : own, cipher);
                        const bool alone = round % 4 == 3;
                        for (std::size_t i = 0; i < (alone       ? 1u
                                                     : slow()    ? 5u
                                                     : sampled() ? 20u
                                                                 : 60u);
                             ++i)
                            batch.add(any_shape(cipher, random.below(slow() ? 100 : 4000), random));
                        faults[t] = fault_of(batch);
                    }
                });
        }
        for (const std::string& fault : faults) ASSERT_EQ(fault, "");
    });
}

DAEL_FOR_EVERY_BACKEND(XBatch);

}  // namespace
