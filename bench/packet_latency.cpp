// SPDX-License-Identifier: Apache-2.0
// How long packets take that come one by one, at random moments (a Poisson process), at a given
// share of what libipsec-mb can do on this core: from the moment when a packet is there to the
// moment when it is sealed, with what it waits for others.
#include <algorithm>
#include <cmath>
#include <random>

#include "bench/packets.hpp"

namespace dael::bench {
namespace {

using measure::Heat;

struct Latencies {
    std::vector<std::uint64_t> cycles;  // of every packet of every sample, but the first's

    double at(double share) {
        if (cycles.empty()) return 0;
        const auto place = cycles.begin() + static_cast<std::ptrdiff_t>(
                                                share * static_cast<double>(cycles.size() - 1));
        std::ranges::nth_element(cycles, place);
        return static_cast<double>(*place) / cycles_per_second() * 1e9;
    }
};

// Arrivals as cycles from the start.
std::vector<std::uint64_t> arrivals(std::size_t count, double per_second) {
    std::mt19937_64 random(11);
    std::vector<std::uint64_t> times;
    double now = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double uniform = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
        now -= std::log(uniform) / per_second * cycles_per_second();
        times.push_back(static_cast<std::uint64_t>(now));
    }
    return times;
}

// Takes what is there, a burst at most, seals it, and looks again.
Result<double> serve(const Sealer& sealer, const Packets& packets,
                     std::span<const std::uint64_t> times, Latencies* latencies) {
    const std::span<const SaPacket> ring(packets.list);
    const std::uint64_t start = cycles();
    for (std::size_t i = 0; i < times.size();) {
        const std::uint64_t now = cycles() - start;
        if (times[i] > now) continue;
        const std::size_t place = i % ring.size();
        const std::size_t most = std::min({times.size() - i, kBurst, ring.size() - place});
        std::size_t some = 1;
        while (some < most && times[i + some] <= now) ++some;
        DAEL_TRY(sealer.seal(ring.subspan(place, some)));
        const std::uint64_t done = cycles() - start;
        if (latencies)
            for (std::size_t k = i; k < i + some; ++k) latencies->cycles.push_back(done - times[k]);
        i += some;
    }
    return static_cast<double>(cycles() - start) / cycles_per_second();
}

// How many packets a second the yardstick can seal: libipsec-mb, or OpenSSL where that is absent.
Result<double> capacity(const Mix& mix, std::span<const std::uint8_t> key) {
    auto sealer = ipsec_mb_sealer(key, false);
    if (sealer.code() == Code::unsupported) sealer = evp_sealer(key);
    if (!sealer) return std::move(sealer).error();
    DAEL_LET(packets, Packets::make(mix, kHotPackets));
    std::vector<double> seconds;
    const auto pass = passes(*sealer, packets, {.sample_seconds = 0.005});
    for (int i = 0; i < 5; ++i) {
        DAEL_LET(one, pass());
        seconds.push_back(one);
    }
    return static_cast<double>(packets->list.size()) / measure::spread(seconds).median;
}

Result<Heat> race_latency(const PacketSuite& shared, const Point& point) {
    if (cycles_per_second() <= 0)
        return Error{Code::unsupported, "this processor has no time-stamp counter"};
    const auto key = packet_key(point.number("bits"));
    const Mix mix = Mix::of(point);
    DAEL_LET(most, capacity(mix, key));
    const double rate = most * static_cast<double>(point.number("load")) / 100;
    const auto times = std::make_shared<const std::vector<std::uint64_t>>(
        arrivals(shared.quick ? 2'000 : static_cast<std::size_t>(rate * 0.02), rate));
    Heat heat;
    std::vector<std::size_t> against;
    const auto add = [&](Result<Sealer> opened, bool yardstick) -> Result<> {
        if (opened.code() == Code::unsupported) return {};
        if (!opened) return std::move(opened).error();
        const auto sealer = std::make_shared<const Sealer>(std::move(*opened));
        DAEL_LET(packets, Packets::make(mix, kHotPackets));
        const auto latencies = std::make_shared<Latencies>();
        Point row{{"backend", sealer->name}};
        row.set(point)
            .set("messages", std::uint64_t{times->size()})
            .set("threads", std::uint64_t{1});
        double bytes = 0;
        for (std::size_t i = 0; i < times->size(); ++i)
            bytes += static_cast<double>(packets->list[i % packets->list.size()].size);
        const auto sample = [=, first = true]() mutable -> Result<double> {
            const OnCore pinned(0);
            Latencies* const into = std::exchange(first, false) ? nullptr : latencies.get();
            if (sealer->mark) sealer->mark();
            if (into) into->cycles.reserve(into->cycles.size() + times->size());
            return serve(*sealer, *packets, *times, into);
        };
        const auto entry = heat.enter(
            sealer->name, sample,
            [=]() -> Result<> {
                DAEL_TRY(seal_all(*sealer, *packets));
                return check_sealed(*sealer, *packets, key, packets->list.size());
            },
            row, bytes, against);
        heat.describe(entry, [=](double) {
            measure::Figures all{{"p50_ns", latencies->at(0.5)},
                                 {"p99_ns", latencies->at(0.99)},
                                 {"p999_ns", latencies->at(0.999)},
                                 {"mpps", rate * 1e-6}};
            for (auto& figure : served(*sealer, 1 / rate)) all.push_back(std::move(figure));
            return all;
        });
        if (yardstick) against.push_back(entry);
        return {};
    };
    DAEL_TRY(add(ipsec_mb_sealer(key, false), true));
    // What it cannot keep up with has no latency.
    if (point.number("load") <= 10) DAEL_TRY(add(evp_sealer(key), false));
    for (const KeystreamSource& source : shared.sources)
        DAEL_TRY(add(table_sealer(source, key), false));
    return heat;
}

}  // namespace

Benchmark packets_latency(std::shared_ptr<PacketSuite> shared) {
    const auto loads =
        shared->quick ? std::vector<std::uint64_t>{50} : std::vector<std::uint64_t>{10, 50, 80};
    return {"latency",
            {at_place("latency"), packet_key_sizes(*shared),
             shared->quick ? measure::Axis{Mix::of(std::size_t{1024}).point()}
                           : measure::Axis{Mix::of(std::size_t{1024}).point(), Mix::imix().point()},
             measure::axis("load", loads)},
            {},
            [shared](const Point& point) { return race_latency(*shared, point); }};
}

}  // namespace dael::bench
