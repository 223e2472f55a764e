// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bench/check.hpp"
#include "bench/device_objects.hpp"
#include "bench/device_under_test.hpp"
#include "bench/resident_gcm.hpp"
#include "bench/team.hpp"
#include "modes/xts.hpp"

namespace dael::bench {
namespace {

constexpr std::size_t kMargin = 16;  // room to start a few bytes late
constexpr std::size_t kTiny = 16;    // bytes of a fill that costs a launch and nothing else
constexpr int kTrain = 100;          // launches back to back

class Resident {
  public:
    Resident(Session& session, DeviceUnderTest& subject, DeviceClock clock)
        : session_(session),
          subject_(subject),
          device_(subject.device),
          name_(subject.name),
          clock_(std::move(clock)) {}

    Result<> allocate(std::size_t size) {
        auto host = HostBuffer::allocate(size + kMargin);
        if (!host) return std::move(host).error();
        memory_.host = std::move(*host);
        for (auto* memory : {&memory_.in, &memory_.out}) {
            auto allocated =
                DeviceMemory::allocate(device_, MemoryKind::device, memory_.host.size());
            if (!allocated) return std::move(allocated).error();
            *memory = std::move(*allocated);
        }
        Team team(thread_count(0));
        fill_random(team, memory_.host.data(), memory_.host.size(), 3);
        return clock_.run([&](Stream s) {
            return device_.copy_in(memory_.in.data(), memory_.host.data(), memory_.host.size(), s);
        });
    }

    // One message, or a batch in one launch when `work.messages` says so. `work` lacks the backend.
    Result<> race(Work work, const TestKey& key) {
        work.backend = name_;
        work.where = "device";
        const std::size_t shift = work.placement == "unaligned" ? 1 : 0;
        std::uint8_t* const out = memory_.out.data() + 3 * shift;
        const std::uint8_t* const in =
            work.placement == "in place" ? out : memory_.in.data() + shift;
        const std::size_t size = work.size * work.messages;
        if (size + kMargin > memory_.in.size())
            return Error{Code::out_of_memory, size_name(work) + " do not fit into device memory"};

        auto launch = launcher(work, key, in, out);
        if (!launch) return std::move(launch).error();
        DAEL_TRY(clock_.run([&](Stream s) {
            return in == out ? device_.copy_in(out, memory_.host.data() + shift, size, s)
                             : device_.fill(out, kPoison, size, s);
        }));
        DAEL_TRY(clock_.run(*launch));
        DAEL_TRY(check_output(work, key, memory_.host.data() + shift, clock_.fetch_from(out)));
        return work.measure == "kernel" ? race_copy(work, *launch) : race_launch(work, *launch);
    }

    Result<> race_gcm(const Work& work, const TestKey& key) {
        return race_resident_gcm(session_, subject_, clock_, memory_, work, key);
    }

  private:
    // The kernel's own time against a copy of as many bytes.
    Result<> race_copy(const Work& work, const Launch& launch) {
        Heat heat;
        const std::size_t size = work.size * work.messages;
        const auto copy =
            heat.enter("copy within device memory", clock_.by_events([=, this](Stream s) {
                return device_.copy_within(memory_.out.data(), memory_.in.data(), size, s);
            }));
        heat.row(work, heat.enter(name_, clock_.by_events(launch)), {copy});
        return heat.run(session_);
    }

    // What a launch costs its caller, one after another and alone, against a fill of 16 bytes.
    Result<> race_launch(Work work, const Launch& launch) {
        const Launch tiny = [this](Stream s) {
            return device_.fill(memory_.out.data(), 0, kTiny, s);
        };
        Heat heat;
        work.measure = "launch";
        const auto least = heat.enter("fill of 16 bytes", clock_.back_to_back(tiny, kTrain));
        heat.row(work, heat.enter(name_, clock_.back_to_back(launch, kTrain)), {least});
        work.measure = "latency";
        const auto soonest =
            heat.enter("fill of 16 bytes", clock_.by_wall(tiny, session_.workload.sampling));
        heat.row(work, heat.enter(name_, clock_.by_wall(launch, session_.workload.sampling)),
                 {soonest});
        return heat.run(session_);
    }

