// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measure.hpp"

#include <algorithm>
#include <chrono>

#include "modes/segment.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/guard.hpp"

namespace dael::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a measurement borrows from a device, given back (device memory wiped) when it goes.
class Borrowed {
  public:
    explicit Borrowed(core::Device& device) : device_(device) {}
    ~Borrowed() {
        if (stream.handle) (void)device_.wait(stream);
        for (auto& [memory, size] : memory_) {
            (void)device_.fill(memory, 0, size, stream);
            (void)device_.wait(stream);
            device_.release(memory);
        }
        for (const core::Event event : events_) device_.destroy_event(event);
        if (stream.handle) device_.destroy_stream(stream);
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    Result<> open() {
        auto created = device_.create_stream();
        if (!created) return std::move(created).error();
        stream = *created;
        return {};
    }
    Result<std::uint8_t*> memory(std::size_t size) {
        auto allocated = device_.allocate(size);
        if (!allocated) return std::move(allocated).error();
        memory_.emplace_back(*allocated, size);
        return static_cast<std::uint8_t*>(*allocated);
    }
    Result<core::Event> event() {
        auto created = device_.create_event();
        if (created) events_.push_back(*created);
        return created;
    }

    Stream stream;

  private:
    core::Device& device_;
    std::vector<std::pair<void*, std::size_t>> memory_;
    std::vector<core::Event> events_;
};

// Allocate, copy in, kernel, copy out, each after the other, in parts of at most `part` bytes. Adds
// the kernel's own time to `kernel`.
Result<> one_after_another(core::Device& device, const core::Operation& operation,
                           const core::Segment& whole, std::size_t part, double& kernel) {
    for (const core::Segment& segment : modes::split(operation.mode, whole, part)) {
        Borrowed borrowed(device);
        DAEL_TRY(borrowed.open());
        auto begin = borrowed.event(), end = borrowed.event();
        if (!begin || !end) return begin ? std::move(end).error() : std::move(begin).error();
        auto in = borrowed.memory(segment.size), out = borrowed.memory(segment.size);
        if (!in || !out) return in ? std::move(out).error() : std::move(in).error();
        DAEL_TRY(device.copy_in(*in, segment.in, segment.size, borrowed.stream));
        DAEL_TRY(device.wait(borrowed.stream));
        DAEL_TRY(device.record(*begin, borrowed.stream));
        DAEL_TRY(device.run(operation, {*in, *out, segment.size, segment.iv, segment.skip},
                            borrowed.stream));
        DAEL_TRY(device.record(*end, borrowed.stream));
        DAEL_TRY(device.wait(*end));
        DAEL_TRY(device.copy_out(segment.out, *out, segment.size, borrowed.stream));
        DAEL_TRY(device.wait(borrowed.stream));
        auto elapsed = device.elapsed_ms(*begin, *end);
        if (!elapsed) return std::move(elapsed).error();
        kernel += *elapsed * 1e-3;
    }
    return {};
}

Result<double> timed_transfer(Transfer& transfer, const core::Operation& operation,
                              const core::Segment& segment, const TransferOptions& options) {
    const auto start = Clock::now();
    auto done = transfer.run(operation, std::span(&segment, 1), options);
    if (!done) return std::move(done).error();
    return since(start);
}

}  // namespace

Result<ThreeTimes> measure_three_times(Engine& engine, const Key& key, const Cipher& cipher,
                                       HostIn in, HostOut out) {
    return guarded([&]() -> Result<ThreeTimes> {
        auto lane = engine.state().lane_of(nullptr);
        if (!lane) return std::move(lane).error();
        core::Device& device = (*lane)->device;
        auto segment =
            modes::to_segment(cipher.mode, cipher.direction,
                              {in.data(), out.data(), in.size(), cipher.iv, cipher.offset});
        if (!segment) return std::move(segment).error();
        const core::Operation operation{cipher.mode, cipher.direction, &key};

        ThreeTimes times;
        auto free = device.free_memory();
        if (!free) return std::move(free).error();
        const std::size_t most = std::max<std::size_t>(*free / 4 / 4096 * 4096, 4096);
        const auto start = Clock::now();
        DAEL_TRY(one_after_another(device, operation, *segment, most, times.kernel));
        times.total = since(start);

        TransferOptions options = engine.state().transfer_options(**lane);
        options.transform = false;
        auto duplex = timed_transfer((*lane)->transfer, operation, *segment, options);
        if (!duplex) return std::move(duplex).error();
        times.duplex = *duplex;
        options.transform = true;
        auto async = timed_transfer((*lane)->transfer, operation, *segment, options);
        if (!async) return std::move(async).error();
        times.async = *async;
        return times;
    });
}

