// SPDX-License-Identifier: Apache-2.0
// The CUDA backend's modes without authentication, in every layout of its tables, against OpenSSL:
// lengths, alignments, in place, batches, keystreams, counters that carry, streams and threads, and
// errors.
#include <cuda_runtime_api.h>

#include <cstring>
#include <thread>

#include <daelstrom/engine.hpp>

#include "backends/cuda/gcm/kernels.hpp"
#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

constexpr Cipher kParallel[] = {{Mode::ecb, Direction::encrypt},
                                {Mode::ecb, Direction::decrypt},
                                {Mode::cbc, Direction::decrypt},
                                {Mode::cfb, Direction::decrypt},
                                {Mode::ctr, Direction::encrypt}};
constexpr Cipher kSerial[] = {{Mode::cbc, Direction::encrypt},
                              {Mode::cfb, Direction::encrypt},
                              {Mode::ofb, Direction::encrypt}};
constexpr Cipher kCtr{Mode::ctr, Direction::encrypt};
constexpr std::uint8_t kWhole = 0;  // a skip of nothing, as the kernel for long streams wants it

std::vector<Cipher> all() {
    std::vector<Cipher> ciphers(std::begin(kParallel), std::end(kParallel));
    ciphers.insert(ciphers.end(), std::begin(kSerial), std::end(kSerial));
    return ciphers;
}

using Cuda = CudaFormTest;

TEST_P(Cuda, EveryShortLengthAlone) {
    for (const std::size_t bytes : kKeySizes) {
        const KeyRing ring({random_.bytes(bytes)});
        for (const Cipher& cipher : kParallel)
            for (std::size_t size = 0; size <= 2048;
                 size += whole_blocks_only(cipher.mode) ? 16 : 7)
                check(ring, cipher, {.size = size, .in_place = size % 2 != 0});
    }
}

TEST_P(Cuda, LongMessagesAndTheirEdges) {
    for (const std::size_t bytes : kKeySizes) {
        const KeyRing ring({random_.bytes(bytes)});
        for (const Cipher& cipher : kParallel)
            for (const std::size_t size :
                 {std::size_t{65536}, (std::size_t{1} << 20) - 16, (std::size_t{4} << 20) + 16,
                  (std::size_t{9} << 20) + 4112, (std::size_t{9} << 20) + 4099}) {
                if (whole_blocks_only(cipher.mode) && size % 16 != 0) continue;
                check(ring, cipher, {.size = size, .skip = kWhole});
                check(ring, cipher, {.size = size, .in_place = true, .skip = kWhole});
            }
    }
}

TEST_P(Cuda, AnyAlignment) {
    const KeyRing ring({random_.bytes(16)});
    for (const Cipher& cipher : kParallel)
        for (std::size_t in_at = 0; in_at < 16; in_at += 3)
            for (std::size_t out_at = 0; out_at < 16; out_at += 5)
                for (const std::size_t size : {16, 4096, 100000})
                    check(ring, cipher,
                          {.size = size, .in_at = in_at, .out_at = out_at, .in_place = in_at == 3});
    for (std::size_t at = 1; at < 16; ++at)
        check(
            ring, kCtr,
            {.size = (std::size_t{5} << 20) + at, .in_at = at, .out_at = 16 - at, .skip = kWhole});
}

// By itself and in lists, around the borders of words, rows and groups of counters.
TEST_P(Cuda, CtrAtEveryAlignmentOfInputAndOutput) {
    const std::size_t sizes[] = {1,    15,   16,   17,   31,   33,   511,  512,   513,  527,
                                 4080, 4095, 4096, 4097, 4112, 8191, 8192, 12305, 70001};
    for (std::size_t in_at = 0; in_at < 16; ++in_at)
        for (std::size_t out_at = 0; out_at < 16; ++out_at) {
            const KeyRing ring({random_.bytes(kKeySizes[(in_at + out_at) % 3])});
            TestBatch batch(random_, ring, kCtr);
            for (const std::size_t size : sizes) {
                const bool from_zero = random_.below(3) == 0;
                Shape shape{.size = size,
                            .in_at = in_at,
                            .out_at = out_at,
                            .in_place = random_.below(4) == 0,
                            .keystream = random_.below(8) == 0,
                            .start = random_.block()};
                if (from_zero) (*shape.start)[15] = 0;
                if (random_.below(3) != 0) shape.skip = kWhole;
                batch.add(shape);
            }
            check(batch);
            const std::size_t size = (std::size_t{5} << 20) + 16 * in_at + out_at;
            if ((in_at * 5 + out_at) % 7 == 0)
                check(ring, kCtr, {.size = size, .in_at = in_at, .out_at = out_at});
            else
                check(ring, kCtr, {.size = size >> 5, .in_at = in_at, .out_at = out_at});
        }
}

