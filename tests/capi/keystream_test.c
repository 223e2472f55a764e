/* SPDX-License-Identifier: Apache-2.0
 * Security associations with keystream ahead of time, from C. */
#include <daelstrom/daelstrom_packets.h>

#include <stddef.h>

#include "capi.h"

/* What callers in other languages rely on: no holes, and sizes that only a new member changes. */
_Static_assert(sizeof(dael_sa_filler_options) == 40, "");
_Static_assert(sizeof(dael_sa_table_options) == 40, "");
_Static_assert(sizeof(dael_sa_options) == 120, "");
_Static_assert(offsetof(dael_sa_options, limit_bytes) == 80, "");
_Static_assert(sizeof(dael_sa_packet) == 56, "");
_Static_assert(sizeof(dael_sa_state) == 64, "");
_Static_assert(sizeof(dael_sa_sealed) == 32, "");
_Static_assert(sizeof(dael_sa_counters) == 120, "");
_Static_assert(sizeof(dael_sa_status) == 56, "");
_Static_assert(sizeof(dael_sa_filling) == 40, "");

enum { kCount = 40, kSize = 300 };

struct packets {
    uint8_t data[kCount][kSize], iv[kCount][8], tag[kCount][16], aad[kCount][8];
    dael_sa_packet list[kCount];
};

static void prepare(struct packets* p) {
    for (int i = 0; i < kCount; ++i) {
        memset(p->data[i], i + 1, kSize);
        const dael_sa_packet packet = {p->data[i], p->data[i], kSize,    p->aad[i],
                                       8,          p->iv[i],   p->tag[i]};
        p->list[i] = packet;
    }
}

static void write_numbers(void* context, uint64_t first) {
    struct packets* const p = context;
    for (int i = 0; i < kCount; ++i) p->aad[i][7] = (uint8_t)(first + (uint64_t)i);
}

static void keep(void* context, const char* text) {
    EXPECT(strstr(text, "A packet of 1024 bytes takes") != NULL);
    *(int*)context += 1;
}

static void both_ways(dael_engine* engine, dael_sa_table* table, const dael_key* key) {
    dael_sa_options sends = {0}, receives = {0};
    sends.struct_size = receives.struct_size = sizeof sends;
    receives.direction = DAEL_SA_RECEIVING;
    uint64_t out = 0, in = 0, first = 0;
    int32_t soon = 7, codes[kCount];
    EXPECT(dael_sa_add(table, key, &sends, &out) == DAEL_OK && out != 0);
    EXPECT(dael_sa_add(table, key, &receives, &in) == DAEL_OK && in != out);
    static struct packets p;
    for (int round = 0; round < 5; ++round) {
        prepare(&p);
        EXPECT(dael_sa_seal(table, out, p.list, kCount, write_numbers, &p, &first, &soon) ==
               DAEL_OK);
        EXPECT(first == (uint64_t)(1 + round * kCount) && soon == 0);
        EXPECT(p.aad[3][7] == (uint8_t)(first + 3));
        /* As the library's own GCM opens it. */
        uint8_t nonce[12] = {0}, plain[kSize];
        memcpy(nonce + 4, p.iv[5], 8);
        EXPECT(dael_gcm_open(engine, key, nonce, 12, p.aad[5], 8, p.data[5], plain, kSize, p.tag[5],
                             16, NULL) == DAEL_OK);
        EXPECT(plain[0] == 6 && plain[kSize - 1] == 6);
        p.tag[7][0] ^= 1;
        EXPECT(dael_sa_open(table, in, p.list, kCount, codes) == DAEL_OK);
        for (int i = 0; i < kCount; ++i) {
            EXPECT(codes[i] == (i == 7 ? DAEL_AUTHENTICATION : DAEL_OK));
            EXPECT((p.data[i][0] == i + 1) == (i != 7));
        }
        EXPECT(dael_sa_settle(table) == DAEL_OK);
    }
    dael_sa_counters counters = {0};
    counters.struct_size = sizeof counters;
    EXPECT(dael_sa_count(table, out, &counters) == DAEL_OK);
    EXPECT(counters.packets == 5 * kCount && counters.hits > 0);
    EXPECT(dael_sa_count(table, 0, &counters) == DAEL_OK && counters.failed == 5);
    int called = 0;
    EXPECT(dael_sa_explain(table, keep, &called) == DAEL_OK && called == 1);

    uint64_t none = 5;
    REFUSED(dael_sa_add(table, key, &sends, &none), DAEL_INVALID_ARGUMENT, "have sent");
    EXPECT(none == 0);

    dael_sa_status status = {0};
    status.struct_size = sizeof status;
    EXPECT(dael_sa_read_status(table, out, &status) == DAEL_OK);
    EXPECT(status.next == 5 * kCount + 1 && status.epoch == 1 && status.key_bits == 128);
    EXPECT(!status.rekey_soon && !status.expired && status.ahead);
    dael_sa_filling filling = {0};
    filling.struct_size = offsetof(dael_sa_filling, works); /* of an older caller */
    filling.works = 7;
    EXPECT(dael_sa_read_filling(table, &filling) == DAEL_OK);
    EXPECT(filling.works == 7 && filling.struct_size == offsetof(dael_sa_filling, works));
    filling.struct_size = sizeof filling;
    EXPECT(dael_sa_read_filling(table, &filling) == DAEL_OK);
    EXPECT(filling.works == 1 && filling.faults == 0);

    /* Handed over: the first has sent its last, and another goes on. */
    dael_sa_sealed sealed = {0};
    sealed.struct_size = sizeof sealed;
    dael_sa_state state = {0};
    state.struct_size = 8;
    REFUSED(dael_sa_export(table, out, 0, &state), DAEL_INVALID_ARGUMENT, "struct_size");
    state.struct_size = sizeof state;
    EXPECT(dael_sa_export(table, out, 0, &state) == DAEL_OK && state.next == 5 * kCount + 1);
    REFUSED(dael_sa_seal_telling(table, out, p.list, 1, NULL, NULL, &sealed), DAEL_LIMIT, "export");
    uint64_t next = 0;
    EXPECT(dael_sa_import(table, key, &sends, &state, &next) == DAEL_OK && next != out);
    EXPECT(dael_sa_seal_telling(table, next, p.list, 2, NULL, NULL, &sealed) == DAEL_OK);
    EXPECT(sealed.first == 5 * kCount + 1 && sealed.epoch == 1 && !sealed.rekey_soon);
    REFUSED(dael_sa_import(table, key, &sends, &state, &next), DAEL_INVALID_ARGUMENT, "taken over");
    EXPECT(dael_sa_remove(table, in) == DAEL_OK);
    REFUSED(dael_sa_open(table, in, p.list, 1, codes), DAEL_INVALID_ARGUMENT, "no such SA");
}

