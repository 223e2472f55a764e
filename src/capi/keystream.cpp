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

namespace {

Result<dael::SaOptions> sa_options(const dael_sa_options* options) {
    DAEL_LET(asked, sized(options, "dael_sa_options"));
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
        if (asked.threads != 0) chosen.threads = asked.threads;
        if (asked.lanes != 0) chosen.lanes = asked.lanes;
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
        const std::size_t theirs = counters->struct_size;
        if (theirs < sizeof theirs)
            return Error{Code::invalid_argument,
                         "dael_sa_counters says that it has " + std::to_string(theirs) +
                             " bytes; set struct_size to sizeof(dael_sa_counters)"};
        const std::size_t known = std::min(theirs, sizeof all);
        std::memcpy(counters, &all, known);
        counters->struct_size = known;
        return {};
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