Result<BusRates> measure_bus(core::Device& device, Transfer& transfer, HostIn in, HostOut out,
                             std::size_t chunk) {
    Borrowed borrowed(device);
    DAEL_TRY(borrowed.open());
    auto memory = borrowed.memory(chunk);
    if (!memory) return std::move(memory).error();
    const std::size_t chunks = in.size() / chunk;
    const double gigabytes = static_cast<double>(chunks * chunk) * 1e-9;
    BusRates rates;

    auto start = Clock::now();
    for (std::size_t i = 0; i < chunks; ++i)
        DAEL_TRY(device.copy_in(*memory, in.data() + i * chunk, chunk, borrowed.stream));
    DAEL_TRY(device.wait(borrowed.stream));
    rates.copy_in = gigabytes / since(start);

    start = Clock::now();
    for (std::size_t i = 0; i < chunks; ++i)
        DAEL_TRY(device.copy_out(out.data() + i * chunk, *memory, chunk, borrowed.stream));
    DAEL_TRY(device.wait(borrowed.stream));
    rates.copy_out = gigabytes / since(start);

    TransferOptions options;
    options.chunk = chunk;
    options.transform = false;
    const core::Segment segment{in.data(), out.data(), chunks * chunk, {}, 0};
    auto seconds =
        timed_transfer(transfer, {Mode::ctr, Direction::encrypt, nullptr}, segment, options);
    if (!seconds) return std::move(seconds).error();
    rates.duplex = gigabytes / *seconds;
    return rates;
}

Result<double> measure_kernel(core::Device& device, const core::Operation& operation,
                              std::size_t size, int repeats) {
    Borrowed borrowed(device);
    DAEL_TRY(borrowed.open());
    auto in = borrowed.memory(size), out = borrowed.memory(size);
    if (!in || !out) return in ? std::move(out).error() : std::move(in).error();
    auto begin = borrowed.event(), end = borrowed.event();
    if (!begin || !end) return begin ? std::move(end).error() : std::move(begin).error();
    DAEL_TRY(device.fill(*in, 0x5a, size, borrowed.stream));

    // Sequential modes: messages of 4 KiB, one device thread each.
    std::unique_ptr<core::PreparedBatch> batch;
    if (!parallel_within_message(operation.mode, operation.direction)) {
        std::vector<core::Segment> messages;
        constexpr std::size_t kMessage = 4096;
        for (std::size_t at = 0; at + kMessage <= size; at += kMessage)
            messages.push_back({*in + at, *out + at, kMessage, {}, 0});
        auto prepared = device.prepare(operation.mode, operation.direction, messages);
        if (!prepared) return std::move(prepared).error();
        batch = std::move(*prepared);
    }
    const auto launch = [&] {
        return batch ? device.run(operation, *batch, borrowed.stream)
                     : device.run(operation, {*in, *out, size, {}, 0}, borrowed.stream);
    };
    DAEL_TRY(launch());
    DAEL_TRY(device.record(*begin, borrowed.stream));
    for (int i = 0; i < repeats; ++i) DAEL_TRY(launch());
    DAEL_TRY(device.record(*end, borrowed.stream));
    DAEL_TRY(device.wait(borrowed.stream));
    auto elapsed = device.elapsed_ms(*begin, *end);
    if (!elapsed) return std::move(elapsed).error();
    return *elapsed * 1e-3 / repeats;
}

}  // namespace dael::pipeline
