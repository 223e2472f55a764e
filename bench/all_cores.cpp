// SPDX-License-Identifier: Apache-2.0
// All cores, large messages in host memory, held against memcpy by as many threads; and CTR by
// message size on one core and on all, to set beside the same sizes through a device.
#include <algorithm>
#include <cstring>

#include "bench/check.hpp"
#include "bench/host_engines.hpp"
#include "bench/team.hpp"
#include "pipeline/gcm_work.hpp"
#include "pipeline/host.hpp"

namespace dael::bench {
namespace {

class AllCores {
  public:
    AllCores(Session& session, int threads)
        : session_(session),
          team_(threads),
          alone_(1),
          all_(open_host_engines(session, threads, false)),
          one_(open_host_engines(session, 1, false)) {}

    bool has_engines() const { return !all_.empty(); }

    Result<> allocate(std::uint64_t size) {
        auto in = HostBuffer::allocate(size), out = HostBuffer::allocate(size);
        if (!in) return std::move(in).error();
        if (!out) return std::move(out).error();
        in_ = std::move(*in);
        out_ = std::move(*out);
        fill_random(team_, in_.data(), in_.size(), 2);
        return {};
    }

    // `work` lacks the backend, its level and the threads: engines keep small work on one.
    Result<> race(Work work, const TestKey& key, bool also_on_one_core) {
        if (work.size * work.messages > in_.size()) return {};  // said once, by fitting()
        Heat heat;
        work.threads = pipeline::threads_worth(work.mode, work.direction, work.size * work.messages,
                                               work.messages, team_.threads());
        DAEL_TRY(enter(heat, work, key, all_));
        if (also_on_one_core && work.threads > 1) {
            work.threads = 1;
            DAEL_TRY(enter(heat, work, key, one_));
        }
        return heat.run(session_);
    }

    // One call of the engine that seals a batch; `work` lacks the same.
    Result<> race_gcm(Work work, const TestKey& key) {
        const std::size_t size = work.size * work.messages;
        if (size > in_.size()) return {};
        std::vector<std::uint8_t> tags(work.messages * kTagSize);
        const GcmMessages messages(work, in_.data(), out_.data(), tags.data());
        work.where = "host";
        work.threads = pipeline::threads_worth(
            pipeline::GcmWork(work.direction, messages.as_they_are(), kTagSize), team_.threads());
        Heat heat;
        const std::size_t copy = enter_copy(heat, work);
        for (const HostEngine& engine : all_) {
            work.backend = engine.backend;
            work.isa = engine.isa;
            auto call = gcm_call(engine, key, work, messages);
            if (!call) return std::move(call).error();
            poison(size);
            std::ranges::fill(tags, kPoison);
            DAEL_TRY((*call)());
            DAEL_TRY(check_sealed(work, key, in_.data(), fetch_from(out_.data()),
                                  fetch_from(tags.data())));
            heat.row(work,
                     heat.enter(engine.label(),
                                wall_clock(std::move(*call), session_.workload.sampling)),
                     {copy});
        }
        return heat.run(session_);
    }

  private:
    Result<> enter(Heat& heat, Work work, const TestKey& key,
                   const std::vector<HostEngine>& engines) {
        work.where = "host";
        const auto messages = lay_out(work, in_.data(), out_.data());
        const std::size_t copy = enter_copy(heat, work);
        for (const HostEngine& engine : engines) {
            work.backend = engine.backend;
            work.isa = engine.isa;
            poison(work.size * work.messages);
            const auto call = engine_call(engine, key, work, messages);
            const auto done = call();
            if (work.sector != 0 && done.code() == Code::unsupported) continue;  // cpu has no XTS
            if (!done) return done;
            DAEL_TRY(check_output(work, key, in_.data(), out_.data()));
            heat.row(work, heat.enter(engine.label(), wall_clock(call, session_.workload.sampling)),
                     {copy});
        }
        return {};
    }

    // memcpy on one core, or by every thread that the engine may use.
    std::size_t enter_copy(Heat& heat, const Work& work) {
        Team& team = work.threads == 1 ? alone_ : team_;
        const std::string name = team.threads() == 1
                                     ? "memcpy"
                                     : "memcpy, " + std::to_string(team.threads()) + " threads";
        const auto copy = [&team, size = work.size * work.messages, in = in_.data(),
                           out = out_.data()] {
            team.run(size, [=](std::size_t begin, std::size_t end) {
                std::memcpy(out + begin, in + begin, end - begin);
            });
            return Result<>{};
        };
        return heat.enter(name, wall_clock(copy, session_.workload.sampling));
    }

    void poison(std::size_t size) {
        team_.run(size, [out = out_.data()](std::size_t begin, std::size_t end) {
            std::memset(out + begin, kPoison, end - begin);
        });
    }

    Session& session_;
    Team team_, alone_;
    std::vector<HostEngine> all_, one_;
    HostBuffer in_, out_;
};

}  // namespace

Result<> measure_all_cores(Session& session) {
    const Workload& workload = session.workload;
    AllCores all_cores(session, thread_count(session.options.threads));
    if (!all_cores.has_engines()) return {};
    DAEL_TRY(all_cores.allocate(fitting(session, workload.largest_host(), 2)));
    for (const int bits : workload.bits) {
        const auto key = TestKey::make(bits);
        if (!key) return key.error();
        for (const auto [mode, direction] : ways(session.options)) {
            Work work;
            work.mode = mode;
            work.direction = direction;
            work.bits = bits;
            std::vector<std::uint64_t> sizes = workload.all_cores;
            const bool sweep = mode == Mode::ctr && bits == workload.bits.front();
            if (sweep) {
                sizes.insert(sizes.end(), workload.sweep.begin(), workload.sweep.end());
                std::sort(sizes.begin(), sizes.end());
                sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
            }
            if (!parallel_within_message(mode, direction)) {
                sizes = {workload.host_sequential.size};
                work.messages = workload.host_sequential.count;
            }
            for (const std::uint64_t size : sizes) {
                work.size = size;
                DAEL_TRY(all_cores.race(work, *key, sweep));
            }
        }
        for (Work work : xts_works(session, bits)) {
            work.size = workload.all_cores.back();
            DAEL_TRY(all_cores.race(work, *key, false));
        }
        if (session.options.gcm && wants_gcm(session, bits))
            DAEL_TRY(
                all_cores.race_gcm(gcm_work(bits, Direction::encrypt, workload.gcm_host, 1), *key));
    }
    return {};
}

}  // namespace dael::bench
