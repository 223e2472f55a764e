// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on device memory, every table layout, against OpenSSL: lengths, alignments, in
// place, batches, counters that carry, streams and threads, and errors.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "backends/cuda/cuda_device.hpp"
#include "core/registry.hpp"
#include "modes/counter.hpp"
#include "modes/segment.hpp"

namespace {

using namespace dael;
using core::Segment;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kPoison = 0xa5;

struct Use {
    Mode mode;
    Direction direction;
};
constexpr Use kParallelUses[] = {{Mode::ecb, Direction::encrypt},
                                 {Mode::ecb, Direction::decrypt},
                                 {Mode::cbc, Direction::decrypt},
                                 {Mode::cfb, Direction::decrypt},
                                 {Mode::ctr, Direction::encrypt}};
constexpr Use kSerialUses[] = {{Mode::cbc, Direction::encrypt},
                               {Mode::cfb, Direction::encrypt},
                               {Mode::ofb, Direction::encrypt}};

class Cuda : public testing::TestWithParam<int> {  // the parameter: tables, 4, 2 or 1
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        auto opened = cuda::CudaDevice::open(0, GetParam());
        ASSERT_TRUE(opened) << opened.error().message;
        device_ = std::move(*opened);
        openssl_ = std::move(*core::open_backend("openssl"));
        stream_ = *device_->create_stream();
    }
    void TearDown() override {
        if (!device_) return;
        for (void* memory : allocations_) device_->release(memory);
        device_->destroy_stream(stream_);
    }

    std::uint8_t* allocate(std::size_t size) {
        auto memory = device_->allocate(size);
        EXPECT_TRUE(memory) << memory.error().message;
        allocations_.push_back(*memory);
        return static_cast<std::uint8_t*>(*memory);
    }
    Bytes random_bytes(std::size_t size) {
        Bytes bytes(size);
        for (std::size_t i = 0; i < size; i += 4) {
            const auto word = static_cast<std::uint32_t>(random_());
            std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(4, size - i));
        }
        return bytes;
    }
    Key random_key(int bits) { return std::move(*Key::import(random_bytes(bits / 8))); }
    Block random_block() {
        Block block;
        for (auto& byte : block) byte = static_cast<std::uint8_t>(random_());
        return block;
    }
    void put(std::uint8_t* to, const Bytes& bytes) {
        if (bytes.empty()) return;
        ASSERT_TRUE(device_->copy_in(to, bytes.data(), bytes.size(), stream_));
        ASSERT_TRUE(device_->wait(stream_));
    }
    Bytes get(const std::uint8_t* from, std::size_t size) {
        Bytes bytes(size);
        if (size == 0) return bytes;
        EXPECT_TRUE(device_->copy_out(bytes.data(), from, size, stream_));
        EXPECT_TRUE(device_->wait(stream_));
        return bytes;
    }
    void poison(std::uint8_t* memory, std::size_t size) {
        ASSERT_TRUE(device_->fill(memory, kPoison, size, stream_));
    }
    Bytes oracle(const Key& key, Use use, const Block& iv, unsigned skip, const Bytes& in) {
        Bytes out(in.size());
        const Segment segment{in.data(), out.data(), in.size(), iv,
                              static_cast<std::uint8_t>(skip)};
        EXPECT_TRUE(openssl_->run({use.mode, use.direction, &key}, std::span(&segment, 1)));
        return out;
    }

    // One message through Device::run against OpenSSL; nothing beside it may change.
    void check_one(const Key& key, Use use, std::size_t size, unsigned in_shift, unsigned out_shift,
                   bool in_place, const Block& iv, unsigned skip = 0) {
        constexpr std::size_t kMargin = 64;
        const Bytes message = random_bytes(size);
        const Bytes expected = oracle(key, use, iv, skip, message);
        const std::size_t room = size + 2 * kMargin + 16;
        if (room > capacity_) {
            in_ = allocate(room);
            out_ = allocate(room);
            capacity_ = room;
        }
        poison(in_, room);
        poison(out_, room);
        std::uint8_t* in = in_ + kMargin + in_shift;
        std::uint8_t* out = in_place ? in : out_ + kMargin + out_shift;
        put(in, message);
        const Segment segment{in, out, size, iv, static_cast<std::uint8_t>(skip)};
        const auto ran = device_->run({use.mode, use.direction, &key}, segment, stream_);
        ASSERT_TRUE(ran) << ran.error().message;
        const Bytes around = get(out - kMargin, size + 2 * kMargin);
        const std::string what = std::string(name(use.mode)) + " " +
                                 std::string(name(use.direction)) + " " + std::to_string(size) +
                                 " bytes, shifts " + std::to_string(in_shift) + " " +
                                 std::to_string(out_shift) + (in_place ? ", in place" : "") +
                                 ", skip " + std::to_string(skip);
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), around.begin() + kMargin)) << what;
        for (std::size_t i = 0; i < kMargin; ++i) {
            ASSERT_EQ(around[i], kPoison) << what << ", before";
            ASSERT_EQ(around[kMargin + size + i], kPoison) << what << ", after";
        }
    }

    std::unique_ptr<cuda::CudaDevice> device_;
    std::unique_ptr<core::Backend> openssl_;
    Stream stream_;
    std::vector<void*> allocations_;
    std::uint8_t* in_ = nullptr;
    std::uint8_t* out_ = nullptr;
    std::size_t capacity_ = 0;
    std::mt19937 random_{12345};
};

