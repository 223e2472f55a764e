// SPDX-License-Identifier: Apache-2.0
// Packets on several cores at once, each with its own packets, keys and table; a filler serves all.
#include <atomic>
#include <chrono>

#include "bench/packets.hpp"

namespace dael::bench {
namespace {

using measure::Heat;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kHot = 16 << 10;

// One core's part.
struct Worker {
    Sealer sealer;
    std::shared_ptr<Packets> packets;
    std::uint64_t bytes = 0;
    double seconds = 0;
    Result<> outcome;
};

// All workers seal as long as the clock runs: what they did together. The seconds are those of one
// pass of each, at the rate of all.
measure::Sampler together(std::shared_ptr<std::vector<Worker>> workers,
                          std::shared_ptr<measure::Team> team, double seconds) {
    return [=]() -> Result<double> {
        std::atomic<std::size_t> ready{0};
        team->run(workers->size() * 64, [&](std::size_t begin, std::size_t) {
            Worker& worker = (*workers)[begin / 64];
            const OnCore pinned(begin / 64);
            const auto work = [&](double enough) {
                worker.bytes = 0;
                const auto start = Clock::now();
                do {
                    for (int i = 0; i < 4 && worker.outcome;
                         ++i, worker.bytes += worker.packets->bytes)
                        worker.outcome = seal_all(worker.sealer, *worker.packets);
                    worker.seconds = std::chrono::duration<double>(Clock::now() - start).count();
                } while (worker.seconds < enough && worker.outcome);
            };
            work(worker.sealer.warm_seconds);
            if (worker.sealer.mark) worker.sealer.mark();
            ++ready;
            while (ready.load() < workers->size()) {
            }
            work(seconds);
        });
        double rate = 0, pass = 0;
        for (const Worker& worker : *workers) {
            DAEL_TRY(worker.outcome);
            rate += static_cast<double>(worker.bytes) / worker.seconds;
            pass += static_cast<double>(worker.packets->bytes);
        }
        return pass / rate;
    };
}

Result<Heat> race(const PacketSuite& shared, Point point) {
    const auto key = packet_key(point.number("bits"));
    const auto threads = point.number("threads");
    const auto team = std::make_shared<measure::Team>(static_cast<int>(threads));
    Heat heat;
    std::vector<std::size_t> against;
    // `first`: that of the first core, which is opened to see whether there is such a one.
    const auto add = [&](const std::function<Result<Sealer>(std::uint64_t)>& open,
                         bool yardstick) -> Result<> {
        const auto workers = std::make_shared<std::vector<Worker>>(threads);
        for (std::uint64_t i = 0; i < threads; ++i) {
            auto sealer = open(i);
            if (sealer.code() == Code::unsupported) return {};
            if (!sealer) return std::move(sealer).error();
            (*workers)[i].sealer = std::move(*sealer);
            DAEL_LET(packets, Packets::make(Mix::of(point), kHot));
            (*workers)[i].packets = std::move(packets);
        }
        const Worker& first = workers->front();
        Point row{{"backend", first.sealer.name}};
        row.set(point).set("messages", std::uint64_t{first.packets->list.size()});
        const bool copies = first.sealer.name == "memcpy";
        const auto check = [=]() -> Result<> {
            for (const Worker& worker : *workers) {
                DAEL_TRY(seal_all(worker.sealer, *worker.packets));
                if (!copies)
                    DAEL_TRY(check_sealed(worker.sealer.name, *worker.packets, key, kBurst));
            }
            return {};
        };
        const auto entry =
            heat.enter(first.sealer.name, together(workers, team, shared.sampling.sample_seconds),
                       check, row, static_cast<double>(threads * first.packets->bytes), against);
        heat.describe(entry, [workers, count = static_cast<double>(
                                           threads * first.packets->list.size())](double seconds) {
            measure::Figures all = per_packet(seconds / count);
            if (const auto& more = workers->front().sealer.figures)
                for (auto& figure : more()) all.push_back(std::move(figure));
            return all;
        });
        if (yardstick) against.push_back(entry);
        return {};
    };
    DAEL_TRY(add([](std::uint64_t) { return memcpy_sealer(); }, true));
    DAEL_TRY(add([&](std::uint64_t) { return evp_sealer(key); }, true));
    DAEL_TRY(add([&](std::uint64_t) { return ipsec_mb_sealer(key, false); }, true));
    for (const Source& source : shared.sources)
        DAEL_TRY(add([&](std::uint64_t) { return table_sealer(source, key); }, false));
    return heat;
}

}  // namespace

Benchmark packets_cores(std::shared_ptr<PacketSuite> shared) {
    const auto cores = static_cast<std::uint64_t>(measure::thread_count(0));
    std::vector<std::uint64_t> threads;
    for (std::uint64_t n = 1; n <= std::min<std::uint64_t>(8, cores); n *= 2) threads.push_back(n);
    // All but one, which is left for what fills.
    if (!shared->quick && cores > threads.back() + 1) threads.push_back(cores - 1);
    if (shared->quick) threads = {threads.back() > 1 ? std::uint64_t{2} : 1};
    return {"cores",
            {at_place("cores"), packet_key_sizes(*shared),
             measure::Axis{Mix::of(std::size_t{1024}).point()}, measure::axis("threads", threads)},
            {},
            [shared](const Point& point) { return race(*shared, point); }};
}

}  // namespace dael::bench
