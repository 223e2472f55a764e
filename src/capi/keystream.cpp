// SPDX-License-Identifier: Apache-2.0
// Security associations with keystream ahead of time, for C.
#include "capi/keystream.hpp"

#include <cstddef>
#include <new>

struct dael_sa_table {
    dael::SaTable table;
};

using dael::Code;
using dael::Error;
using dael::Result;
using namespace dael::capi;

namespace {

static_assert(sizeof(dael_sa_packet) == sizeof(dael::SaPacket));
static_assert(offsetof(dael_sa_packet, out) == offsetof(dael::SaPacket, out));
static_assert(offsetof(dael_sa_packet, size) == offsetof(dael::SaPacket, size));
static_assert(offsetof(dael_sa_packet, aad) == offsetof(dael::SaPacket, aad));
static_assert(offsetof(dael_sa_packet, aad_size) == offsetof(dael::SaPacket, aad_size));
static_assert(offsetof(dael_sa_packet, iv) == offsetof(dael::SaPacket, iv));
static_assert(offsetof(dael_sa_packet, tag) == offsetof(dael::SaPacket, tag));
static_assert(DAEL_SA_RECEIVING == static_cast<int>(dael::SaDirection::receiving));
static_assert(DAEL_SA_STREAM == static_cast<int>(dael::SaLayout::stream));
static_assert(DAEL_SA_COUNTING == static_cast<int>(dael::SaIvs::counting));
static_assert(DAEL_SA_DIRECT == static_cast<int>(dael::SaTableOptions::Plan::direct));

// A number of an enumeration, whose values go from 0 to `last`.
template <class Enum>
Result<Enum> one_of(std::int32_t value, Enum last, const char* name) {
    if (value < 0 || value > static_cast<std::int32_t>(last))
        return Error{Code::invalid_argument,
                     std::string("no known ") + name + ": " + std::to_string(value)};
    return static_cast<Enum>(value);
}

}  // namespace

Result<dael::SaTableOptions> dael::capi::table_options(const dael_sa_table_options* options) {
    DAEL_LET(asked, sized(options, "dael_sa_table_options"));
    dael::SaTableOptions chosen;
    if (asked.budget != 0) chosen.budget = asked.budget;
    chosen.block = asked.block;
    if (asked.overlap != 0) chosen.overlap = asked.overlap;
    if (asked.idle_ms != 0) chosen.idle_ms = asked.idle_ms;
    if (asked.most_sas != 0) chosen.most_sas = asked.most_sas;
    DAEL_LET(plan, one_of(asked.plan, dael::SaTableOptions::Plan::direct, "plan"));
    chosen.plan = plan;
    return chosen;
}

Result<std::chrono::milliseconds> dael::capi::milliseconds(std::uint64_t count) {
    constexpr std::uint64_t kMax = std::uint64_t{1} << 53;  // 285,000 years
    if (count > kMax)
        return Error{Code::invalid_argument,
                     "a lifetime of " + std::to_string(count) + " ms; 2^53 are the most"};
    return std::chrono::milliseconds(count);
}

Result<> dael::capi::whole_state(const dael_sa_state* state) {
    if (state->struct_size >= sizeof *state) return {};
    return Error{Code::invalid_argument, "dael_sa_state says that it has " +
                                             std::to_string(state->struct_size) +
                                             " bytes; set struct_size to sizeof(dael_sa_state)"};
}
Result<dael::SaState> dael::capi::read_state(const dael_sa_state* given) {
    DAEL_TRY(whole_state(given));
    DAEL_LET(asked, sized(given, "dael_sa_state"));
    SaState state{.next = asked.next, .bytes = asked.bytes, .age_ms = asked.age_ms};
    std::copy_n(asked.ivs, 4, state.ivs.begin());
    return state;
}
Result<> dael::capi::write_state(dael_sa_state* out, const SaState& state) {
    dael_sa_state all{.struct_size = sizeof all,
                      .next = state.next,
                      .ivs = {},
                      .bytes = state.bytes,
                      .age_ms = state.age_ms};
    std::copy(state.ivs.begin(), state.ivs.end(), all.ivs);
    return write_sized(out, all, "dael_sa_state");
}