TEST_P(Cuda, CtrBatchesAtMixedOffsets) {
    for (const std::size_t bytes : kKeySizes) {
        const KeyRing ring({random_.bytes(bytes)});
        for (const std::size_t size : {std::size_t{300}, std::size_t{4096}, std::size_t{1} << 20}) {
            TestBatch batch(random_, ring, kCtr);
            for (std::size_t m = 0; m < (size > 5000 ? 12 : 700); ++m)
                batch.add({.size = size - random_.below(size / 8),
                           .in_at = random_.below(16),
                           .out_at = random_.below(16),
                           .in_place = m % 3 == 0});
            check(batch);
        }
    }
}

// In a list as well as alone, where it is divided.
TEST_P(Cuda, CtrInAListAcrossTheWrapsOfTheCounter) {
    const KeyRing ring({random_.bytes(16)});
    TestBatch batch(random_, ring, kCtr);
    for (int ones = 4; ones <= 16; ones += 3)
        for (const std::uint8_t left : {0, 1, 77, 255}) {
            Block counter = random_.block();
            std::fill(counter.end() - ones, counter.end(), std::uint8_t{0xff});
            counter[15] = static_cast<std::uint8_t>(255 - left);
            batch.add({.size = 9000, .in_at = 3, .out_at = left % 16u, .start = counter});
        }
    check(batch);
}

TEST_P(Cuda, CtrFromAnyByteOfABlock) {
    const KeyRing ring({random_.bytes(32)});
    for (std::uint8_t skip = 0; skip < 16; ++skip)
        for (const std::size_t size : {0, 1, 15, 16, 17, 511, 512, 513, 70001})
            for (const bool keystream : {false, true})
                check(ring, kCtr, {.size = size, .keystream = keystream, .skip = skip});
}

TEST_P(Cuda, KeystreamsOfEveryPath) {
    const KeyRing ring({random_.bytes(16)});
    for (const std::size_t size : {100u, 65536u, (4u << 20) + 16, (9u << 20) + 4099})
        for (const std::size_t out_at : {0, 5})
            check(ring, kCtr, {.size = size, .out_at = out_at, .keystream = true, .skip = kWhole});
    const KeyRing many(random_, 7);
    for (const Mode mode : {Mode::ctr, Mode::gcm_ctr}) {
        TestBatch batch(random_, many, {mode, Direction::encrypt});
        for (std::size_t i = 0; i < 120; ++i) {
            Shape shape = any_shape(batch.cipher, i % 5 == 0 ? 20000 + 777 * i : 50 * i, random_);
            shape.keystream = i % 2 == 0;
            batch.add(shape);
        }
        check(batch);
    }
}

TEST_P(Cuda, CountersCarryThroughEveryByteAndWrap) {
    const KeyRing ring({random_.bytes(16)});
    for (const std::size_t size : {std::size_t{8192}, (std::size_t{5} << 20) + 5})
        for (int ones = 0; ones <= 16; ++ones) {
            Block counter = random_.block();
            std::fill(counter.end() - ones, counter.end(), std::uint8_t{0xff});
            counter[15] = static_cast<std::uint8_t>(counter[15] - 3);
            check(ring, kCtr, {.size = size, .start = counter, .skip = kWhole});
        }
    for (unsigned low = 0; low < 256; low += 37) {  // any place within a group of 256
        Block counter = random_.block();
        counter[15] = static_cast<std::uint8_t>(low);
        check(ring, kCtr,
              {.size = std::size_t{6} << 20, .in_place = true, .start = counter, .skip = kWhole});
    }
}

