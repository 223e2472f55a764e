// SPDX-License-Identifier: Apache-2.0
// Host memory through a device, on a device made of threads: overlap, order, chunk edges, work in
// place, failures of every call, too little memory, many callers.
#include "pipeline/transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include <daelstrom/engine.hpp>

#include "pipeline/chunks.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/measure.hpp"
#include "support/host_device.hpp"
#include "support/oracle.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kChunk = 64 << 10;
constexpr Direction kDirections[] = {Direction::encrypt, Direction::decrypt};

Engine engine_on(HostDevice& device, std::size_t chunk = kChunk) {
    return pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                 {.backend = "threads", .threads = 3, .chunk = chunk});
}

// After the engine is gone: nothing left, nothing wrong.
void expect_clean(HostDevice& device) {
    EXPECT_EQ(device.live(), 0u);
    for (const auto& violation : device.violations()) ADD_FAILURE() << violation;
}

// Page-locked memory of a test device, wiped by its owner as the device asks.
class Pinned {
  public:
    Pinned(HostDevice& device, std::size_t size)
        : device_(device), bytes(static_cast<std::uint8_t*>(*device.allocate_pinned(size)), size) {}
    ~Pinned() {
        wipe(bytes.data(), bytes.size());
        device_.release_pinned(bytes.data());
    }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

  private:
    HostDevice& device_;

  public:
    HostOut bytes;
};

TEST(Chunks, CoverEveryByteOnceAndFitTheirSlots) {
    std::vector<std::uint8_t> memory(3 << 20);
    for (const Mode mode : {Mode::ecb, Mode::ctr})
        for (const std::size_t size : {16, 4096, 65536, 65552, 1 << 20, (3 << 20) - 16})
            for (const std::size_t capacity : {65536, 1 << 20}) {
                core::Segment segment{memory.data(), memory.data(), size, {}, 0};
                if (mode == Mode::ctr) segment.skip = 5;
                const auto chunks =
                    pipeline::cut(mode, Direction::encrypt, std::span(&segment, 1), capacity);
                const std::uint8_t* next = segment.in;
                for (const auto& chunk : chunks.chunks) {
                    EXPECT_LE(chunk.size, capacity);
                    for (const auto& piece : chunks.of(chunk)) {
                        EXPECT_EQ(piece.segment.in, next);
                        EXPECT_EQ(piece.place % 16, 0u);
                        EXPECT_LE(piece.place + piece.segment.size, chunk.size);
                        next += piece.segment.size;
                    }
                }
                EXPECT_EQ(next, segment.in + size);
            }
}

TEST(Chunks, ALongMessageStartsAndEndsSmall) {
    constexpr std::size_t kFull = std::size_t{8} << 20;
    const core::Segment segment{nullptr, nullptr, std::size_t{100} << 20, {}, 0};
    const auto chunks =
        pipeline::cut(Mode::ecb, Direction::encrypt, std::span(&segment, 1), kFull).chunks;
    EXPECT_EQ(chunks.front().size, kFull / 8);
    EXPECT_LE(chunks.back().size, kFull / 4);
    EXPECT_EQ(std::ranges::max(chunks, {}, &pipeline::Chunk::size).size, kFull);
    const core::Segment longer{nullptr, nullptr, std::size_t{1000} << 20, {}, 0};
    EXPECT_LT(
        pipeline::cut(Mode::ecb, Direction::encrypt, std::span(&longer, 1), kFull).chunks.size(),
        1000u / 8u + 8u);
}

TEST(Chunks, ShortMessagesShareChunksAndNeighboursShareCopies) {
    std::vector<std::uint8_t> memory(16 * 1024);
    std::vector<core::Segment> segments;
    for (std::size_t i = 0; i < 16; ++i)
        segments.push_back({memory.data() + i * 1024, memory.data() + i * 1024, 1024, {}, 0});
    const auto chunks = pipeline::cut(Mode::cbc, Direction::encrypt, segments, 8192);
    ASSERT_EQ(chunks.chunks.size(), 2u);
    EXPECT_EQ(pipeline::extents_in(chunks.of(chunks.chunks[0])).size(), 1u);
    EXPECT_EQ(pipeline::extents_in(chunks.of(chunks.chunks[0]))[0].size, 8192u);
}

