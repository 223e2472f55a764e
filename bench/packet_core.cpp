// SPDX-License-Identifier: Apache-2.0
// Packets on one core: every library and every source of keystream, in turns; and how much
// keystream in flight a core stands.
#include <algorithm>
#include <cstring>

#include "bench/check.hpp"
#include "bench/packets.hpp"
#include "measure/machine.hpp"

namespace dael::bench {
namespace {

using measure::Heat;

// Enters a sealer with its row. What checks it leaves every packet of the set poisoned before.
std::size_t enter(Heat& heat, const Sealer& sealer, const Point& point,
                  const std::shared_ptr<Packets>& packets, const PacketSuite& shared,
                  std::vector<std::size_t> against) {
    const auto key = packet_key(point.number("bits"));
    Point row{{"backend", sealer.name}};
    row.set(point);
    row.set("messages", std::uint64_t{packets->list.size()});
    row.set("threads", std::uint64_t{1});
    const bool copies = sealer.name == "memcpy";
    const auto check = [=]() -> Result<> {
        std::memset(packets->out.data(), kPoison, packets->out.size());
        for (const SaPacket& packet : packets->list) {
            std::memset(packet.iv, kPoison, 8);
            std::memset(packet.tag, kPoison, 16);
        }
        DAEL_TRY(seal_all(sealer, *packets));
        if (!copies) return check_sealed(sealer, *packets, key, 1024);
        for (const SaPacket& packet : packets->list)
            if (std::memcmp(packet.out, packet.in, packet.size) != 0)
                return Error{Code::internal, "memcpy does not copy"};
        return {};
    };
    const std::size_t entry =
        heat.enter(sealer.name, passes(sealer, packets, shared.sampling), check, row,
                   static_cast<double>(packets->bytes), std::move(against));
    heat.describe(entry, [sealer, count = static_cast<double>(packets->list.size())](double all) {
        measure::Figures figures = per_packet(all / count);
        for (auto& figure : served(sealer, all / count)) figures.push_back(std::move(figure));
        return figures;
    });
    return entry;
}

Result<Heat> race_core(const PacketSuite& shared, const Point& point) {
    const auto key = packet_key(point.number("bits"));
    DAEL_LET(packets, Packets::make(Mix::of(point), point.number("working_set")));
    Heat heat;
    std::vector<std::size_t> against;
    const auto add = [&](Result<Sealer> sealer, bool yardstick) -> Result<> {
        if (sealer.code() == Code::unsupported) {
            shared.suite.session.report.skip(sealer.error().message);
            return {};
        }
        if (!sealer) return std::move(sealer).error();
        const std::size_t entry = enter(heat, *sealer, point, packets, shared, against);
        if (yardstick) against.push_back(entry);
        return {};
    };
    DAEL_TRY(add(memcpy_sealer(), true));
    DAEL_TRY(add(tomcrypt_sealer(key, false), true));
    DAEL_TRY(add(evp_sealer(key), true));
    DAEL_TRY(add(ipsec_mb_sealer(key, false), true));
    DAEL_TRY(add(ipsec_mb_sealer(key, true), true));
    DAEL_TRY(add(tomcrypt_sealer(key, true), false));
    DAEL_TRY(add(batch_sealer(key), false));
    for (const KeystreamSource& source : shared.sources)
        DAEL_TRY(add(table_sealer(source, key), false));
    return heat;
}

// One source at one budget beside the direct path.
Result<Heat> in_flight(const PacketSuite& shared, const Point& point) {
    const auto key = packet_key(point.number("bits"));
    DAEL_LET(packets, Packets::make(Mix::of(point), point.number("working_set")));
    Heat heat;
    std::vector<std::size_t> against;
    for (const KeystreamSource& source : shared.sources) {
        DAEL_LET(sealer, table_sealer(source, key, 1, point.number("budget")));
        if (sealer.warm_seconds > 0)  // until the largest budget has been used up
            sealer.warm_seconds =
                std::max(sealer.warm_seconds, static_cast<double>(point.number("budget")) / 4e9);
        const auto entry = enter(heat, sealer, point, packets, shared, against);
        if (!source.filler) against.push_back(entry);
    }
    return heat;
}

measure::Axis mixes(const PacketSuite& shared) {
    measure::Axis axis;
    for (const std::size_t size :
         shared.suite.options.sizes.empty()
             ? (shared.quick ? std::vector<std::uint64_t>{1024}
                             : std::vector<std::uint64_t>{64, 256, 512, 1024, 1420})
             : shared.suite.options.sizes)
        axis.push_back(Mix::of(size).point());
    if (shared.suite.options.sizes.empty()) axis.push_back(Mix::imix().point());
    return axis;
}

}  // namespace

Benchmark packets_one_core(std::shared_ptr<PacketSuite> shared) {
    // 16 KiB stay in the first cache with what comes out, 4 MiB in the last.
    const auto sets = shared->quick ? std::vector<std::uint64_t>{kHotPackets}
                                    : std::vector<std::uint64_t>{kHotPackets, 4 << 20};
    return {"packets",
            {at_place("packets"), measure::axis("working_set", sets), packet_key_sizes(*shared),
             mixes(*shared)},
            {},
            [shared](const Point& point) { return race_core(*shared, point); }};
}

Benchmark packets_budgets(std::shared_ptr<PacketSuite> shared) {
    const auto budgets = shared->quick
                             ? std::vector<std::uint64_t>{1 << 20}
                             : std::vector<std::uint64_t>{1 << 20, 4 << 20, 16 << 20, 64 << 20};
    return {
        "keystream in flight",
        {at_place("budgets"), measure::axis("working_set", std::vector<std::uint64_t>{kHotPackets}),
         packet_key_sizes(*shared), measure::Axis{Mix::of(std::size_t{1024}).point()},
         measure::axis("budget", budgets)},
        {},
        [shared](const Point& point) { return in_flight(*shared, point); }};
}

Result<std::vector<Benchmark>> packet_suite(const Suite& suite) {
    const auto shared = std::make_shared<PacketSuite>(
        PacketSuite{suite, suite.options.scale > 1, suite.workload.sampling, {}});
    shared->sampling.sample_seconds = shared->quick ? 0.001 : 0.008;
    shared->sampling.budget_seconds = shared->quick ? 0.05 : 1.5;
    shared->sampling.repeats = std::min(shared->sampling.repeats, 7);
    DAEL_LET(direct, direct_source());
    shared->sources.push_back(std::move(direct));
    const int cores = measure::thread_count(0);
    // A core for the packets; of the others as many as one of them can use.
    const int fillers = std::clamp(cores - 1, 1, 4);
    const auto add = [&](const std::string& backend, int threads) -> Result<bool> {
        auto source = filled_source(backend, threads);
        if (source) {
            if (const auto device = dael::device(*source->engine))
                measure::describe_device(suite.session.report.machine, device->info);
            shared->sources.push_back(std::move(*source));
            return true;
        }
        if (source.code() != Code::backend_absent && source.code() != Code::unsupported)
            return std::move(source).error();
        suite.session.report.skip("keystream by " + backend + ": " + source.error().message);
        return false;
    };
    DAEL_TRY(add("cuda", 1));
    DAEL_LET(by_cpu, add("cpu", fillers));
    if (!by_cpu) DAEL_TRY(add("openssl", fillers));
    std::vector<Benchmark> benchmarks{packets_one_core(shared), packets_budgets(shared)};
    for (auto* part : {packets_cores, packets_sas, packets_latency, packets_parts})
        benchmarks.push_back(part(shared));
    return benchmarks;
}

}  // namespace dael::bench