// More than 64 GiB of counters would be needed to see the stream kernel start anew at 2^32 blocks;
// a counter that begins just below does.
TEST_P(Cuda, LongStreamAcrossTheWrapOf32Bits) {
    const KeyRing ring({random_.bytes(32)});
    Block counter = random_.block();
    std::fill(counter.begin() + 12, counter.end(), std::uint8_t{0xff});
    counter[13] = 0xf0;  // wraps after 1 Mi blocks, 16 MiB
    check(ring, kCtr, {.size = (std::size_t{33} << 20) + 11, .start = counter, .skip = kWhole});
}

TEST_P(Cuda, BatchesOfMixedMessages) {
    for (const std::size_t bytes : kKeySizes)
        for (const Cipher& cipher : all()) {
            const KeyRing ring({random_.bytes(bytes)});
            TestBatch batch(random_, ring, cipher);
            for (std::size_t m = 0; m < 700; ++m) {
                const std::size_t size = m % 97 == 0   ? 20000 + random_.below(200000)
                                         : m % 50 == 7 ? 0
                                                       : random_.below(3000);
                batch.add(any_shape(cipher, fitting(cipher, size), random_));
            }
            check(batch);
        }
}

// Whole and aligned throughout, so that a warp walks from message to message on the fast path
// alone.
TEST_P(Cuda, BatchesOfEqualMessages) {
    for (const Cipher& cipher : all()) {
        const KeyRing ring({random_.bytes(16)});
        TestBatch batch(random_, ring, cipher);
        for (int m = 0; m < 4000; ++m) batch.add({.size = 4096});
        check(batch);
    }
}

// CBC encryption and counter mode with a key for each message, of all sizes.
TEST_P(Cuda, BatchesUnderManyKeys) {
    for (const Cipher cipher :
         {Cipher{Mode::cbc, Direction::encrypt}, kCtr, Cipher{Mode::gcm_ctr, Direction::encrypt}}) {
        const KeyRing ring(random_, 31);
        for (int round = 0; round < 4; ++round) {  // from lists in either memory
            TestBatch batch(random_, ring, cipher);
            for (std::size_t m = 0; m < 500; ++m) {
                const std::size_t size = m % 61 == 0 ? 30000 + m : random_.below(2049);
                Shape shape = any_shape(cipher, fitting(cipher, size), random_);
                if (cipher == kCtr) {  // whose counters must not wrap in 32 bits here
                    shape.start = random_.block();
                    (*shape.start)[12] = 0;
                }
                batch.add(shape);
            }
            check(batch);
        }
    }
}

TEST_P(Cuda, CbcOfManyMoreMessagesThanThreads) {
    const KeyRing ring(random_, 300);
    TestBatch batch(random_, ring, {Mode::cbc, Direction::encrypt});
    const auto count = static_cast<std::size_t>(device_->info().multiprocessors) * 512 + 345;
    for (std::size_t i = 0; i < count; ++i) batch.add({.size = i % 3 * 16});
    check(batch);
}

TEST_P(Cuda, SerialModesOfOneMessageAreRefusedWithTheMend) {
    const KeyRing ring({random_.bytes(16)});
    std::uint8_t byte = 0;
    const Message message{.in = &byte, .out = &byte, .size = 64};
    for (const Cipher& cipher : kSerial) {
        const auto ran = device_->run(cipher, {ring.keys}, message, {});
        ASSERT_FALSE(ran);
        EXPECT_EQ(ran.code(), Code::unsupported);
        EXPECT_NE(ran.error().message.find("batch"), std::string::npos) << ran.error().message;
    }
    EXPECT_EQ(device_->run({Mode::gcm}, {ring.keys}, message, {}).code(), Code::unsupported);
}

