// SPDX-License-Identifier: Apache-2.0
// Host memory through a device, three times as Potesil's thesis has them: "kernel" (the device's
// time alone), "total" (allocation, copy in, kernel, copy out, one after the other) and "async"
// (daelstrom's pipeline, which overlaps them), held against the copies alone.
#include <algorithm>
#include <cstring>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "io/text.hpp"
#include "measure/device.hpp"

namespace dael::bench {
namespace {

using measure::DeviceBuffer;
using measure::DeviceClock;
using measure::DeviceStream;
using measure::Heat;
using measure::HostBuffer;
using measure::Launch;
using measure::MemoryKind;

struct Through {
    DeviceUnderTest subject;
    measure::Sampling sampling;
    DeviceClock clock;
    DeviceStream inward, outward;
    DeviceBuffer pinned_in, pinned_out, device_in, device_out;
    HostBuffer pageable_in, pageable_out;

    measure::Sampler wall(std::function<Result<>()> call) const {
        return measure::wall_clock(std::move(call), sampling);
    }

    // The ceilings copy between pinned memory and the device, chunk by chunk, whatever the row's
    // own memory: no pipeline can move the data faster.
    Result<> copies(std::uint64_t size, std::uint64_t chunk, bool in, bool out) const {
        Memory& memory = subject.device.memory;
        for (std::uint64_t at = 0; at < size; at += chunk) {
            const std::uint64_t count = std::min(chunk, size - at);
            // Where a chunk goes when the message is larger than the device's buffers.
            const std::uint64_t there = at + count <= device_in.size() ? at : 0;
            if (in)
                DAEL_TRY(memory.copy_in(device_in.data() + there, pinned_in.data() + at, count,
                                        inward.get()));
            if (out)
                DAEL_TRY(memory.copy_out(pinned_out.data() + at, device_out.data() + there, count,
                                         outward.get()));
        }
        if (in) DAEL_TRY(subject.device.order.wait(inward.get()));
        return out ? subject.device.order.wait(outward.get()) : Result<>{};
    }