struct Case {
    bool pinned_in, pinned_out, in_place;
};
constexpr Case kCases[] = {{false, false, false}, {true, true, false},  {true, false, false},
                           {false, true, false},  {false, false, true}, {true, true, true}};

TEST(Transfer, EveryModeAroundChunkEdges) {
    const Bytes raw = random_bytes(16, 1);
    const Key key = *Key::import(raw);
    const Block iv = random_block(2);
    HostDevice device({.delay = std::chrono::microseconds(50)});
    {
        Engine engine = engine_on(device);
        for (const Mode mode : {Mode::ecb, Mode::cbc, Mode::cfb, Mode::ctr})
            for (const Direction direction : kDirections) {
                if (!parallel_within_message(mode, direction)) continue;
                for (std::size_t size : {std::size_t{0}, std::size_t{16}, kChunk - 16, kChunk,
                                         kChunk + 16, 4 * kChunk, 9 * kChunk + 4112}) {
                    if (!whole_blocks_only(mode) && size != 0) size -= 3;
                    for (const auto& [pinned_in, pinned_out, in_place] : kCases) {
                        const Bytes data = random_bytes(size, 3);
                        const Bytes expected = oracle(raw, {mode, direction, iv, 0}, data);
                        Pinned in_locked(device, size + 1), out_locked(device, size + 1);
                        Bytes in_plain(size), out_plain(size);
                        const HostOut in =
                            pinned_in ? in_locked.bytes.first(size) : HostOut(in_plain);
                        const HostOut apart =
                            pinned_out ? out_locked.bytes.first(size) : HostOut(out_plain);
                        const HostOut out = in_place ? in : apart;
                        std::ranges::copy(data, in.begin());
                        const auto ran = engine.run(key, {mode, direction, iv, 0}, in, out);
                        ASSERT_TRUE(ran) << ran.error().message;
                        EXPECT_EQ(ran->backend, "threads:0");
                        EXPECT_EQ(ran->chunks == 0, size == 0);
                        ASSERT_TRUE(std::ranges::equal(out, expected))
                            << name(mode) << " " << size << " pinned " << pinned_in << pinned_out
                            << " in place " << in_place;
                    }
                }
            }
    }
    expect_clean(device);
}

TEST(Transfer, CounterOffsetsInsideABlock) {
    const Bytes raw = random_bytes(32, 4);
    const Key key = *Key::import(raw);
    Block iv;
    iv.fill(0xff);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const std::uint64_t offset : {1, 15, 16, 4097, 1 << 20})
            for (const std::size_t size : {std::size_t{1}, kChunk - 1, kChunk, 5 * kChunk + 7}) {
                const Bytes in = random_bytes(size, 5);
                Bytes out(size);
                ASSERT_TRUE(engine.ctr(key, iv, in, out, offset));
                EXPECT_EQ(out, oracle(raw, {Mode::ctr, Direction::encrypt, iv, offset}, in));
            }
    }
    expect_clean(device);
}

TEST(Transfer, CopiesAndKernelsOfDifferentChunksRunAtOnce) {
    HostDevice device({.delay = std::chrono::milliseconds(2)});
    {
        Engine engine = engine_on(device);
        const Key key = *Key::import(random_bytes(16, 6));
        Bytes data = random_bytes(16 * kChunk, 7);
        ASSERT_TRUE(engine.ecb_encrypt(key, data, data));
        EXPECT_GE(device.most_at_once(), 3);
    }
    expect_clean(device);
}