TEST_P(Cuda, EveryShortLength) {
    for (const int bits : {128, 192, 256}) {
        const Key key = random_key(bits);
        for (const Use use : kParallelUses)
            for (std::size_t size = 0; size <= 2048; size += whole_blocks_only(use.mode) ? 16 : 7)
                check_one(key, use, size, 0, 0, size % 2, random_block());
    }
}

TEST_P(Cuda, LongMessagesAndTheirEdges) {
    for (const int bits : {128, 192, 256}) {
        const Key key = random_key(bits);
        for (const Use use : kParallelUses)
            for (const std::size_t size :
                 {std::size_t{65536}, (std::size_t{1} << 20) - 16, (std::size_t{4} << 20) + 16,
                  (std::size_t{9} << 20) + 4112, (std::size_t{9} << 20) + 4099}) {
                if (whole_blocks_only(use.mode) && size % 16 != 0) continue;
                check_one(key, use, size, 0, 0, false, random_block());
                check_one(key, use, size, 0, 0, true, random_block());
            }
    }
}

TEST_P(Cuda, AnyAlignment) {
    const Key key = random_key(128);
    for (const Use use : kParallelUses)
        for (unsigned in_shift = 0; in_shift < 16; in_shift += 3)
            for (unsigned out_shift = 0; out_shift < 16; out_shift += 5)
                for (const std::size_t size :
                     {std::size_t{16}, std::size_t{4096}, std::size_t{100000}})
                    check_one(key, use, size, in_shift, out_shift, in_shift == 3, random_block());
    for (unsigned shift = 1; shift < 16; ++shift)
        check_one(key, {Mode::ctr, Direction::encrypt}, (5u << 20) + shift, shift, 16 - shift,
                  false, random_block());
}

TEST_P(Cuda, CtrAtAnyByteOffset) {
    const Key key = random_key(256);
    for (unsigned skip = 0; skip < 16; ++skip)
        for (const std::size_t size : {0u, 1u, 15u, 16u, 17u, 511u, 512u, 513u, 70001u})
            check_one(key, {Mode::ctr, Direction::encrypt}, size, 0, 0, size % 2, random_block(),
                      skip);
}

TEST_P(Cuda, CountersCarryThroughEveryByteAndWrap) {
    const Key key = random_key(128);
    for (const std::size_t size : {std::size_t{8192}, (std::size_t{5} << 20) + 5})
        for (int ones = 0; ones <= 16; ++ones) {
            Block counter = random_block();
            std::fill(counter.end() - ones, counter.end(), std::uint8_t{0xff});
            counter[15] -= 3;
            check_one(key, {Mode::ctr, Direction::encrypt}, size, 0, 0, false, counter);
        }
    for (unsigned low = 0; low < 256; low += 37) {  // any place within a group of 256
        Block counter = random_block();
        counter[15] = static_cast<std::uint8_t>(low);
        check_one(key, {Mode::ctr, Direction::encrypt}, std::size_t{6} << 20, 0, 0, true, counter);
    }
}