namespace {

Result<dael::SaOptions> sa_options(const dael_sa_options* options) {
    DAEL_LET(asked, sized(options, "dael_sa_options"));
    DAEL_TRY(spare({asked.unused}, "dael_sa_options"));
    dael::SaOptions chosen;
    DAEL_LET(direction, one_of(asked.direction, dael::SaDirection::receiving, "direction"));
    DAEL_LET(layout, one_of(asked.layout, dael::SaLayout::stream, "layout"));
    DAEL_LET(ivs, one_of(asked.ivs, dael::SaIvs::counting, "kind of IVs"));
    chosen.direction = direction;
    chosen.layout = layout;
    chosen.ivs = ivs;
    chosen.fresh_key = asked.stale_key == 0;
    std::copy_n(asked.salt, 4, chosen.salt.begin());
    std::copy_n(asked.first_iv, 12, chosen.first_iv.begin());
    if (asked.tag_size != 0)
        chosen.tag_size = asked.tag_size > 16 ? 0 : static_cast<std::uint8_t>(asked.tag_size);
    if (asked.limit != 0) chosen.limit = asked.limit;
    chosen.soft_limit = asked.soft_limit;
    if (asked.quota != 0) chosen.quota = asked.quota;
    if (asked.direct != 0) chosen.quota = 0;
    chosen.limit_bytes = asked.limit_bytes;
    chosen.soft_limit_bytes = asked.soft_limit_bytes;
    DAEL_LET(lifetime, milliseconds(asked.lifetime_ms));
    DAEL_LET(soft_lifetime, milliseconds(asked.soft_lifetime_ms));
    chosen.lifetime = lifetime;
    chosen.soft_lifetime = soft_lifetime;
    chosen.most_failed = asked.most_failed;
    return chosen;
}

std::span<const dael::SaPacket> packets_of(const dael_sa_packet* packets, std::size_t count) {
    return {reinterpret_cast<const dael::SaPacket*>(packets), count};
}

}  // namespace

extern "C" {

dael_status dael_sa_filler_open(dael_engine* engine, const dael_sa_filler_options* options,
                                dael_sa_filler** filler) {
    return hand_out(filler, "filler", [&]() -> Result<dael_sa_filler*> {
        DAEL_TRY(given({{engine, "engine"}}));
        DAEL_LET(asked, sized(options, "dael_sa_filler_options"));
        dael::SaFillerOptions chosen;
        DAEL_TRY(spare({asked.unused}, "dael_sa_filler_options"));
        DAEL_TRY(readable(asked.cpus, asked.cpu_count, "cpus"));
        if (asked.threads != 0) chosen.threads = asked.threads;
        if (asked.lanes != 0) chosen.lanes = asked.lanes;
        if (asked.patience_ms != 0) chosen.patience_ms = asked.patience_ms;
        chosen.cpus.assign(asked.cpus, asked.cpus + asked.cpu_count);
        DAEL_LET(opened, dael::SaFiller::open(engine->engine, chosen));
        return new dael_sa_filler{std::move(opened)};
    });
}
void dael_sa_filler_close(dael_sa_filler* filler) {
    release(filler);
}

dael_status dael_sa_table_open(dael_sa_filler* filler, const dael_sa_table_options* options,
                               dael_sa_table** table) {
    return hand_out(table, "table", [&]() -> Result<dael_sa_table*> {
        DAEL_TRY(given({{filler, "filler"}}));
        DAEL_LET(chosen, table_options(options));
        DAEL_LET(opened, dael::SaTable::open(filler->filler, chosen));
        return new dael_sa_table{std::move(opened)};
    });
}
void dael_sa_table_close(dael_sa_table* table) {
    release(table);
}

dael_status dael_sa_add(dael_sa_table* table, const dael_key* key, const dael_sa_options* options,
                        uint64_t* sa) {
    return call([&]() -> Result<> {
        if (sa) *sa = 0;
        DAEL_TRY(given({{table, "table"}, {key, "key"}, {sa, "sa"}}));
        DAEL_LET(chosen, sa_options(options));
        DAEL_LET(id, table->table.add(key->key, chosen));
        *sa = id.value;
        return {};
    });
}
dael_status dael_sa_rekey(dael_sa_table* table, uint64_t sa, const dael_key* key,
                          const uint8_t salt[4]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}, {key, "key"}, {salt, "salt"}}));
        return table->table.rekey({sa}, key->key, {salt[0], salt[1], salt[2], salt[3]});
    });
}
dael_status dael_sa_remove(dael_sa_table* table, uint64_t sa) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}}));
        return table->table.remove({sa});
    });
}