static void refused(dael_engine* engine, dael_sa_filler* filler, dael_sa_table* table,
                    const dael_key* key) {
    dael_sa_filler* none = filler;
    dael_sa_filler_options threads = {.struct_size = sizeof threads, .threads = -1};
    REFUSED(dael_sa_filler_open(engine, &threads, &none), DAEL_INVALID_ARGUMENT, "threads");
    EXPECT(none == NULL);
    dael_sa_table* nowhere = table;
    dael_sa_table_options odd = {0};
    odd.struct_size = sizeof odd;
    odd.plan = 9;
    REFUSED(dael_sa_table_open(filler, &odd, &nowhere), DAEL_INVALID_ARGUMENT, "plan");
    EXPECT(nowhere == NULL);
    dael_sa_options options = {0};
    options.struct_size = sizeof options;
    uint64_t sa = 5;
    options.layout = 2;
    REFUSED(dael_sa_add(table, key, &options, &sa), DAEL_INVALID_ARGUMENT, "layout");
    EXPECT(sa == 0);
    options.layout = 0;
    options.unused = 1;
    REFUSED(dael_sa_add(table, key, &options, &sa), DAEL_UNSUPPORTED, "unused");
    options.unused = 0;
    options.lifetime_ms = UINT64_MAX;
    REFUSED(dael_sa_add(table, key, &options, &sa), DAEL_INVALID_ARGUMENT, "lifetime");
    options.lifetime_ms = 0;
    options.tag_size = 260;
    REFUSED(dael_sa_add(table, key, &options, &sa), DAEL_INVALID_ARGUMENT, "tag");
    options.tag_size = 0;
    options.stale_key = 1;
    REFUSED(dael_sa_add(table, key, &options, &sa), DAEL_INVALID_ARGUMENT, "fresh");
    REFUSED(dael_sa_seal(table, 1, NULL, 1, NULL, NULL, NULL, NULL), DAEL_INVALID_ARGUMENT,
            "packets");
    REFUSED(dael_sa_rekey(table, 99, key, options.salt), DAEL_INVALID_ARGUMENT, "no such SA");
    REFUSED(dael_sa_remove(NULL, 1), DAEL_INVALID_ARGUMENT, "table");
    const dael_status loaded = dael_sa_load(table, "/nonexistent/sas", NULL, NULL);
    EXPECT(loaded == DAEL_IO || loaded == DAEL_UNSUPPORTED);
}

int main(void) {
    dael_engine* engine = engine_on("openssl");
    dael_key* key = key_of(KEY);
    dael_sa_filler* filler = NULL;
    dael_sa_table* table = NULL;
    EXPECT(dael_sa_filler_open(engine, NULL, &filler) == DAEL_OK);
    dael_sa_table_options options = {0};
    options.struct_size = sizeof options;
    options.plan = DAEL_SA_AHEAD;
    options.idle_ms = 60000; /* nobody is idle, however slow a machine is */
    EXPECT(dael_sa_table_open(filler, &options, &table) == DAEL_OK);
    if (filler && table) {
        both_ways(engine, table, key);
        refused(engine, filler, table, key);
    }
    /* In the order in which others would break. */
    dael_sa_filler_close(filler);
    dael_engine_close(engine);
    dael_sa_table_close(table);
    dael_key_free(key);
    dael_sa_table_close(NULL);
    return failures != 0;
}