TEST(Transfer, BatchesOfManyMessages) {
    const Bytes raw = random_bytes(24, 8);
    const Key key = *Key::import(raw);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections)
                for (const bool adjacent : {false, true}) {
                    constexpr std::size_t kCount = 200;
                    std::vector<Bytes> in, out, expected;
                    Bytes together(kCount * 512);
                    std::vector<Message> messages;
                    for (std::uint32_t i = 0; i < kCount; ++i) {
                        std::size_t size = i == 50 ? 3 * kChunk : i * 41;
                        if (whole_blocks_only(mode)) size = size / 16 * 16;
                        if (adjacent) size = 512;
                        in.push_back(random_bytes(size, i));
                        out.emplace_back(size);
                        expected.push_back(
                            oracle(raw, {mode, direction, random_block(i), 0}, in.back()));
                    }
                    for (std::uint32_t i = 0; i < kCount; ++i) {
                        auto* in_place = together.data() + i * 512;
                        if (adjacent) std::ranges::copy(in[i], in_place);
                        messages.push_back({adjacent ? in_place : in[i].data(),
                                            adjacent ? in_place : out[i].data(), in[i].size(),
                                            random_block(i), 0});
                    }
                    const auto ran = engine.run(key, mode, direction, messages);
                    ASSERT_TRUE(ran) << ran.error().message;
                    EXPECT_GT(ran->chunks, 0u);
                    for (std::size_t i = 0; adjacent && i < kCount; ++i)
                        std::copy_n(together.begin() + static_cast<std::ptrdiff_t>(i * 512), 512,
                                    out[i].begin());
                    EXPECT_EQ(out, expected) << name(mode) << " " << name(direction);
                }
    }
    expect_clean(device);
}

TEST(Transfer, ASingleSequentialMessageIsRefusedWithTheMend) {
    HostDevice device;
    Engine engine = engine_on(device);
    const Key key = *Key::import(random_bytes(16, 9));
    Bytes data(64);
    const auto ran = engine.cbc_encrypt(key, {}, data, data);
    EXPECT_EQ(ran.code(), Code::unsupported);
    EXPECT_NE(ran.error().message.find("many messages"), std::string::npos);
    EXPECT_NE(ran.error().message.find("'auto'"), std::string::npos);
}

TEST(Transfer, NothingToDoIsNeverRefused) {
    const Key key = *Key::import(random_bytes(16, 1));
    HostDevice device;
    {
        Engine engine = engine_on(device);
        for (const Mode mode : kModes)
            for (const Direction direction : kDirections) {
                for (const std::size_t messages : {0, 1, 5}) {
                    const std::vector<Message> empty(messages);  // null pointers, no bytes
                    const auto ran = engine.run(key, mode, direction, empty);
                    ASSERT_TRUE(ran) << name(mode) << ": " << ran.error().message;
                    EXPECT_EQ(ran->backend, "threads:0");
                    EXPECT_EQ(ran->chunks, 0u);
                }
                const auto ran = engine.run(key, {mode, direction, {}, 0}, HostIn(), HostOut());
                EXPECT_TRUE(ran) << name(mode) << ": " << ran.error().message;
            }
    }
    EXPECT_EQ(device.kernels(), 0u);
    expect_clean(device);
}

