// SPDX-License-Identifier: Apache-2.0
// GCM on device memory, with every layout of tables, with tensor cores and without, against
// OpenSSL: every path that a message's size can take and the edges between them, many keys, and
// forgeries. Lists lie in either memory, as the subject tosses.
#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

constexpr Cipher kSeal{Mode::gcm, Direction::encrypt}, kOpen{Mode::gcm, Direction::decrypt};

class CudaGcm : public CudaFormTest {
  protected:
    // Both directions, twice: nothing outside of outputs and tags may change.
    template <class Fill>
    void check_both(const KeyRing& ring, Fill fill) {
        for (const Cipher& cipher : {kSeal, kOpen, kSeal, kOpen}) {
            TestBatch batch(random_, ring, cipher);
            fill(batch);
            check(batch);
            if (HasFatalFailure()) return;
        }
    }
};

TEST_P(CudaGcm, EveryShortLength) {
    for (const std::size_t bytes : kKeySizes)
        check_both(KeyRing({random_.bytes(bytes)}), [](TestBatch& batch) {
            for (std::size_t size = 0; size <= 1100; ++size)
                batch.add({.size = size, .in_at = size % 5, .aad_size = size * 7 % 97});
        });
}

TEST_P(CudaGcm, EveryLengthOf4KiB) {
    const std::vector<std::size_t> aligned{0, 4, 8, 13}, off{13};
    for (const std::size_t at : GetParam().quads ? aligned : off)
        check_both(KeyRing({random_.bytes(16)}), [&](TestBatch& batch) {
            for (std::size_t size = 0; size <= 4096; ++size)
                batch.add({.size = size, .in_at = at, .out_at = size % 3 == 0 ? 3u : at});
        });
}

TEST_P(CudaGcm, ShortMessagesOfManyKeysWithForgeriesAmongThem) {
    const KeyRing ring(random_, 5);
    for (const Cipher& cipher : {kSeal, kOpen}) {
        TestBatch batch(random_, ring, cipher);
        for (std::size_t i = 0; i < 5000; ++i)
            batch.add({.size = i * 61 % 1501,
                       .in_at = i % 11 == 0 ? 1u : 0u,
                       .in_place = i % 4 == 1,
                       .aad_size = i % 3 == 0 ? i % 50 : 0});
        for (std::size_t i = 0; cipher.direction == Direction::decrypt && i < batch.size(); i += 3)
            batch.forge(i);
        check(batch);
    }
}

TEST_P(CudaGcm, AroundEveryEdge) {
    check_both(KeyRing({random_.bytes(16)}), [](TestBatch& batch) {
        for (const std::size_t edge : {512, 4096, 8192, 16384, 32768, 65536, 1 << 20})
            for (const int by : {-33, -32, -16, -1, 0, 1, 15, 16, 31, 32, 33})
                batch.add({.size = edge + static_cast<std::size_t>(by),
                           .in_at = by == 1,
                           .in_place = by == 15,
                           .aad_size = by < 0 ? 0u : 13u});
    });
}

TEST_P(CudaGcm, LongMessagesAtEveryAlignment) {
    check_both(KeyRing({random_.bytes(16)}), [&](TestBatch& batch) {
        for (std::size_t in_at = 0; in_at < 16; ++in_at)
            for (std::size_t out_at = 0; out_at < 16; ++out_at)
                batch.add({.size = 8193 + random_.below(90000),
                           .in_at = in_at,
                           .out_at = out_at,
                           .in_place = random_.below(4) == 0,
                           .aad_size = in_at});
    });
}

