// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <set>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/suite.hpp"

namespace dael::bench {
namespace {

using measure::Heat;
using measure::HostBuffer;
using measure::Team;

struct AllCores {
    AllCores(const Suite& suite, int threads)
        : sampling(suite.workload.sampling),
          team(threads),
          alone(1),
          all(open_host_engines(suite, threads, false)),
          one(open_host_engines(suite, 1, false)) {}

    measure::Sampling sampling;
    Team team, alone;
    std::vector<HostEngine> all, one;
    HostBuffer in, out;
    std::vector<std::uint8_t> tags;
    std::set<std::uint64_t> small;  // sizes that an engine with all threads keeps on one

    void poison(std::size_t size) {
        team.run(size, [this](std::size_t begin, std::size_t end) {
            std::memset(out.data() + begin, kPoison, end - begin);
        });
        std::ranges::fill(tags, kPoison);
    }

    Result<Heat> prepare(Work work) {
        const bool alone_only = work.threads == 1;
        Heat heat;
        if (alone_only && small.contains(work.size)) return heat;
        const auto messages = lay_out(work, in.data(), out.data(), tags.data());
        std::optional<std::size_t> ceiling;
        for (const HostEngine& engine : alone_only ? one : all) {
            work.backend = engine.backend;
            work.form = engine.form;
            DAEL_LET(made, host_call(engine, work, messages));
            const auto once = made.call();
            if (once.code() == Code::unsupported) continue;  // libipsec-mb has no XTS
            if (!once) return once.error();
            work.threads = made.ran->threads;
            if (!alone_only && work.threads == 1) small.insert(work.size);
            if (!ceiling) {
                Team& by = work.threads == 1 ? alone : team;
                ceiling = enter_memcpy(heat, by, out.data(), in.data(), work.bytes(), sampling);
            }
            const auto check = [=, this]() -> Result<> {
                poison(work.bytes());
                DAEL_LET(anew, host_call(engine, work, messages));  // from the first nonces on
                DAEL_TRY(anew.call());
                return check_output(work, in.data(), measure::fetch_from(out.data()),
                                    work.tagged() ? measure::fetch_from(tags.data()) : Fetch{});
            };
            heat.enter(engine.label(), measure::wall_clock(made.call, sampling), check,
                       work.point(), static_cast<double>(work.bytes()), {*ceiling});
        }
        return heat;
    }
};

}  // namespace

Result<Benchmark> all_cores(const Suite& suite) {
    const Workload& workload = suite.workload;
    const int threads = measure::thread_count(suite.options.threads);
    const auto state = std::make_shared<AllCores>(suite, threads);
    const bool nothing = state->all.empty();
    const std::uint64_t largest =
        nothing ? 0 : measure::fitting(suite.session.report, workload.largest_host(), 2);
    for (HostBuffer* buffer : {&state->in, &state->out}) {
        DAEL_LET(memory, HostBuffer::allocate(largest));
        *buffer = std::move(memory);
    }
    measure::fill_random(state->team, state->in.data(), largest, 2);
    state->tags.resize(workload.gcm_host.count * gcm::kTagSize);

    std::vector<std::uint64_t> sizes = workload.all_cores;
    sizes.insert(sizes.end(), workload.sweep.begin(), workload.sweep.end());
    std::ranges::sort(sizes);
    measure::Axis shapes;
    for (const std::uint64_t size : sizes) shapes.push_back(shape(size));
    shapes.push_back(shape(workload.host_sequential.size, workload.host_sequential.count));
    shapes.push_back(shape(workload.gcm_host.size, workload.gcm_host.count, 1));
    const auto has = [options = suite.options, workload, largest](const Point& point) {
        const Work work(point);
        if (work.bytes() > largest) return false;  // said once, by fitting()
        if (!has_bits(options, work) || work.mac_only) return false;
        const bool one = work.threads == 1;
        if (work.tagged())
            return !one && work.keys == 1 && work.cipher.direction == Direction::encrypt;
        if (work.keys != 0) return false;
        if (!work.parallel())
            return !one && Shape{work.size, work.messages} == workload.host_sequential;
        if (work.messages != 1) return false;
        if (work.is(Mode::xts)) return !one && work.size == workload.all_cores.back();
        const bool sweep = work.is(Mode::ctr) && work.bits == workload.bits.front();
        return sweep || (!one && std::ranges::count(workload.all_cores, work.size) != 0);
    };
    // 0 threads stand for all of them.
    std::vector<int> counts{0};
    if (threads > 1) counts.push_back(1);
    Benchmark benchmark{
        "host memory",
        {measure::Axis{Point{{"where", "host"}}}, measure::axis("bits", workload.bits),
         ways(suite.options), std::move(shapes), measure::axis("threads", counts)},
        has,
        [state](const Point& point) { return state->prepare(Work(point)); }};
    if (nothing) benchmark.axes = {measure::Axis{}};
    return benchmark;
}

}  // namespace dael::bench