    Result<Heat> prepare(Work work) {
        work.backend = subject.name;
        const bool pinned = work.where == "pinned";
        const std::uint8_t* const from = pinned ? pinned_in.data() : pageable_in.data();
        std::uint8_t* const to = pinned ? pinned_out.data() : pageable_out.data();
        const HostEngine engine{subject.name, "", subject.engine};
        DAEL_LET(made, host_call(engine, work, lay_out(work, from, to)));
        const auto check = [work, from, to](const std::function<Result<>()>& once) -> Result<> {
            for (const Window& window : sample_windows(work))
                std::memset(to + window.begin, kPoison, window.size);
            DAEL_TRY(once());
            return check_output(work, from, measure::fetch_from(to));
        };
        // What the pipeline cuts the message into, for the ceilings to do the same.
        DAEL_TRY(made.call());
        const Ran ran = *made.ran;
        const std::uint64_t chunks = std::max<std::uint64_t>(1, ran.chunks);
        const std::uint64_t chunk =
            std::min<std::uint64_t>((work.size + chunks - 1) / chunks, device_in.size());
        work.threads = ran.threads;
        work.measure = "async";
        const auto bytes = static_cast<double>(work.size);
        Heat heat;
        const auto duplex = heat.enter(
            "copies both ways at once, chunks of " + app::format_size(static_cast<double>(chunk)),
            wall([=, this] { return copies(work.size, chunk, true, true); }));
        const auto inwards =
            heat.enter("copy to the device",
                       wall([=, this] { return copies(work.size, chunk, true, false); }));
        const auto outwards =
            heat.enter("copy from the device",
                       wall([=, this] { return copies(work.size, chunk, false, true); }));
        heat.enter("async", wall(made.call), [=, call = made.call] { return check(call); },
                   work.point(), bytes, {duplex, inwards, outwards});
        if (work.size > device_in.size()) return heat;

        // "kernel" and "total", for what fits into device memory at once.
        DAEL_LET(keys, make_keys(work));
        const auto launch = [engine = subject.engine, work,
                             key = std::make_shared<Key>(std::move(keys.front()))](
                                const std::uint8_t* in, std::uint8_t* out, Stream s) -> Result<> {
            DAEL_TRY(engine->run(work.cipher, *key, lay_out(work, in, out).front(), s));
            return {};
        };
        const Launch kernel = [=, this](Stream s) {
            return launch(device_in.data(), device_out.data(), s);
        };
        work.measure = "kernel";
        const auto copy = heat.enter(
            "copy within device memory",
            clock.by_events(clock.copy_within(device_out.data(), device_in.data(), work.size)));
        const auto kernel_check = [=, this]() -> Result<> {
            DAEL_TRY(clock.copy_in(device_in.data(), from, work.size));
            DAEL_TRY(clock.fill(device_out.data(), kPoison, work.size));
            DAEL_TRY(clock.run(kernel));
            return check_output(work, from, clock.fetch_from(device_out.data()));
        };
        heat.enter("kernel", clock.by_events(kernel), kernel_check, work.point(), bytes, {copy});

        const auto total = [=, this]() -> Result<> {
            DAEL_LET(memory, DeviceBuffer::allocate(subject.device, MemoryKind::device, work.size));
            Memory& device = subject.device.memory;
            return clock.run([&](Stream s) -> Result<> {
                DAEL_TRY(device.copy_in(memory.data(), from, work.size, s));
                DAEL_TRY(launch(memory.data(), memory.data(), s));
                return device.copy_out(to, memory.data(), work.size, s);
            });
        };
        work.measure = "total";
        const auto there_and_back =
            heat.enter("copy in, then copy out",
                       clock.by_wall(
                           [=, this](Stream s) -> Result<> {
                               Memory& device = subject.device.memory;
                               DAEL_TRY(device.copy_in(device_in.data(), from, work.size, s));
                               return device.copy_out(to, device_in.data(), work.size, s);
                           },
                           sampling));
        heat.enter("total", wall(total), [=] { return check(total); }, work.point(), bytes,
                   {there_and_back});
        return heat;
    }
};

}  // namespace

Result<Benchmark> through(const Suite& suite, const DeviceUnderTest& subject) {
    const Workload& workload = suite.workload;
    const DeviceAccess& device = subject.device;
    const std::uint64_t largest =
        measure::fitting(suite.session.report, workload.largest_through(), 4);
    DAEL_LET(clock, DeviceClock::create(device));
    DAEL_LET(inward, DeviceStream::create(device));
    DAEL_LET(outward, DeviceStream::create(device));
    const auto state = std::make_shared<Through>(
        Through{subject, workload.sampling, clock, inward, outward, {}, {}, {}, {}, {}, {}});
    DAEL_LET(free, device.memory.free_memory());
    // In device memory no more than half of what is free.
    const std::size_t there = std::min<std::uint64_t>(largest, free / 4 / kBlockSize * kBlockSize);
    for (const auto& [buffer, kind, size] :
         {std::tuple{&state->pinned_in, MemoryKind::pinned, std::size_t{largest}},
          {&state->pinned_out, MemoryKind::pinned, std::size_t{largest}},
          {&state->device_in, MemoryKind::device, there},
          {&state->device_out, MemoryKind::device, there}}) {
        DAEL_LET(memory, DeviceBuffer::allocate(device, kind, size));
        *buffer = memory;
    }
    for (HostBuffer* buffer : {&state->pageable_in, &state->pageable_out}) {
        DAEL_LET(memory, HostBuffer::allocate(largest));
        *buffer = std::move(memory);
    }
    measure::Team team(measure::thread_count(0));
    measure::fill_random(team, state->pinned_in.data(), largest, 4);
    std::memcpy(state->pageable_in.data(), state->pinned_in.data(), largest);

    std::vector<std::uint64_t> sizes = workload.sweep;
    sizes.push_back(workload.through);
    std::ranges::sort(sizes);
    measure::Axis shapes;
    for (const std::uint64_t size : sizes) shapes.push_back(shape(size));
    const auto has = [workload, largest](const Point& point) {
        const Work work(point);
        if (!work.parallel() || work.is(Mode::xts) || work.tagged() || work.size > largest)
            return false;
        const bool first = work.bits == workload.bits.front();
        // Ordinary memory differs by what the pipeline adds, not by mode or key.
        if (work.where == "pageable" && !first) return false;
        return work.size == workload.through || (work.is(Mode::ctr) && first);
    };
    return Benchmark{subject.name,
                     {measure::axis("bits", workload.bits), ways(suite.options), std::move(shapes),
                      measure::axis("where", std::vector<const char*>{"pinned", "pageable"})},
                     has,
                     [state](const Point& point) { return state->prepare(Work(point)); }};
}

}  // namespace dael::bench
