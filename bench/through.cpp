// SPDX-License-Identifier: Apache-2.0
// Host memory through a device, three times as Potesil's thesis has them: "kernel" (the device's
// time alone), "total" (allocation, copy in, kernel, copy out, one after the other) and "async"
// (daelstrom's pipeline, which overlaps them), held against the copies alone.
#include <algorithm>
#include <cstring>

#include "bench/check.hpp"
#include "bench/device_objects.hpp"
#include "bench/device_under_test.hpp"
#include "bench/team.hpp"
#include "io/text.hpp"

namespace dael::bench {
namespace {

// Where messages lie in host memory.
struct HostPair {
    std::uint8_t* in;
    std::uint8_t* out;
};

class Through {
  public:
    Through(Session& session, DeviceUnderTest& subject, DeviceClock clock, DeviceStream inward,
            DeviceStream outward)
        : session_(session),
          subject_(subject),
          device_(subject.device),
          clock_(std::move(clock)),
          inward_(std::move(inward)),
          outward_(std::move(outward)) {}

    // Buffers for messages of up to `size` bytes; in device memory no more than half of what is
    // free.
    Result<> allocate(std::size_t size) {
        for (auto* memory : {&pinned_in_, &pinned_out_})
            DAEL_TRY(allocate_into(*memory, MemoryKind::pinned, size));
        for (auto* memory : {&pageable_in_, &pageable_out_}) {
            auto allocated = HostBuffer::allocate(size);
            if (!allocated) return std::move(allocated).error();
            *memory = std::move(*allocated);
        }
        const auto free = device_.free_memory();
        if (!free) return free.error();
        const std::size_t on_device =
            std::min<std::uint64_t>(size, *free / 4 / kBlockSize * kBlockSize);
        for (auto* memory : {&device_in_, &device_out_})
            DAEL_TRY(allocate_into(*memory, MemoryKind::device, on_device));
        Team team(thread_count(0));
        fill_random(team, pinned_in_.data(), size, 4);
        std::memcpy(pageable_in_.data(), pinned_in_.data(), size);
        return {};
    }

    // From page-locked memory, and perhaps from ordinary memory too. `work` lacks the backend and
    // where the data lies.
    Result<> race(Work work, const TestKey& key, bool also_pageable) {
        work.backend = subject_.name;
        work.where = "pinned";
        DAEL_TRY(race_from(work, key, {pinned_in_.data(), pinned_out_.data()}));
        if (!also_pageable) return {};
        work.where = "pageable";
        return race_from(work, key, {pageable_in_.data(), pageable_out_.data()});
    }

  private:
    Result<> race_from(Work work, const TestKey& key, const HostPair& host) {
        auto first = verify(work, key, host);
        if (!first) return std::move(first).error();
        work.threads = first->threads;
        const std::uint64_t chunk = chunk_of(work, *first);
        Heat heat;
        work.measure = "async";
        const auto async = heat.enter("async", wall([this, &key, work, host]() -> Result<> {
                                          DAEL_TRY(engine_run(work, key, host));
                                          return {};
                                      }));
        const auto duplex = heat.enter(
            "copies both ways at once, chunks of " + app::format_size(static_cast<double>(chunk)),
            wall([this, work, chunk] { return copy_both_ways(work.size, chunk); }));
        const auto inward =
            heat.enter("copy to the device", wall([this, work, chunk]() -> Result<> {
                           DAEL_TRY(copy_in(work.size, chunk));
                           return device_.wait(inward_.get());
                       }));
        const auto outward =
            heat.enter("copy from the device", wall([this, work, chunk]() -> Result<> {
                           DAEL_TRY(copy_out(work.size, chunk));
                           return device_.wait(outward_.get());
                       }));
        heat.row(work, async, {duplex, inward, outward});
        if (work.size <= device_in_.size()) DAEL_TRY(enter_unoverlapped(heat, work, key, host));
        return heat.run(session_);
    }

