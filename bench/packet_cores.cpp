// SPDX-License-Identifier: Apache-2.0
// Packets on several cores at once, each with its own packets, keys and table; a filler serves all.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>

#include "bench/packets.hpp"

namespace dael::bench {
namespace {

using measure::Heat;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxCores = 256;

// One core's part.
struct CoreWorker {
    Sealer sealer;
    std::shared_ptr<Packets> packets;
    std::uint64_t bytes = 0;
    double seconds = 0;
    Result<> outcome;
};

// Seals as long as that, in whole passes.
void work(CoreWorker& worker, double enough) {
    worker.bytes = 0;
    const auto start = Clock::now();
    do {
        for (int i = 0; i < 4 && worker.outcome; ++i, worker.bytes += worker.packets->bytes)
            worker.outcome = seal_all(worker.sealer, *worker.packets);
        worker.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } while (worker.seconds < enough && worker.outcome);
}

// The seconds of one pass of each worker, at the rate of all.
double one_pass(const std::vector<CoreWorker>& workers) {
    double rate = 0, pass = 0;
    for (const CoreWorker& worker : workers) {
        rate += static_cast<double>(worker.bytes) / worker.seconds;
        pass += static_cast<double>(worker.packets->bytes);
    }
    return pass / rate;
}

// What each process of a sample tells the one that started it.
struct Told {
    std::atomic<std::size_t> ready{0};
    struct alignas(64) {
        std::uint64_t bytes = 0;
        double seconds = 0;
    } of[kMaxCores];
};

// Each worker in a process of its own. libipsec-mb stores to one global variable (imb_errno) in
// every call of GCM: among threads that line goes from core to core, among processes it does not.
// The workers do nothing but work on memory that is theirs.
measure::Sampler apart(std::shared_ptr<std::vector<CoreWorker>> workers, double seconds) {
    return [=]() -> Result<double> {
        void* const memory =
            mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return Error{Code::out_of_memory, "no memory to share"};
        const std::unique_ptr<Told, void (*)(Told*)> told(
            new (memory) Told, [](Told* shared) { munmap(shared, sizeof *shared); });
        std::vector<pid_t> children;
        for (std::size_t i = 0; i < workers->size(); ++i) {
            const pid_t child = fork();
            if (child < 0) break;
            if (child > 0) {
                children.push_back(child);
                continue;
            }
            CoreWorker& worker = (*workers)[i];
            const OnCore pinned(i);
            work(worker, seconds / 4);
            ++told->ready;
            for (const auto start = Clock::now();
                 told->ready.load() < workers->size() &&
                 Clock::now() - start < std::chrono::seconds(10);) {
            }
            work(worker, seconds);
            told->of[i].bytes = worker.bytes;
            told->of[i].seconds = worker.seconds;
            _exit(worker.outcome ? 0 : 1);
        }
        bool all = children.size() == workers->size();
        for (const pid_t child : children) {
            int status = 0;
            all &= waitpid(child, &status, 0) == child && status == 0;
        }
        if (!all) return Error{Code::internal, "a process that sealed packets failed"};
        for (std::size_t i = 0; i < workers->size(); ++i) {
            (*workers)[i].bytes = told->of[i].bytes;
            (*workers)[i].seconds = told->of[i].seconds;
        }
        return one_pass(*workers);
    };
}

// All workers seal as long as the clock runs, a thread each.
measure::Sampler together(std::shared_ptr<std::vector<CoreWorker>> workers,
                          std::shared_ptr<measure::Team> team, double seconds) {
    return [=]() -> Result<double> {
        std::atomic<std::size_t> ready{0};
        team->run(workers->size() * 64, [&](std::size_t begin, std::size_t) {
            CoreWorker& worker = (*workers)[begin / 64];
            const OnCore pinned(begin / 64);
            work(worker, worker.sealer.warm_seconds);
            if (worker.sealer.mark) worker.sealer.mark();
            ++ready;
            while (ready.load() < workers->size()) {
            }
            work(worker, seconds);
        });
        for (const CoreWorker& worker : *workers) DAEL_TRY(worker.outcome);
        return one_pass(*workers);
    };
}

Result<Heat> race_cores(const PacketSuite& shared, Point point) {
    const auto key = packet_key(point.number("bits"));
    const auto threads = point.number("threads");
    const auto team = std::make_shared<measure::Team>(static_cast<int>(threads));
    Heat heat;
    std::vector<std::size_t> against;
    // `first`: that of the first core, which is opened to see whether there is such a one.
    const auto add = [&](const std::function<Result<Sealer>(std::uint64_t)>& open, bool yardstick,
                         bool processes = false) -> Result<> {
        const auto workers = std::make_shared<std::vector<CoreWorker>>(threads);
        for (std::uint64_t i = 0; i < threads; ++i) {
            auto sealer = open(i);
            if (sealer.code() == Code::unsupported) return {};
            if (!sealer) return std::move(sealer).error();
            (*workers)[i].sealer = std::move(*sealer);
            DAEL_LET(packets, Packets::make(Mix::of(point), kHotPackets));
            (*workers)[i].packets = std::move(packets);
        }
        if (processes) workers->front().sealer.name += ", a process a core";
        const CoreWorker& first = workers->front();
        Point row{{"backend", first.sealer.name}};
        row.set(point).set("messages", std::uint64_t{first.packets->list.size()});
        const bool copies = first.sealer.name == "memcpy";
        const auto check = [=]() -> Result<> {
            for (const CoreWorker& worker : *workers) {
                DAEL_TRY(seal_all(worker.sealer, *worker.packets));
                if (!copies) DAEL_TRY(check_sealed(worker.sealer, *worker.packets, key, kBurst));
            }
            return {};
        };
        const auto entry =
            heat.enter(first.sealer.name,
                       processes ? apart(workers, shared.sampling.sample_seconds)
                                 : together(workers, team, shared.sampling.sample_seconds),
                       check, row, static_cast<double>(threads * first.packets->bytes), against);
        heat.describe(entry, [workers, count = static_cast<double>(
                                           threads * first.packets->list.size())](double seconds) {
            measure::Figures all = per_packet(seconds / count);
            std::vector<SaCounters> tables;
            for (const CoreWorker& worker : *workers)
                if (worker.sealer.since) tables.push_back(worker.sealer.since());
            for (auto& figure : served(tables, seconds / count)) all.push_back(std::move(figure));
            return all;
        });
        if (yardstick) against.push_back(entry);
        return {};
    };
    DAEL_TRY(add([](std::uint64_t) { return memcpy_sealer(); }, true));
    DAEL_TRY(add([&](std::uint64_t) { return evp_sealer(key); }, true));
    DAEL_TRY(add([&](std::uint64_t) { return ipsec_mb_sealer(key, false); }, true));
    if (threads > 1)
        DAEL_TRY(add([&](std::uint64_t) { return ipsec_mb_sealer(key, false); }, true, true));
    for (const KeystreamSource& source : shared.sources)
        DAEL_TRY(add([&](std::uint64_t) { return table_sealer(source, key); }, false));
    return heat;
}

}  // namespace

Benchmark packets_cores(std::shared_ptr<PacketSuite> shared) {
    const auto cores =
        std::min<std::uint64_t>(kMaxCores, static_cast<std::uint64_t>(measure::thread_count(0)));
    std::vector<std::uint64_t> threads;
    for (std::uint64_t n = 1; n <= std::min<std::uint64_t>(8, cores); n *= 2) threads.push_back(n);
    // All but one, which is left for what fills.
    if (!shared->quick && cores > threads.back() + 1) threads.push_back(cores - 1);
    if (shared->quick) threads = {threads.back() > 1 ? std::uint64_t{2} : 1};
    return {"cores",
            {at_place("cores"), packet_key_sizes(*shared),
             measure::Axis{Mix::of(std::size_t{1024}).point()}, measure::axis("threads", threads)},
            {},
            [shared](const Point& point) { return race_cores(*shared, point); }};
}

}  // namespace dael::bench