TEST(Transfer, TooLittleMemoryMeansSmallerChunks) {
    const Bytes raw = random_bytes(16, 10);
    const Key key = *Key::import(raw);
    const Bytes in = random_bytes(4 << 20, 11);
    const Bytes expected = oracle(raw, {Mode::ctr, Direction::encrypt, {}, 0}, in);
    for (const std::uint64_t memory :
         {std::uint64_t{3} << 20, std::uint64_t{600} << 10, std::uint64_t{130} << 10})
        for (const bool device_memory : {true, false}) {
            HostDevice device(device_memory ? HostDeviceOptions{.memory = memory}
                                            : HostDeviceOptions{.pinned = memory});
            {
                Engine engine = engine_on(device, 1 << 20);
                Bytes out(in.size());
                const auto ran = engine.ctr(key, {}, in, out);
                ASSERT_TRUE(ran) << ran.error().message << " with " << memory;
                EXPECT_LE(ran->chunks, 64u + 4u);  // 64 KiB each, and the small ones
                EXPECT_GT(ran->chunks, 5u);
                EXPECT_EQ(out, expected);
            }
            expect_clean(device);
        }
    HostDevice device({.memory = 1000});
    {
        Engine engine = engine_on(device, 1 << 20);
        Bytes out(in.size());
        EXPECT_EQ(engine.ctr(key, {}, in, out).code(), Code::out_of_memory);
    }
    expect_clean(device);
}

// Makes the first call that can fail do so, then the second, and so on, until a run passes with
// none.
TEST(Transfer, EveryFailureIsReportedAndLeavesNothingBehind) {
    const Bytes raw = random_bytes(16, 12);
    const Key key = *Key::import(raw);
    std::set<std::string> failed;
    int fail_at = 1;
    for (bool one_failed = true; one_failed; ++fail_at) {
        HostDevice device({.fail_at = fail_at});
        {
            Engine engine = engine_on(device, 4096);
            Bytes single = random_bytes(10 * 4096, 13);
            const Bytes expected = oracle(raw, {Mode::cbc, Direction::decrypt, {}, 0}, single);
            const auto ran = engine.cbc_decrypt(key, {}, single, single);
            std::vector<Bytes> many(40, Bytes(512));
            std::vector<Message> messages;
            for (auto& bytes : many)
                messages.push_back({bytes.data(), bytes.data(), bytes.size(), {}, 0});
            const auto batch = engine.run(key, Mode::cbc, Direction::encrypt, messages);
            one_failed = !device.failed_call().empty();
            EXPECT_EQ(!ran || !batch, one_failed) << fail_at << " " << device.failed_call();
            for (const auto* result : {&ran, &batch})
                if (!*result) {
                    EXPECT_EQ(result->code(), Code::device);
                    EXPECT_NE(result->error().message.find(device.failed_call()), std::string::npos)
                        << result->error().message;
                }
            if (ran) {
                EXPECT_EQ(single, expected);
            }
            failed.insert(device.failed_call());
        }
        expect_clean(device);
    }
    for (const char* call : {"allocate", "allocate_pinned", "create_stream", "create_event",
                             "copy_in", "copy_out", "run", "run batch", "prepare", "record",
                             "stream waits for event", "wait for event", "wait for stream"})
        EXPECT_EQ(failed.count(call), 1u) << call << " was never made to fail";
}

TEST(Transfer, ManyCallersAtOnce) {
    const Bytes raw = random_bytes(16, 14);
    const Key key = *Key::import(raw);
    HostDevice device;
    {
        Engine engine = engine_on(device, 16 << 10);
        std::vector<std::thread> callers;
        for (std::uint32_t caller = 0; caller < 6; ++caller)
            callers.emplace_back([&, caller] {
                const Block iv = random_block(caller);
                for (int round = 0; round < 5; ++round) {
                    Bytes data = random_bytes(100000 + caller, caller);
                    const Bytes expected =
                        oracle(raw, {Mode::cfb, Direction::decrypt, iv, 0}, data);
                    EXPECT_TRUE(
                        engine.run(key, {Mode::cfb, Direction::decrypt, iv, 0}, data, data));
                    EXPECT_EQ(data, expected);
                }
            });
        for (auto& caller : callers) caller.join();
    }
    expect_clean(device);
}