    // "kernel" and "total", for what fits into device memory at once; each is checked first.
    Result<> enter_unoverlapped(Heat& heat, Work work, const TestKey& key, const HostPair& host) {
        const core::Operation operation{work.mode, work.direction, &key.key};
        const Launch launch = [=, this](Stream s) {
            return device_.run(operation, segment(work, device_in_.data(), device_out_.data()), s);
        };
        const auto from_host_to_host = [=, this]() -> Result<> {
            auto memory = DeviceMemory::allocate(device_, MemoryKind::device, work.size);
            if (!memory) return std::move(memory).error();
            return clock_.run([&](Stream s) -> Result<> {
                DAEL_TRY(device_.copy_in(memory->data(), host.in, work.size, s));
                DAEL_TRY(device_.run(operation, segment(work, memory->data(), memory->data()), s));
                return device_.copy_out(host.out, memory->data(), work.size, s);
            });
        };
        DAEL_TRY(clock_.run(
            [&](Stream s) { return device_.copy_in(device_in_.data(), host.in, work.size, s); }));
        DAEL_TRY(clock_.run(
            [&](Stream s) { return device_.fill(device_out_.data(), kPoison, work.size, s); }));
        DAEL_TRY(clock_.run(launch));
        DAEL_TRY(check_output(work, key, host.in, clock_.fetch_from(device_out_.data())));
        poison(work, host);
        DAEL_TRY(from_host_to_host());
        DAEL_TRY(check_output(work, key, host.in, host.out));

        work.measure = "kernel";
        const auto copy =
            heat.enter("copy within device memory", clock_.by_events([=, this](Stream s) {
                return device_.copy_within(device_out_.data(), device_in_.data(), work.size, s);
            }));
        heat.row(work, heat.enter("kernel", clock_.by_events(launch)), {copy});

        work.measure = "total";
        const auto copies =
            heat.enter("copy in, then copy out",
                       clock_.by_wall(
                           [=, this](Stream s) -> Result<> {
                               DAEL_TRY(device_.copy_in(device_in_.data(), host.in, work.size, s));
                               return device_.copy_out(host.out, device_in_.data(), work.size, s);
                           },
                           session_.workload.sampling));
        heat.row(work, heat.enter("total", wall(from_host_to_host)), {copies});
        return {};
    }

    // What will be compared.
    static void poison(const Work& work, const HostPair& host) {
        for (const Window& window : sample_windows(work))
            std::memset(host.out + window.begin, kPoison, window.size);
    }

    // The pipeline's first run, checked against OpenSSL.
    Result<Ran> verify(const Work& work, const TestKey& key, const HostPair& host) {
        poison(work, host);
        auto ran = engine_run(work, key, host);
        if (ran) DAEL_TRY(check_output(work, key, host.in, host.out));
        return ran;
    }

    // What the pipeline cut the message into, for the ceilings to do the same.
    std::uint64_t chunk_of(const Work& work, const Ran& ran) const {
        const std::uint64_t chunks = std::max<std::uint64_t>(1, ran.chunks);
        return std::min<std::uint64_t>((work.size + chunks - 1) / chunks, device_in_.size());
    }

    Result<Ran> engine_run(const Work& work, const TestKey& key, const HostPair& host) {
        return subject_.engine.run(key.key, {work.mode, work.direction, message_iv(0), 0},
                                   HostIn(host.in, work.size), HostOut(host.out, work.size));
    }

    static core::Segment segment(const Work& work, const std::uint8_t* in, std::uint8_t* out) {
        return {in, out, work.size, message_iv(0), 0};
    }