TEST_P(Cuda, BatchesOfMixedMessages) {
    std::vector<Use> uses(std::begin(kParallelUses), std::end(kParallelUses));
    uses.insert(uses.end(), std::begin(kSerialUses), std::end(kSerialUses));
    for (const int bits : {128, 192, 256})
        for (const Use use : uses)
            for (const bool in_place : {false, true}) {
                const Key key = random_key(bits);
                constexpr std::size_t kMessages = 700;
                std::vector<std::size_t> sizes, places;
                std::size_t total = 0;
                for (std::size_t m = 0; m < kMessages; ++m) {
                    std::size_t size = m % 97 == 0 ? 20000 + random_() % 200000 : random_() % 3000;
                    if (whole_blocks_only(use.mode)) size = size / 16 * 16;
                    if (m % 50 == 7) size = 0;
                    sizes.push_back(size);
                    places.push_back(total);
                    total += size + 32 + (m % 3 == 0 ? random_() % 16 : 0);
                    if (m % 3 == 1) total = (total + 15) / 16 * 16;
                }
                const Bytes input = random_bytes(total);
                std::uint8_t* in = allocate(total);
                std::uint8_t* out = in_place ? in : allocate(total);
                poison(out, total);
                put(in, input);
                Bytes expected = in_place ? input : Bytes(total, kPoison);
                std::vector<Segment> segments;
                for (std::size_t m = 0; m < kMessages; ++m) {
                    const unsigned skip = use.mode == Mode::ctr && m % 5 == 0 ? random_() % 16 : 0;
                    segments.push_back({in + places[m], out + places[m], sizes[m], random_block(),
                                        static_cast<std::uint8_t>(skip)});
                    const Bytes message(input.begin() + places[m],
                                        input.begin() + places[m] + sizes[m]);
                    const Bytes one = oracle(key, use, segments.back().iv, skip, message);
                    std::copy(one.begin(), one.end(), expected.begin() + places[m]);
                }
                auto batch = device_->prepare(use.mode, use.direction, segments);
                ASSERT_TRUE(batch) << batch.error().message;
                const auto ran = device_->run({use.mode, use.direction, &key}, **batch, stream_);
                ASSERT_TRUE(ran) << ran.error().message;
                ASSERT_EQ(get(out, total), expected)
                    << name(use.mode) << " " << name(use.direction) << " " << bits;
                for (int freed = in_place ? 1 : 2; freed > 0; --freed) {
                    device_->release(allocations_.back());
                    allocations_.pop_back();
                }
            }
}

// Whole and aligned throughout, so that a warp walks from message to message on the fast path
// alone.
TEST_P(Cuda, BatchesOfEqualMessages) {
    std::vector<Use> uses(std::begin(kParallelUses), std::end(kParallelUses));
    uses.insert(uses.end(), std::begin(kSerialUses), std::end(kSerialUses));
    constexpr std::size_t kMessages = 9000, kSize = 4096;
    const Bytes input = random_bytes(kMessages * kSize);
    std::uint8_t* in = allocate(input.size());
    std::uint8_t* out = allocate(input.size());
    put(in, input);
    for (const Use use : uses) {
        const Key key = random_key(128);
        Bytes expected;
        std::vector<Segment> segments;
        for (std::size_t m = 0; m < kMessages; ++m) {
            segments.push_back({in + m * kSize, out + m * kSize, kSize, random_block(), 0});
            const Bytes message(input.begin() + m * kSize, input.begin() + (m + 1) * kSize);
            const Bytes one = oracle(key, use, segments.back().iv, 0, message);
            expected.insert(expected.end(), one.begin(), one.end());
        }
        poison(out, input.size());
        auto batch = device_->prepare(use.mode, use.direction, segments);
        ASSERT_TRUE(batch) << batch.error().message;
        const auto ran = device_->run({use.mode, use.direction, &key}, **batch, stream_);
        ASSERT_TRUE(ran) << ran.error().message;
        ASSERT_EQ(get(out, input.size()), expected) << name(use.mode) << " " << name(use.direction);
    }
}

