// SPDX-License-Identifier: Apache-2.0
#include "pipeline/measure.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "core/guard.hpp"

namespace dael::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a measurement borrows from a device, given back (device memory wiped) when it goes; kept,
// for as long as the process lives, where the device cannot be waited for.
class Borrowed {
  public:
    explicit Borrowed(core::Device& device) : device_(device) {}
    ~Borrowed() {
        if (!quiet()) return;
        for (const auto& [memory, size] : memory_)
            (void)core::guarded([&, to = memory, bytes = size] {
                return device_.memory().fill(to, 0, bytes, stream);
            });
        if (!quiet()) return;
        for (const auto& [memory, size] : memory_) device_.memory().release(memory);
        for (const Event event : events_) device_.order().destroy_event(event);
        if (stream.handle) device_.order().destroy_stream(stream);
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    Result<> open() {
        auto created = device_.order().create_timed_stream();
        if (!created) return std::move(created).error();
        stream = *created;
        return {};
    }
    Result<std::uint8_t*> memory(std::size_t size) {
        auto allocated = device_.memory().allocate(size);
        if (!allocated) return std::move(allocated).error();
        memory_.emplace_back(*allocated, size);
        return static_cast<std::uint8_t*>(*allocated);
    }
    Result<Event> event() {
        auto created = device_.order().create_event();
        if (created) events_.push_back(*created);
        return created;
    }

    Stream stream;

  private:
    bool quiet() {
        return !stream.handle || core::waited([&] { return device_.order().wait(stream); });
    }

    core::Device& device_;
    std::vector<std::pair<void*, std::size_t>> memory_;
    std::vector<Event> events_;
};

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
        DAEL_TRY(device.memory().copy_in(*memory, in.data() + i * chunk, chunk, borrowed.stream));
    DAEL_TRY(device.order().wait(borrowed.stream));
    rates.copy_in = gigabytes / since(start);

    start = Clock::now();
    for (std::size_t i = 0; i < chunks; ++i)
        DAEL_TRY(device.memory().copy_out(out.data() + i * chunk, *memory, chunk, borrowed.stream));
    DAEL_TRY(device.order().wait(borrowed.stream));
    rates.copy_out = gigabytes / since(start);

    TransferOptions options;
    options.chunk = chunk;
    options.transform = false;
    const Message message{in.data(), out.data(), chunks * chunk};
    const std::array<Key, 1> no_key{
        *Key::import(std::array<std::uint8_t, 16>{})};  // nothing is run
    Code code = Code::ok;
    start = Clock::now();
    const Request request{{Mode::ctr}, {no_key}, {&message, 1}, {&code, 1}};
    WorkQueue queue(request, false);
    WorkQueue::Member member(queue, 1);
    DAEL_TRY(transfer.run(request, queue, member, options));
    const double seconds = since(start);
    // Nothing overlaps with the last chunk's way out: a job takes as long as its data and one chunk
    // more.
    rates.duplex = (gigabytes + static_cast<double>(chunk) * 1e-9) / seconds;
    rates.whole_job = gigabytes / seconds;
    return rates;
}

Result<double> measure_kernel(core::Backend& backend, const Cipher& cipher, const Key& key,
                              std::size_t size, int repeats) {
    core::Device& device = *backend.device();
    std::unique_ptr<core::KeyTables> tables;  // these go after all is waited for
    std::unique_ptr<core::Prepared> batch;
    Borrowed borrowed(device);
    DAEL_TRY(borrowed.open());
    DAEL_LET(in, borrowed.memory(size));
    DAEL_LET(out, borrowed.memory(size));
    DAEL_LET(tag, borrowed.memory(2 * kBlockSize));
    DAEL_LET(begin, borrowed.event());
    DAEL_LET(end, borrowed.event());
    DAEL_TRY(device.memory().fill(in, 0x5a, size, borrowed.stream));

    const std::span keys(&key, 1);
    const Message whole{in, out, size, nullptr, 0, tag};
    const bool parallel = parallel_within_message(cipher.mode, cipher.direction);
    if (!parallel || authenticates(cipher.mode)) {
        std::vector<Message> messages;
        const std::size_t each = parallel ? size : 4096;
        for (std::size_t at = 0; at + each <= size; at += each)
            messages.push_back({in + at, out + at, each, nullptr, 0, tag});
        DAEL_LET(made, backend.tables(keys));
        tables = std::move(made);
        DAEL_LET(prepared,
                 device.prepare(cipher, {keys, tables.get()},
                                {messages.data(), static_cast<std::uint32_t>(messages.size())}));
        batch = std::move(prepared);
    }
    const auto launch = [&] {
        return batch ? device.run(*batch, borrowed.stream)
                     : device.run(cipher, {keys}, whole, borrowed.stream);
    };
    DAEL_TRY(launch());
    DAEL_TRY(device.order().record(begin, borrowed.stream));
    for (int i = 0; i < repeats; ++i) DAEL_TRY(launch());
    DAEL_TRY(device.order().record(end, borrowed.stream));
    DAEL_TRY(device.order().wait(borrowed.stream));
    DAEL_LET(elapsed, device.order().elapsed_ms(begin, end));
    return elapsed * 1e-3 / repeats;
}

}  // namespace dael::pipeline