    // The ceilings copy between pinned memory and the device, chunk by chunk, whatever the row's
    // own memory: no pipeline can move the data faster.
    Result<> copy_both_ways(std::uint64_t size, std::uint64_t chunk) {
        for (std::uint64_t at = 0; at < size; at += chunk) {
            const std::uint64_t count = std::min(chunk, size - at);
            DAEL_TRY(copy_in_at(at, count));
            DAEL_TRY(copy_out_at(at, count));
        }
        DAEL_TRY(device_.wait(inward_.get()));
        return device_.wait(outward_.get());
    }
    Result<> copy_in(std::uint64_t size, std::uint64_t chunk) {
        for (std::uint64_t at = 0; at < size; at += chunk)
            DAEL_TRY(copy_in_at(at, std::min(chunk, size - at)));
        return {};
    }
    Result<> copy_out(std::uint64_t size, std::uint64_t chunk) {
        for (std::uint64_t at = 0; at < size; at += chunk)
            DAEL_TRY(copy_out_at(at, std::min(chunk, size - at)));
        return {};
    }
    // Where a chunk goes in the device's buffers when the message is larger than they are.
    std::uint64_t wrapped(std::uint64_t at, std::uint64_t count) const {
        return at + count <= device_in_.size() ? at : 0;
    }
    Result<> copy_in_at(std::uint64_t at, std::uint64_t count) {
        return device_.copy_in(device_in_.data() + wrapped(at, count), pinned_in_.data() + at,
                               count, inward_.get());
    }
    Result<> copy_out_at(std::uint64_t at, std::uint64_t count) {
        return device_.copy_out(pinned_out_.data() + at, device_out_.data() + wrapped(at, count),
                                count, outward_.get());
    }

    Sampler wall(std::function<Result<>()> call) const {
        return wall_clock(std::move(call), session_.workload.sampling);
    }

    Result<> allocate_into(DeviceMemory& memory, MemoryKind kind, std::size_t size) {
        auto allocated = DeviceMemory::allocate(device_, kind, size);
        if (!allocated) return std::move(allocated).error();
        memory = std::move(*allocated);
        return {};
    }

    Session& session_;
    DeviceUnderTest& subject_;
    core::Device& device_;
    DeviceClock clock_;
    DeviceStream inward_, outward_;
    DeviceMemory pinned_in_, pinned_out_, device_in_, device_out_;
    HostBuffer pageable_in_, pageable_out_;
};

// Every piece of work in host memory, less the backend and the kind of memory.
std::vector<Work> through_works(const Session& session, int bits) {
    const Workload& workload = session.workload;
    std::vector<Work> works;
    for (const auto [mode, direction] : ways(session.options)) {
        if (!parallel_within_message(mode, direction)) continue;
        std::vector<std::uint64_t> sizes{workload.through};
        if (mode == Mode::ctr && bits == workload.bits.front())
            sizes.insert(sizes.end(), workload.sweep.begin(), workload.sweep.end());
        std::sort(sizes.begin(), sizes.end());
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        for (const std::uint64_t size : sizes) {
            Work work;
            work.mode = mode;
            work.direction = direction;
            work.bits = bits;
            work.size = size;
            works.push_back(work);
        }
    }
    return works;
}

}  // namespace

Result<> measure_through(Session& session, DeviceUnderTest& subject) {
    if (ways(session.options).empty()) return {};  // only what is measured elsewhere
    const Workload& workload = session.workload;
    auto clock = DeviceClock::create(subject.device);
    if (!clock) return std::move(clock).error();
    auto inward = DeviceStream::create(subject.device);
    if (!inward) return std::move(inward).error();
    auto outward = DeviceStream::create(subject.device);
    if (!outward) return std::move(outward).error();
    Through through(session, subject, std::move(*clock), std::move(*inward), std::move(*outward));
    const std::uint64_t largest = fitting(session, workload.largest_through(), 4);
    if (auto allocated = through.allocate(largest); !allocated) {
        session.skip(subject.name + ", host memory: " + allocated.error().message);
        return {};
    }
    // Ordinary memory differs by what the pipeline adds, not by mode or key: once each is enough.
    for (const int bits : workload.bits) {
        const auto key = TestKey::make(bits);
        if (!key) return key.error();
        for (const Work& work : through_works(session, bits)) {
            if (work.size > largest) continue;
            DAEL_TRY(through.race(work, *key, bits == workload.bits.front()));
        }
    }
    return {};
}

}  // namespace dael::bench