dael_status dael_sa_seal(dael_sa_table* table, uint64_t sa, const dael_sa_packet* packets,
                         size_t count, void (*numbered)(void* context, uint64_t first),
                         void* context, uint64_t* first, int32_t* rekey_soon) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}}));
        DAEL_TRY(readable(packets, count, "packets"));
        DAEL_LET(sealed, table->table.seal({sa}, packets_of(packets, count), {numbered, context}));
        if (first) *first = sealed.first;
        if (rekey_soon) *rekey_soon = sealed.rekey_soon;
        return {};
    });
}
dael_status dael_sa_seal_telling(dael_sa_table* table, uint64_t sa, const dael_sa_packet* packets,
                                 size_t count, void (*numbered)(void* context, uint64_t first),
                                 void* context, dael_sa_sealed* out) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}, {out, "sealed"}}));
        DAEL_TRY(readable(packets, count, "packets"));
        // What may be refused of `out` comes before any number is used.
        DAEL_TRY(write_sized(out, dael_sa_sealed{}, "dael_sa_sealed"));
        DAEL_LET(sealed, table->table.seal({sa}, packets_of(packets, count), {numbered, context}));
        const dael_sa_sealed all{.struct_size = sizeof all,
                                 .first = sealed.first,
                                 .epoch = sealed.epoch,
                                 .rekey_soon = sealed.rekey_soon,
                                 .unused = 0};
        return write_sized(out, all, "dael_sa_sealed");
    });
}
dael_status dael_sa_export(dael_sa_table* table, uint64_t sa, uint64_t more, dael_sa_state* out) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}, {out, "state"}}));
        DAEL_TRY(whole_state(out));
        DAEL_LET(state, table->table.export_state({sa}, more));
        return write_state(out, state);
    });
}
dael_status dael_sa_import(dael_sa_table* table, const dael_key* key,
                           const dael_sa_options* options, const dael_sa_state* state,
                           uint64_t* sa) {
    return call([&]() -> Result<> {
        if (sa) *sa = 0;
        DAEL_TRY(given({{table, "table"}, {key, "key"}, {state, "state"}, {sa, "sa"}}));
        DAEL_LET(chosen, sa_options(options));
        DAEL_LET(from, read_state(state));
        DAEL_LET(id, table->table.add(key->key, chosen, from));
        *sa = id.value;
        return {};
    });
}
dael_status dael_sa_open(dael_sa_table* table, uint64_t sa, const dael_sa_packet* packets,
                         size_t count, int32_t* codes) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}}));
        DAEL_TRY(readable(packets, count, "packets"));
        DAEL_TRY(readable(codes, count, "codes"));
        return table->table.open({sa}, packets_of(packets, count),
                                 {reinterpret_cast<Code*>(codes), count});
    });
}

dael_status dael_sa_count(const dael_sa_table* table, uint64_t sa, dael_sa_counters* counters) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}, {counters, "counters"}}));
        dael::SaCounters c;
        if (sa == 0) {
            c = table->table.counters();
        } else {
            DAEL_LET(status, table->table.status({sa}));
            c = status.counters;
        }
        const dael_sa_counters all{.struct_size = sizeof(dael_sa_counters),
                                   .packets = c.packets,
                                   .bytes = c.bytes,
                                   .hits = c.hits,
                                   .partial = c.partial,
                                   .direct = c.direct,
                                   .overlapped = c.overlapped,
                                   .failed = c.failed,
                                   .windows = c.windows,
                                   .made = c.made,
                                   .used = c.used,
                                   .dropped = c.dropped,
                                   .ready = c.ready,
                                   .fill_errors = c.fill_errors,
                                   .memory = c.memory};
        return write_sized(counters, all, "dael_sa_counters");
    });
}
dael_status dael_sa_read_status(const dael_sa_table* table, uint64_t sa, dael_sa_status* out) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}, {out, "status"}}));
        DAEL_LET(status, table->table.status({sa}));
        const dael_sa_status all{
            .struct_size = sizeof all,
            .next = status.next,
            .epoch = status.epoch,
            .age_ms = static_cast<std::uint64_t>(status.age.count()),
            .since_packet_ms = static_cast<std::uint64_t>(status.since_packet.count()),
            .key_bits = status.key_bits,
            .rekey_soon = status.rekey_soon,
            .expired = status.expired,
            .ahead = status.ahead};
        return write_sized(out, all, "dael_sa_status");
    });
}
dael_status dael_sa_read_filling(const dael_sa_table* table, dael_sa_filling* out) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}, {out, "filling"}}));
        const dael::SaFilling filling = table->table.filling();
        const dael_sa_filling all{.struct_size = sizeof all,
                                  .faults = filling.faults,
                                  .retry_ms = filling.retry_ms,
                                  .waits_ms = filling.waits_ms,
                                  .works = filling.works,
                                  .unused = 0};
        return write_sized(out, all, "dael_sa_filling");
    });
}
dael_status dael_sa_explain(const dael_sa_table* table,
                            void (*visit)(void* context, const char* text), void* context) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}}));
        if (!visit) return null("visit");
        visit(context, table->table.explain().c_str());
        return {};
    });
}
dael_status dael_sa_settle(dael_sa_table* table) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}}));
        table->table.settle();
        return {};
    });
}

dael_status dael_sa_load(dael_sa_table* table, const char* path,
                         void (*visit)(void* context, uint64_t sa), void* context) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{table, "table"}, {path, "path"}}));
        DAEL_LET(entries, dael::load_sas(path));
        for (const dael::SaEntry& entry : entries) {
            auto id = table->table.add(entry.key, entry.options);
            if (!id)
                return Error{id.code(), std::string(path) + ", line " + std::to_string(entry.line) +
                                            ": " + id.error().message};
            if (visit) visit(context, id->value);
        }
        return {};
    });
}

}  // extern "C"