TEST_P(Cuda, SeveralThreadsAtOnce) {
    std::vector<std::thread> threads;
    std::vector<std::string> faults(6);
    for (std::size_t t = 0; t < faults.size(); ++t)
        threads.emplace_back([&, t] {
            Random random(t);
            const Cipher& cipher = kParallel[t % 5];
            const KeyRing ring({random.bytes(t % 2 ? 32 : 16)});
            TestBatch batch(random, ring, cipher);
            batch.add({.size = (std::size_t{5} << 20) + 48, .skip = kWhole}).add({.size = 4096});
            for (int round = 0; round < 10 && faults[t].empty(); ++round) {
                batch.again();
                faults[t] = fault_of(*subject_, batch);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(faults, std::vector<std::string>(faults.size()));
}

TEST_P(Cuda, TooMuchMemoryIsAnErrorAndNotTheEnd) {
    const auto memory = device_->memory().allocate(std::size_t{1} << 45);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.code(), Code::out_of_memory);
    EXPECT_NE(memory.error().message.find("cudaMalloc"), std::string::npos)
        << memory.error().message;
    check(KeyRing({random_.bytes(16)}), kCtr, {.size = 1000});
}

TEST_P(Cuda, PinnedMemoryIsKnownAsSuch) {
    Memory& memory = device_->memory();
    Bytes pageable(4096);
    EXPECT_FALSE(memory.is_pinned(pageable.data(), pageable.size()));
    const auto pinned = memory.allocate_pinned(std::size_t{1} << 20);
    ASSERT_TRUE(pinned);
    EXPECT_TRUE(memory.is_pinned(*pinned, std::size_t{1} << 20));
    EXPECT_TRUE(memory.is_pinned(static_cast<char*>(*pinned) + 4095, 3));
    EXPECT_FALSE(memory.owns(*pinned));
    EXPECT_FALSE(memory.owns(pageable.data()));
    const auto own = memory.allocate(16);
    ASSERT_TRUE(own);
    EXPECT_TRUE(memory.owns(*own));
    EXPECT_FALSE(memory.is_pinned(*own, 16));
    memory.release(*own);
    memory.release_pinned(*pinned);
}

// Launches of little data begin before those ahead of them have ended, and wait for them all the
// same: each here works in place on what the one before left, on their streams and in a graph.
TEST_F(CudaTest, LittleThatOverlapsKeepsTheOrder) {
    Random random(77);
    const KeyRing ring(random, 1);
    const core::KeyList keys{ring.keys};
    const Bytes plain = random.bytes(600'000);
    std::uint8_t* const data = put(plain);
    // All that is done is undone: counter mode twice, ECB there and back.
    const auto run = [&](const Cipher& cipher, std::size_t at, std::size_t size) {
        const Message m{.in = data + at, .out = data + at, .size = size};
        ASSERT_TRUE(device_->run(cipher, keys, m, stream_));
    };
    const auto twice = [&] {
        for (const std::size_t size : {4096, 65536, 16, 262144, 262145, 100, 1, 200'000}) {
            run({Mode::ctr}, size % 3, size);
            if (size < 1000) run({Mode::ecb}, 0, 96'000);
            run({Mode::ctr}, 0, 65536);
            run({Mode::ctr}, 0, 65536);
            if (size < 1000) run({Mode::ecb, Direction::decrypt}, 0, 96'000);
            run({Mode::ctr}, size % 3, size);
        }
    };
    for (int i = 0; i < 20; ++i) twice();
    EXPECT_EQ(difference(plain, get(data, plain.size())), "");

    const auto stream = static_cast<cudaStream_t>(stream_.handle);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    twice();
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&replay, graph, 0), cudaSuccess);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(replay, stream), cudaSuccess);
    EXPECT_EQ(difference(plain, get(data, plain.size())), "");
    EXPECT_EQ(cudaGraphExecDestroy(replay), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

// Stream 0 waits for the others, and they for it: what overlaps there waits as well.
TEST_F(CudaTest, LittleThatOverlapsKeepsTheOrderOfStream0) {
    Random random(79);
    const KeyRing ring(random, 1);
    const core::KeyList keys{ring.keys};
    const Bytes plain = random.bytes(std::size_t{32} << 20);
    std::uint8_t* const data = put(plain);
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    cudaStream_t other = nullptr;
    ASSERT_EQ(cudaStreamCreate(&other), cudaSuccess);
    const Message all{.in = data, .out = data, .size = plain.size()};
    Message last = all;
    last.in = last.out = data + plain.size() - 65536;
    last.size = 65536;
    for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(device_->run({Mode::ecb}, keys, all, Stream{other}));
        for (int time = 0; time < 2; ++time)
            ASSERT_TRUE(device_->run({Mode::ctr}, keys, last, Stream{}));
        ASSERT_TRUE(device_->run({Mode::ecb, Direction::decrypt}, keys, all, Stream{other}));
    }
    ASSERT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(other), cudaSuccess);
    EXPECT_EQ(difference(plain, get(data, plain.size())), "");
}

// Kernels read and write page-locked memory of the host, and the engine has them do so.
TEST_F(CudaTest, PageLockedMemoryIsWithinReach) {
    const std::size_t most = device_->reach();
    if (most == 0) GTEST_SKIP() << "this GPU has other addresses for the host's memory";
    Random random(78);
    const KeyRing ring(random, 1), xts_ring(random, 1, true);
    auto engine = Engine::open({.backend = "cuda:0"});
    ASSERT_TRUE(engine) << engine.error().message;
    auto in = device_->memory().allocate_pinned(most + 64),
         out = device_->memory().allocate_pinned(most + 64);
    ASSERT_TRUE(in && out);
    auto *const from = static_cast<std::uint8_t*>(*in), *const to =
                                                            static_cast<std::uint8_t*>(*out);
    const Bytes plain = random.bytes(most);
    std::ranges::copy(plain, from);
    for (const Mode mode : {Mode::ctr, Mode::ecb, Mode::xts})
        for (const std::size_t size :
             {std::size_t{16}, std::size_t{4096}, std::size_t{65536}, std::size_t{1000000}, most}) {
            const KeyRing& keys = mode == Mode::xts ? xts_ring : ring;
            const Cipher cipher{mode};
            Message m{.in = from, .out = to, .size = fitting(cipher, size)};
            m.start = fitting_start(cipher, random);
            const Bytes expected = oracle(keys.raw[0], cipher, m).out;
            for (const bool by_engine : {false, true}) {
                std::memset(to, Poisoned::kPoison, size + 64);
                if (by_engine) {
                    const auto ran = engine->run(cipher, keys.keys[0], m);
                    ASSERT_TRUE(ran) << ran.error().message;
                    EXPECT_EQ(ran->chunks, 1u);
                } else {
                    ASSERT_TRUE(device_->run_in_reach(cipher, {keys.keys}, m, stream_));
                    wait();
                }
                ASSERT_EQ(difference(expected, std::span(to, m.size)), "")
                    << name(mode) << " " << size;
                EXPECT_EQ(Bytes(to + m.size, to + size + 64),
                          Bytes(size + 64 - m.size, Poisoned::kPoison));
            }
        }
    device_->memory().release_pinned(*in);
    device_->memory().release_pinned(*out);
}

// The host's table of kernels, which decides what fits a GPU, against what the compiler made of
// them.
TEST_F(CudaTest, KernelsAreOfTheirShapes) {
    const cuda::CurrentDevice current(0);
    ASSERT_TRUE(current.result());
    const cuda::Layout& layout = device_->layout();
    std::vector<cuda::Kernel> kernels{cuda::ecb_kernel(true, 10, layout.inverse),
                                      cuda::ctr_kernel(14, layout.forward),
                                      cuda::ctr_small_kernel(10),
                                      cuda::cbc_decrypt_kernel(14, layout.inverse),
                                      cuda::serial_kernel(cuda::Serial::ofb, 14, layout.forward),
                                      cuda::xts_kernel(true, 14, layout.xts_inverse),
                                      cuda::xts_kernel(false, 14, layout.forward),
                                      cuda::keyed_cbc_encrypt_kernel(14, layout.forward),
                                      cuda::gcm_key_setup_kernel(),
                                      cuda::gcm_key_replace_kernel(),
                                      cuda::gcm_plan_kernel(),
                                      cuda::gcm_short_kernel(14, layout.gcm_short),
                                      cuda::gcm_ctr_kernel(14, layout.gcm_ctr, false),
                                      cuda::gcm_ctr_kernel(14, layout.gcm_ctr_keys, true),
                                      cuda::ghash_tiles_kernel(),
                                      cuda::ghash_rows_kernel(),
                                      cuda::gcm_finish_kernel(14),
                                      cuda::gcm_absorb_kernel(),
                                      cuda::gcm_stream_tag_kernel(14)};
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        const auto made = device_->made(kernels[i]);
        ASSERT_TRUE(made) << i << made.error().message;
        EXPECT_EQ(made->shared, kernels[i].shape.fixed) << i;
        EXPECT_GE(made->threads, static_cast<int>(kernels[i].shape.threads)) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Cuda, testing::Values(Form{4}, Form{2}, Form{1}), form_name);

}  // namespace
}  // namespace dael::test
