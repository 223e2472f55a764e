// SPDX-License-Identifier: Apache-2.0
// Packets of tables of security associations, whose keystream fillers make ahead of time.
#include <algorithm>
#include <atomic>

#include "bench/packets.hpp"

namespace dael::bench {
namespace {

constexpr std::size_t kUsualBudget = std::size_t{8} << 20;
// Longer than it takes to use up what a budget holds: what a filler brings counts from then on.
constexpr double kFillerWarms = 0.004;

std::vector<std::uint8_t> key_of(std::span<const std::uint8_t> raw, std::size_t sa) {
    std::vector<std::uint8_t> bytes(raw.begin(), raw.end());
    for (std::size_t i = 0; i < 8; ++i) bytes[i] ^= static_cast<std::uint8_t>(sa >> 8 * i);
    return bytes;
}

}  // namespace

Result<KeystreamSource> direct_source() {
    auto opened = Engine::open({.backend = "cpu", .threads = 1});
    if (!opened) opened = Engine::open({.backend = "openssl", .threads = 1});
    if (!opened) return std::move(opened).error();
    return KeystreamSource{"daelstrom, direct", std::make_shared<Engine>(std::move(*opened)),
                           nullptr, SaTableOptions::Plan::direct};
}

Result<KeystreamSource> filled_source(const std::string& backend, int threads) {
    DAEL_LET(opened, Engine::open({.backend = backend, .threads = 1}));
    const auto engine = std::make_shared<Engine>(std::move(opened));
    DAEL_LET(filler, SaFiller::open(*engine, {.threads = threads}));
    return KeystreamSource{"daelstrom, keystream by " + backend, engine,
                           std::make_shared<SaFiller>(std::move(filler)),
                           SaTableOptions::Plan::ahead};
}

Result<SaTable> open_table(const KeystreamSource& source, std::size_t budget) {
    SaTableOptions options;
    options.budget = budget ? budget : kUsualBudget;
    options.plan = source.plan;
    return source.filler ? SaTable::open(*source.filler, options)
                         : SaTable::open(*source.engine, options);
}

SaCounters between(const SaCounters& before, const SaCounters& after) {
    SaCounters since;
    since.packets = after.packets - before.packets;
    since.hits = after.hits - before.hits;
    since.partial = after.partial - before.partial;
    since.direct = after.direct - before.direct;
    since.made = after.made - before.made;
    since.used = after.used - before.used;
    since.dropped = after.dropped - before.dropped;
    since.ready = after.ready - before.ready;  // which may be below 0
    since.memory = after.memory;
    return since;
}

measure::Figures served(std::span<const SaCounters> tables, double seconds) {
    double packets = 0, hits = 0, partial = 0, direct = 0, made = 0, used = 0, dropped = 0;
    double ready = 0, memory = 0;
    for (const SaCounters& table : tables) {
        packets += static_cast<double>(table.packets);
        hits += static_cast<double>(table.hits);
        partial += static_cast<double>(table.partial);
        direct += static_cast<double>(table.direct);
        made += static_cast<double>(table.made);
        used += static_cast<double>(table.used);
        dropped += static_cast<double>(table.dropped);
        ready += static_cast<double>(static_cast<std::int64_t>(table.ready));
        memory += static_cast<double>(table.memory);
    }
    if (packets == 0 || made == 0) return {};
    const double over = made - dropped - ready;  // what is ready is neither used nor wasted yet
    return {{"hits", hits / packets},          {"partial", partial / packets},
            {"fallbacks", direct / packets},   {"wasted", over > used ? 1 - used / over : 0},
            {"dropped", dropped / made},       {"filled_gbps", made / packets / seconds * 1e-9},
            {"memory_mib", memory / (1 << 20)}};
}

measure::Figures served(const Sealer& sealer, double seconds) {
    if (!sealer.since) return {};
    const SaCounters counters = sealer.since();
    return served({&counters, 1}, seconds);
}

Result<Sealer> table_sealer(const KeystreamSource& source, std::span<const std::uint8_t> raw,
                            int sas, std::size_t budget) {
    struct State {
        KeystreamSource source;  // outlives the table
        SaTable table;
        std::vector<SaId> ids;
        std::size_t turn = 0;
        SaCounters before{};
    };
    DAEL_LET(table, open_table(source, budget));
    const auto state = std::make_shared<State>(State{source, std::move(table), {}, 0, {}});
    // A key sends once with a salt in a process.
    static std::atomic<std::uint32_t> sealers{0};
    const std::uint32_t number = ++sealers;
    const std::array<std::uint8_t, 4> salt{kSalt[0], static_cast<std::uint8_t>(number >> 16),
                                           static_cast<std::uint8_t>(number >> 8),
                                           static_cast<std::uint8_t>(number)};
    for (int i = 0; i < sas; ++i) {
        DAEL_LET(key, Key::import(key_of(raw, static_cast<std::size_t>(i))));
        DAEL_LET(id, state->table.add(key, {.salt = salt}));
        state->ids.push_back(id);
    }
    Sealer sealer{source.name, [state](std::span<const SaPacket> packets) -> Result<> {
                      const SaId id = state->ids[state->turn];
                      if (++state->turn == state->ids.size()) state->turn = 0;
                      DAEL_TRY(state->table.seal(id, packets));
                      return {};
                  }};
    sealer.salt = salt;
    if (source.filler) {
        sealer.warm_seconds = kFillerWarms;
        sealer.mark = [state] { state->before = state->table.counters(); };
        sealer.since = [state] { return between(state->before, state->table.counters()); };
    }
    return sealer;
}

}  // namespace dael::bench