TEST(DeviceMemory, OneLaunchOnTheCallersStream) {
    const Bytes raw = random_bytes(16, 15);
    const Key key = *Key::import(raw);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        const Stream stream = *device.create_stream();
        constexpr std::size_t kSize = 1000;
        auto* memory = static_cast<std::uint8_t*>(*device.allocate(kSize));
        const Bytes in = random_bytes(kSize, 16);
        ASSERT_TRUE(device.wait(stream));
        std::ranges::copy(in, memory);  // this device's memory is the host's
        const int calls = device.calls();
        const auto ran = engine.ctr(key, random_block(17), DeviceIn{memory, kSize},
                                    DeviceOut{memory, kSize}, stream, 33);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(device.calls() - calls, 1);  // the launch alone
        ASSERT_TRUE(device.wait(stream));
        EXPECT_TRUE(std::ranges::equal(
            std::span(memory, kSize),
            oracle(raw, {Mode::ctr, Direction::encrypt, random_block(17), 33}, in)));

        // A batch of two sequential messages, run twice.
        std::vector<Message> messages{{memory, memory, 480, {}, 0},
                                      {memory + 480, memory + 480, 512, random_block(1), 0}};
        auto batch = engine.prepare(Mode::cbc, Direction::encrypt, messages);
        ASSERT_TRUE(batch) << batch.error().message;
        Bytes first(memory, memory + 480);
        for (int round = 0; round < 2; ++round) {
            ASSERT_TRUE(engine.run(key, *batch, stream));
            first = oracle(raw, {Mode::cbc, Direction::encrypt, {}, 0}, first);
        }
        ASSERT_TRUE(device.wait(stream));
        EXPECT_TRUE(std::ranges::equal(std::span(memory, 480), first));

        EXPECT_EQ(engine
                      .run(key, {Mode::ecb, Direction::encrypt, {}, 0}, DeviceIn{memory, 17},
                           DeviceOut{memory, 17}, stream)
                      .code(),
                  Code::ragged_length);
        ASSERT_TRUE(device.fill(memory, 0, kSize, stream));
        device.destroy_stream(stream);
        device.release(memory);
    }
    expect_clean(device);
}

TEST(DeviceMemory, AHostEngineSaysSo) {
    Engine engine = *Engine::open({.backend = "openssl"});
    const Key key = *Key::import(random_bytes(16, 18));
    std::uint8_t byte = 0;
    const auto ran = engine.ctr(key, {}, DeviceIn{&byte, 1}, DeviceOut{&byte, 1}, {});
    EXPECT_EQ(ran.code(), Code::unsupported);
    EXPECT_NE(ran.error().message.find("device memory"), std::string::npos);
}

TEST(Measure, BusAndKernelsOfEveryMode) {
    HostDevice device({.delay = std::chrono::microseconds(500)});
    {
        pipeline::ThreadPool pool(2);
        pipeline::Transfer transfer(device, pool);
        Pinned in(device, 16 * kChunk), out(device, 16 * kChunk);
        std::ranges::copy(random_bytes(16 * kChunk, 20), in.bytes.begin());
        const auto bus = pipeline::measure_bus(device, transfer, in.bytes, out.bytes, kChunk);
        ASSERT_TRUE(bus) << bus.error().message;
        // 64 KiB in at least 500 us: no copy rate can be above 0.14 GB/s.
        for (const double rate : {bus->copy_in, bus->copy_out}) {
            EXPECT_GT(rate, 0);
            EXPECT_LT(rate, 0.14);
        }
        EXPECT_GT(bus->duplex, 0);
        EXPECT_TRUE(std::ranges::equal(in.bytes, out.bytes));  // the bytes did cross
        EXPECT_EQ(device.kernels(), 0u);
        const Key key = *Key::import(random_bytes(16, 19));
        for (const Mode mode : kModes) {
            const auto seconds =
                pipeline::measure_kernel(device, {mode, Direction::encrypt, &key}, 1 << 16, 3);
            ASSERT_TRUE(seconds) << seconds.error().message;
            EXPECT_GE(*seconds, 500e-6);
        }
        EXPECT_EQ(device.kernels(), 4u * kModes.size());
    }
    expect_clean(device);
}

}  // namespace
