// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measure.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

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
        auto created = device_.create_timed_stream();
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

Result<double> timed_transfer(Transfer& transfer, const core::Operation& operation,
                              const core::Segment& segment, const TransferOptions& options) {
    const auto start = Clock::now();
    auto done = transfer.run(operation, std::span(&segment, 1), options);
    if (!done) return std::move(done).error();
    return since(start);
}

}  // namespace

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
    // Nothing overlaps with the last chunk's way out: a job takes as long as its data and one chunk
    // more.
    rates.duplex = (gigabytes + static_cast<double>(chunk) * 1e-9) / *seconds;
    rates.whole_job = gigabytes / *seconds;
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
