// SPDX-License-Identifier: Apache-2.0
// XTS through a device, on a device made of threads: chunks end at sectors' edges, whatever the
// sizes; every failure is reported; device memory takes one launch.
#include <gtest/gtest.h>

#include <algorithm>

#include <daelstrom/engine.hpp>

#include "modes/xts.hpp"
#include "pipeline/chunks.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/host.hpp"
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

void expect_clean(HostDevice& device) {
    EXPECT_EQ(device.live(), 0u);
    for (const auto& violation : device.violations()) ADD_FAILURE() << violation;
}

Result<Ran> run(Engine& engine, Direction direction, const XtsKey& key, const XtsSectors& sectors,
                HostIn in, HostOut out) {
    return direction == Direction::encrypt ? engine.xts_encrypt(key, sectors, in, out)
                                           : engine.xts_decrypt(key, sectors, in, out);
}

TEST(XtsChunks, EndAtSectorsEdges) {
    Bytes memory(5 << 20);
    for (const std::size_t sector : {16, 512, 520, 4096, 100'001, 1 << 20})
        for (const std::size_t size : {16, 65536, 65552, 1 << 20, (5 << 20) - 1})
            for (const std::size_t wanted : {65536, 1 << 20}) {
                const std::size_t capacity = std::max(wanted, pipeline::least_chunk(sector));
                const auto segment =
                    modes::to_segment({3, sector, 0}, memory.data(), memory.data(), size);
                std::size_t done = 0;
                const auto chunks = pipeline::cut_sectors(segment, sector, capacity);
                for (const auto& chunk : chunks.chunks) {
                    ASSERT_EQ(chunks.of(chunk).size(), 1u);
                    const auto& [part, place] = chunks.of(chunk)[0];
                    ASSERT_EQ(place, 0u);
                    ASSERT_EQ(done % sector, 0u);
                    ASSERT_EQ(part.in, segment.in + done);
                    ASSERT_EQ(part.iv, modes::sector_add(segment.iv, done / sector));
                    ASSERT_LE(part.size, capacity);
                    done += part.size;
                }
                ASSERT_EQ(done, size) << sector << " " << capacity;
            }
}

// Notes the segments that it is given.
class Notebook final : public core::Backend {
  public:
    std::string_view name() const override { return "notebook"; }
    std::string description() const override { return "writes down what it is asked"; }
    bool supports(Mode, Direction, std::size_t) const override { return false; }
    Result<> run(const core::Operation&, std::span<const core::Segment>) override {
        return Error{Code::unsupported, "notebook"};
    }
    bool has_xts() const override { return true; }
    Result<> xts(const core::XtsOperation&, const core::Segment& segment) override {
        const std::lock_guard lock(mutex);
        segments.push_back(segment);
        return {};
    }
    std::mutex mutex;
    std::vector<core::Segment> segments;
};

TEST(XtsOnTheHost, IsSharedOutAmongThreadsAtSectorsEdges) {
    Bytes memory(4 << 20);
    const XtsKey key = *XtsKey::import(random_bytes(32, 9));
    pipeline::ThreadPool pool(3);
    for (const std::size_t sector : {512, 4104, 3 << 20}) {
        Notebook notebook;
        const auto whole =
            modes::to_segment({8, sector, 0}, memory.data(), memory.data(), memory.size() - 3);
        const auto threads = pipeline::run_on_host(
            notebook, pool, {Direction::encrypt, &key, sector}, whole, pool.threads());
        ASSERT_TRUE(threads);
        auto& segments = notebook.segments;
        EXPECT_GE(segments.size(), sector == 3 << 20 ? 2u : 12u);  // four for each thread
        std::ranges::sort(segments, {}, &core::Segment::in);
        std::size_t done = 0;
        for (const auto& part : segments) {
            EXPECT_EQ(part.in, whole.in + done);
            EXPECT_EQ(part.iv, modes::sector_add(whole.iv, done / sector));
            EXPECT_EQ(done % sector, 0u);
            done += part.size;
        }
        EXPECT_EQ(done, whole.size);
    }
    Notebook notebook;  // too little to wake a thread for
    const auto little = modes::to_segment({}, memory.data(), memory.data(), 64 << 10);
    ASSERT_TRUE(pipeline::run_on_host(notebook, pool, {Direction::encrypt, &key, 512}, little, 3));
    EXPECT_EQ(notebook.segments.size(), 1u);
}

TEST(XtsTransfer, EverySizeAroundChunkEdges) {
    const Bytes raw = random_bytes(64, 1);
    const XtsKey key = *XtsKey::import(raw);
    HostDevice device({.delay = std::chrono::microseconds(20)});
    {
        Engine engine = engine_on(device);
        for (const std::size_t sector : {16, 512, 523, 4096, 70'000, 300'000})
            for (const Direction direction : kDirections)
                for (const std::size_t size : {std::size_t{0}, std::size_t{16}, kChunk - 16, kChunk,
                                               kChunk + 16, 9 * kChunk + 4112, 20 * kChunk}) {
                    if (size % sector != 0 && size % sector < 16) continue;
                    const XtsSectors sectors{~std::uint64_t{0} - 2, sector, 5};
                    const Bytes data = random_bytes(size, 2);
                    const Bytes expected = oracle_xts(raw, direction, sectors, data);
                    Bytes in = data, out(size, Poisoned::kPoison);
                    const auto apart = run(engine, direction, key, sectors, in, out);
                    ASSERT_TRUE(apart) << apart.error().message;
                    EXPECT_EQ(apart->backend, "threads:0");
                    EXPECT_EQ(apart->chunks == 0, size == 0);
                    ASSERT_EQ(difference(expected, out), "") << sector << " " << size;
                    ASSERT_EQ(difference(data, in), "");
                    ASSERT_TRUE(run(engine, direction, key, sectors, in, in));
                    ASSERT_EQ(difference(expected, in), "") << sector << " " << size;
                }
    }
    expect_clean(device);
}

TEST(XtsTransfer, TooLittleMemoryMeansSmallerChunksButWholeSectors) {
    const Bytes raw = random_bytes(32, 3);
    const XtsKey key = *XtsKey::import(raw);
    const Bytes in = random_bytes(2 << 20, 4);
    HostDevice device({.memory = std::uint64_t{600} << 10});
    {
        Engine engine = engine_on(device, 1 << 20);
        Bytes out(in.size());
        const XtsSectors sectors{1, 200'000};
        const auto ran = engine.xts_encrypt(key, sectors, in, out);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_GE(ran->chunks, 5u);
        EXPECT_EQ(difference(oracle_xts(raw, Direction::encrypt, sectors, in), out), "");
        EXPECT_EQ(engine.xts_encrypt(key, {1, 1 << 20}, in, out).code(), Code::out_of_memory);
    }
    expect_clean(device);
}

TEST(XtsTransfer, EveryFailureIsReportedAndLeavesNothingBehind) {
    const Bytes raw = random_bytes(32, 5);
    const XtsKey key = *XtsKey::import(raw);
    std::set<std::string> failed;
    int fail_at = 1;
    for (bool one_failed = true; one_failed; ++fail_at) {
        HostDevice device({.fail_at = fail_at});
        {
            Engine engine = engine_on(device, 4096);
            const Bytes in = random_bytes(6 * kChunk, 6);
            Bytes out(in.size());
            const auto ran = engine.xts_encrypt(key, {}, in, out);
            one_failed = !device.failed_call().empty();
            EXPECT_EQ(!ran, one_failed) << fail_at << " " << device.failed_call();
            if (!ran) {
                EXPECT_EQ(ran.code(), Code::device);
            } else {
                EXPECT_EQ(difference(oracle_xts(raw, Direction::encrypt, {}, in), out), "");
            }
            failed.insert(device.failed_call());
        }
        expect_clean(device);
    }
    EXPECT_EQ(failed.count("xts"), 1u) << "the kernel was never made to fail";
}

TEST(XtsDeviceMemory, OneLaunchOnTheCallersStream) {
    const Bytes raw = random_bytes(32, 7);
    const XtsKey key = *XtsKey::import(raw);
    HostDevice device;
    {
        Engine engine = engine_on(device);
        const Stream stream = *device.create_stream();
        constexpr std::size_t kSize = 5 * 520 + 33;
        auto* memory = static_cast<std::uint8_t*>(*device.allocate(kSize));
        const Bytes in = random_bytes(kSize, 8);
        std::ranges::copy(in, memory);
        const int calls = device.calls();
        const auto ran = engine.xts_decrypt(key, {77, 520}, DeviceIn{memory, kSize},
                                            DeviceOut{memory, kSize}, stream);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, "threads:0");
        EXPECT_EQ(device.calls() - calls, 1);  // the launch alone
        ASSERT_TRUE(device.wait(stream));
        EXPECT_EQ(difference(oracle_xts(raw, Direction::decrypt, {77, 520}, in),
                             std::span(memory, kSize)),
                  "");
        EXPECT_EQ(
            engine.xts_decrypt(key, {0, 512}, DeviceIn{memory, 513}, DeviceOut{memory, 513}, stream)
                .code(),
            Code::ragged_length);
        EXPECT_TRUE(engine.xts_decrypt(key, {}, DeviceIn{}, DeviceOut{}, stream));
        ASSERT_TRUE(device.fill(memory, 0, kSize, stream));
        device.destroy_stream(stream);
        device.release(memory);
    }
    expect_clean(device);
}

}  // namespace