// All at aligned addresses, where sealing hashes what it encrypts from registers: as many zeros
// before the first block as can be, part blocks at the end, workers with many messages and messages
// with many workers, under one key and under several.
TEST_P(CudaGcm, LongMessagesAtAlignedAddresses) {
    std::vector<std::size_t> sizes;
    for (const std::size_t edge : {8192, 16384, 24576, 32768, 65536, 98304})
        for (const int by : {-17, -16, -15, -1, 0, 1, 15, 16, 17, 32})
            if (edge != 8192 || by > 0) sizes.push_back(edge + static_cast<std::size_t>(by));
    for (const std::size_t lead : {31, 127, 128, 384, 511, 512, 513, 1023})  // blocks
        for (const std::size_t tiles : {2, 3, 5}) sizes.push_back((tiles * 1024 - lead) * 16 - 3);
    for (const std::size_t keys : {1, 1, 1, 4, 4, 4}) {
        const KeyRing ring(random_, keys);
        for (const Cipher& cipher : {kSeal, kOpen}) {
            TestBatch batch(random_, ring, cipher);
            for (std::size_t round = 0; round < 3; ++round)
                for (const std::size_t size : sizes)
                    batch.add({.size = size,
                               .in_place = random_.below(4) == 0,
                               .aad_size = round == 0 ? 0 : random_.below(90)});
            check(batch);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(CudaGcm, AadOfEverySize) {
    check_both(KeyRing({random_.bytes(32)}), [](TestBatch& batch) {
        for (const std::size_t aad : {0, 1, 15, 16, 17, 8191, 8192, 8193, 16384, 100000, 1 << 20})
            for (const std::size_t size : {0, 1, 100, 8192, 20000, 300001})
                batch.add({.size = size, .aad_size = aad});
    });
}

TEST_P(CudaGcm, OneLongMessage) {
    check_both(KeyRing({random_.bytes(16)}), [](TestBatch& batch) {
        batch.add({.size = (std::size_t{48} << 20) + 12345, .aad_size = 77});
    });
}

TEST_P(CudaGcm, ManyKeysAndLengthsInOneList) {
    const KeyRing ring(random_, 37);
    check_both(ring, [](TestBatch& batch) {
        for (std::size_t i = 0; i < 300; ++i) {
            const std::size_t kinds[] = {i, 1500, 9000 + i, 70000, 16384};
            batch.add({.size = kinds[i % 5],
                       .in_at = i % 7 == 0 ? 3u : 0u,
                       .in_place = i % 4 == 1,
                       .aad_size = i % 3 == 0 ? 20u : 0u});
        }
    });
}

// Too many for matrices, so that tensor cores are not used.
TEST_P(CudaGcm, ALargeSetOfKeys) {
    const KeyRing ring(random_, 4200);
    check_both(ring, [](TestBatch& batch) {
        for (std::uint32_t i = 0; i < 4200; ++i)
            batch.add({.size = i % 50 == 0 ? 30000u : 200u, .key = i});
    });
    check_both(ring, [](TestBatch& batch) {  // one of them alone, which is a kernel's parameter
        batch.add({.size = 50000, .key = 4199}).add({.size = 100, .key = 4199});
    });
}

TEST_P(CudaGcm, StartsThatAreOfNoNonceAndCountersThatWrap) {
    const KeyRing ring({random_.bytes(16)});
    check_both(ring, [&](TestBatch& batch) {
        for (const std::uint32_t left : {0u, 1u, 2u, 5u, 100u, 255u, 256u, 600u, 3000u, 70000u})
            for (const std::size_t size : {1000, 8000, 60000, 1200000}) {
                Block j0 = random_.block();
                for (std::size_t i = 0; i < 4; ++i)
                    j0[15 - i] = static_cast<std::uint8_t>(~left >> (8 * i));
                batch.add({.size = size, .aad_size = 5, .start = j0});
            }
    });
}

TEST_P(CudaGcm, ShortTags) {
    const KeyRing ring(random_, 3);
    for (const std::size_t tag : {4, 8, 12, 13, 14, 15})
        for (const Direction direction : kDirections) {
            TestBatch batch(random_, ring, {Mode::gcm, direction, static_cast<std::uint8_t>(tag)});
            batch.add_sizes({0, 1, 100, 8192, 8193, 70000});
            check(batch);
        }
}

TEST_P(CudaGcm, AForgeryReleasesNothingAndDisturbsNobody) {
    const KeyRing ring(random_, 3);
    for (int round = 0; round < 4; ++round) {
        TestBatch batch(random_, ring, kOpen);
        for (std::size_t i = 0; i < 60; ++i)
            batch.add({.size = i % 3 == 0 ? 40000 + i : 100 + i * 16,
                       .in_place = i % 6 == 5,
                       .aad_size = i % 2 ? 9000u : 20u});
        for (std::size_t i = 0; i < batch.size(); i += 4) batch.forge(i);
        check(batch);
    }
}

INSTANTIATE_TEST_SUITE_P(Forms, CudaGcm,
                         testing::Values(Form{4}, Form{4, cuda::Hashing::tiles, true},
                                         Form{4, cuda::Hashing::mma}, Form{4, cuda::Hashing::rows},
                                         Form{2}, Form{1, cuda::Hashing::rows}),
                         form_name);

}  // namespace
}  // namespace dael::test