TEST_P(Cuda, SerialModesOfOneMessageAreRefusedWithTheMend) {
    const Key key = random_key(128);
    std::uint8_t* memory = allocate(64);
    for (const Use use : kSerialUses) {
        const auto ran = device_->run({use.mode, use.direction, &key},
                                      Segment{memory, memory, 64, {}, 0}, stream_);
        ASSERT_FALSE(ran);
        EXPECT_EQ(ran.code(), Code::unsupported);
        EXPECT_NE(ran.error().message.find("batch"), std::string::npos) << ran.error().message;
    }
}

TEST_P(Cuda, SeveralThreadsAndStreamsAtOnce) {
    constexpr int kThreads = 6;
    constexpr std::size_t kSize = (std::size_t{5} << 20) + 48;
    std::vector<std::thread> threads;
    std::vector<int> wrong(kThreads, 1);
    const Bytes message = random_bytes(kSize);
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const Use use = kParallelUses[t % 5];
            Bytes raw(t % 2 ? 32 : 16, static_cast<std::uint8_t>(t + 1));
            const Key key = std::move(*Key::import(raw));
            const Block iv{static_cast<std::uint8_t>(t)};
            Bytes expected(kSize), got(kSize);
            const Segment host{message.data(), expected.data(), kSize, iv, 0};
            if (!openssl_->run({use.mode, use.direction, &key}, std::span(&host, 1))) return;
            const Stream stream = *device_->create_stream();
            auto* in = static_cast<std::uint8_t*>(*device_->allocate(kSize));
            auto* out = static_cast<std::uint8_t*>(*device_->allocate(kSize));
            bool right = true;
            for (int round = 0; round < 10 && right; ++round) {
                right = device_->copy_in(in, message.data(), kSize, stream) &&
                        device_->fill(out, kPoison, kSize, stream) &&
                        device_->run({use.mode, use.direction, &key},
                                     Segment{in, out, kSize, iv, 0}, stream) &&
                        device_->copy_out(got.data(), out, kSize, stream) &&
                        device_->wait(stream) && got == expected;
            }
            device_->release(in);
            device_->release(out);
            device_->destroy_stream(stream);
            wrong[t] = right ? 0 : 1;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(kThreads, 0));
}

// More than 64 GiB of counters would be needed to see the stream kernel start anew at 2^32 blocks;
// a counter that begins just below does.
TEST_P(Cuda, LongStreamAcrossTheWrapOf32Bits) {
    const Key key = random_key(256);
    Block counter = random_block();
    std::fill(counter.begin() + 12, counter.end(), std::uint8_t{0xff});
    counter[13] = 0xf0;  // wraps after 1 Mi blocks, 16 MiB
    check_one(key, {Mode::ctr, Direction::encrypt}, (std::size_t{33} << 20) + 11, 0, 0, false,
              counter);
}

TEST_P(Cuda, TooMuchMemoryIsAnErrorAndNotTheEnd) {
    const auto memory = device_->allocate(std::size_t{1} << 45);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.code(), Code::out_of_memory);
    EXPECT_NE(memory.error().message.find("cudaMalloc"), std::string::npos)
        << memory.error().message;
    check_one(random_key(128), {Mode::ctr, Direction::encrypt}, 1000, 0, 0, false, random_block());
}

TEST_P(Cuda, PinnedMemoryIsKnownAsSuch) {
    Bytes pageable(4096);
    EXPECT_FALSE(device_->is_pinned(pageable.data()));
    auto pinned = device_->allocate_pinned(4096);
    ASSERT_TRUE(pinned);
    EXPECT_TRUE(device_->is_pinned(*pinned));
    EXPECT_FALSE(device_->owns(*pinned));
    EXPECT_TRUE(device_->owns(allocate(16)));
    device_->release_pinned(*pinned);
}

INSTANTIATE_TEST_SUITE_P(Layouts, Cuda, testing::Values(4, 2, 1), [](const auto& instance) {
    return std::to_string(instance.param * 32) + "KiB";
});

}  // namespace