    Result<Launch> launcher(const Work& work, const TestKey& key, const std::uint8_t* in,
                            std::uint8_t* out) {
        if (work.sector != 0)
            return Launch(
                [this, operation = core::XtsOperation{work.direction, &*key.xts, work.sector},
                 segment = modes::to_segment({kFirstSector, work.sector}, in, out, work.size)](
                    Stream s) { return device_.xts(operation, segment, s); });
        std::vector<core::Segment> segments;
        for (const Message& m : lay_out(work, in, out))
            segments.push_back({m.in, m.out, m.size, m.iv, 0});
        const core::Operation operation{work.mode, work.direction, &key.key};
        if (segments.size() == 1)
            return Launch([this, operation, segment = segments.front()](Stream s) {
                return device_.run(operation, segment, s);
            });
        auto prepared = device_.prepare(work.mode, work.direction, segments);
        if (!prepared) return std::move(prepared).error();
        return Launch(
            [this, operation, batch = std::shared_ptr<core::PreparedBatch>(std::move(*prepared))](
                Stream s) { return device_.run(operation, *batch, s); });
    }

    Session& session_;
    DeviceUnderTest& subject_;
    core::Device& device_;
    std::string name_;
    DeviceClock clock_;
    ResidentMemory memory_;
};

// Every piece of work in device memory, less the backend.
std::vector<Work> resident_works(const Session& session, int bits) {
    const Workload& workload = session.workload;
    std::vector<Work> works;
    for (const auto [mode, direction] : ways(session.options)) {
        Work base;
        base.mode = mode;
        base.direction = direction;
        base.bits = bits;
        base.measure = "kernel";
        const bool parallel = parallel_within_message(mode, direction);
        const auto add = [&](std::uint64_t size, std::uint64_t messages, const char* measure,
                             const char* placement) {
            Work work = base;
            work.size = size;
            work.messages = messages;
            work.measure = measure;
            work.placement = placement;
            works.push_back(work);
        };
        for (const auto& [size, count] : parallel ? workload.parallel : workload.sequential)
            if (mode != Mode::cfb || !parallel) add(size, count, "kernel", "apart");
        if (!parallel) continue;
        add(workload.device, 1, "kernel", "apart");
        if (mode == Mode::ctr || (mode == Mode::ecb && direction == Direction::encrypt)) {
            for (const auto size : workload.device_sweep)
                if (size != workload.device) add(size, 1, "kernel", "apart");
            add(workload.device_sweep.front(), 1, "launch", "apart");
        }
        if (mode == Mode::ctr || mode == Mode::cbc)
            for (const char* placement : {"in place", "unaligned"})
                add(workload.device, 1, "kernel", placement);
    }
    for (Work work : xts_works(session, bits)) {
        work.size = workload.device;
        work.measure = "kernel";
        works.push_back(work);
    }
    return works;
}

}  // namespace

Result<> measure_resident(Session& session, DeviceUnderTest& subject) {
    auto clock = DeviceClock::create(subject.device);
    if (!clock) return std::move(clock).error();
    Resident resident(session, subject, std::move(*clock));
    const auto free = subject.device.free_memory();
    if (!free) return free.error();
    const std::uint64_t most = *free / 8 * 3;  // input and output, and room for others
    if (auto allocated = resident.allocate(std::min(session.workload.largest_device(), most));
        !allocated) {
        session.skip(subject.name + ", device memory: " + allocated.error().message);
        return {};
    }
    for (const int bits : session.workload.bits) {
        const auto key = TestKey::make(bits);
        if (!key) return key.error();
        const auto skipped_where_impossible = [&](const Work& work, Result<> raced) -> Result<> {
            if (raced.code() != Code::unsupported && raced.code() != Code::out_of_memory)
                return raced;
            session.skip(subject.name + ", " + cipher_name(work) + ": " + raced.error().message);
            return {};
        };
        for (const Work& work : resident_works(session, bits))
            DAEL_TRY(skipped_where_impossible(work, resident.race(work, *key)));
        for (const Work& work : resident_gcm_works(session, bits))
            DAEL_TRY(skipped_where_impossible(work, resident.race_gcm(work, *key)));
    }
    return {};
}

}  // namespace dael::bench
