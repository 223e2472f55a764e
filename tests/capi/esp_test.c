/* SPDX-License-Identifier: Apache-2.0
 * ESP from C: two ends, what is refused, and in which order handles may go. */
#include <daelstrom/daelstrom_packets.h>

#include <stddef.h>

#include "capi.h"

_Static_assert(sizeof(dael_esp_packet) == 48, "");
_Static_assert(sizeof(dael_esp_sa) == 96, "");
_Static_assert(offsetof(dael_esp_sa, accept_again) == 36, "");
_Static_assert(sizeof(dael_esp_window) == 40, "");
_Static_assert(sizeof(dael_esp_counters) == 320, "");

/* AES-GCM in ESP, draft-mcgrew-gcm-test-01: SPI, number, IV, ciphertext and ICV; and the payload.
 */
static const char kKey[] = "feffe9928665731c6d6a8f9467308308";
static const char kPacket[] =
    "0000a5f80000000afacedbaddecaf888"
    "deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c"
    "3de81827c10e9a4f51330d0eec416642cfbb85a5b47e48a4ec3b9ba95d918bd1"
    "83b70d3aa8bc6ee4c309e9d85a41ad4a";
static const char kPayload[] =
    "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d00100"
    "0001000000000000037369700963796265726369747902646b0000010001";

static const dael_esp_sa kSa = {.struct_size = sizeof kSa,
                                .spi = 0xa5f8,
                                .salt = {0xca, 0xfe, 0xba, 0xbe},
                                .short_seq = 1,
                                .accept_again = 1, /* the known packet's number is 10 */
                                .limit = 3};

static dael_esp_packet packet_in(uint8_t* buffer, uint32_t capacity, uint32_t offset,
                                 uint32_t size) {
    const dael_esp_packet packet = {
        .buffer = buffer, .capacity = capacity, .offset = offset, .size = size, .next_header = 17};
    return packet;
}

static void known_packet(dael_esp* esp) {
    uint8_t buffer[256];
    const uint32_t size = (uint32_t)from_hex(kPacket, buffer);
    dael_esp_packet packet = packet_in(buffer, sizeof buffer, 0, size);
    size_t accepted = 9;
    EXPECT(dael_esp_decapsulate(esp, &packet, 1, DAEL_ESP_PLAIN, &accepted) == DAEL_OK);
    EXPECT(accepted == 1 && packet.verdict == DAEL_ESP_OK && packet.next_header == 1);
    EXPECT(packet.spi == 0xa5f8 && packet.sequence == 10 && packet.offset == 16);
    EXPECT(packet.size == 62 && equals_hex(buffer + packet.offset, kPayload));

    EXPECT(from_hex(kPacket, buffer) == size);
    packet = packet_in(buffer, sizeof buffer, 0, size);
    EXPECT(dael_esp_decapsulate(esp, &packet, 1, DAEL_ESP_PLAIN, &accepted) == DAEL_OK);
    EXPECT(accepted == 0 && packet.verdict == DAEL_ESP_REPLAYED);
    dael_esp_counters counters;
    EXPECT(dael_esp_count(esp, 0xa5f8, &counters) == DAEL_OK);
    EXPECT(counters.packets[DAEL_ESP_OK] == 1 && counters.packets[DAEL_ESP_REPLAYED] == 1);
    EXPECT(counters.bytes == 62);
    EXPECT(dael_esp_count(esp, 0, &counters) == DAEL_OK);
    EXPECT(counters.packets[DAEL_ESP_OK] == 1);
}

static void both_ways(dael_esp* esp, const dael_key* key) {
    dael_esp_sender* sender = NULL;
    EXPECT(dael_esp_sender_open(esp, key, &kSa, &sender) == DAEL_OK);
    uint8_t buffers[4][100];
    dael_esp_packet packets[4];
    for (uint32_t i = 0; i < 4; ++i) {
        memset(buffers[i], (int)i, sizeof buffers[i]);
        packets[i] = packet_in(buffers[i], 100, DAEL_ESP_HEADROOM, 50);
    }
    size_t sent = 0;
    int rekey_soon = 0;
    EXPECT(dael_esp_encapsulate(sender, packets, 4, &sent, &rekey_soon) == DAEL_OK);
    EXPECT(sent == 3 && rekey_soon == 1 && packets[3].verdict == DAEL_ESP_EXHAUSTED);
    EXPECT(packets[2].sequence == 3 && packets[2].size == 16 + 52 + 16);
    dael_esp_counters counters;
    EXPECT(dael_esp_sender_count(sender, &counters) == DAEL_OK);
    EXPECT(counters.packets[DAEL_ESP_OK] == 3 && counters.packets[DAEL_ESP_EXHAUSTED] == 1);
    size_t accepted = 0;
    EXPECT(dael_esp_decapsulate(esp, packets, 3, DAEL_ESP_PLAIN, &accepted) == DAEL_OK);
    EXPECT(accepted == 3 && packets[1].size == 50 && packets[1].buffer[packets[1].offset] == 1);
    dael_esp_sender_free(sender);
    REFUSED(dael_esp_sender_open(esp, key, &kSa, &sender), DAEL_INVALID_ARGUMENT, "key");
    EXPECT(sender == NULL);
}

/* A window and a sender go on in another table, as they would in another process. */
static void handed_over(dael_esp* from, dael_esp* to) {
    dael_key* const key = key_of("101112131415161718191a1b1c1d1e1f");
    dael_esp_sa sa = {.struct_size = sizeof sa, .spi = 0x4444};
    dael_esp_sender *sender = NULL, *next = NULL;
    EXPECT(dael_esp_sender_open(from, key, &sa, &sender) == DAEL_OK);
    EXPECT(dael_esp_add(from, key, &sa) == DAEL_OK);
    uint8_t buffer[2][100] = {{0}};
    dael_esp_packet packet = packet_in(buffer[0], 100, DAEL_ESP_HEADROOM, 40);
    EXPECT(dael_esp_encapsulate(sender, &packet, 1, NULL, NULL) == DAEL_OK);
    size_t size = 0, most = 0, accepted = 0;
    EXPECT(dael_esp_packet_size(&sa, 40, 0, &size) == DAEL_OK && size == packet.size);
    EXPECT(dael_esp_most_payload(&sa, size, &most) == DAEL_OK && most >= 40 && most < 44);
    memcpy(buffer[1], buffer[0], 100);
    dael_esp_packet copy = packet;
    copy.buffer = buffer[1];
    EXPECT(dael_esp_decapsulate(from, &packet, 1, DAEL_ESP_PLAIN, &accepted) == DAEL_OK);
    EXPECT(accepted == 1);

    dael_sa_state state = {.struct_size = sizeof state};
    EXPECT(dael_esp_sender_export(sender, 0, &state) == DAEL_OK && state.next == 2);
    EXPECT(dael_esp_sender_import(to, key, &sa, &state, &next) == DAEL_OK);
    uint64_t seen[16] = {0};
    dael_esp_window window = {.struct_size = sizeof window, .seen = seen, .words = 16};
    EXPECT(dael_esp_export(from, 0x4444, 1, &window) == DAEL_OK);
    EXPECT(window.top == 1 && window.accepted == 1 && window.words == 16 && seen[0] == 1);
    REFUSED(dael_esp_export(from, 0x4444, 0, &window), DAEL_INVALID_ARGUMENT, "no SA");
    EXPECT(dael_esp_import(to, key, &sa, &window) == DAEL_OK);
    EXPECT(dael_esp_decapsulate(to, &copy, 1, DAEL_ESP_PLAIN, &accepted) == DAEL_OK);
    EXPECT(accepted == 0 && copy.verdict == DAEL_ESP_REPLAYED);
    packet = packet_in(buffer[0], 100, DAEL_ESP_HEADROOM, 40);
    EXPECT(dael_esp_encapsulate(next, &packet, 1, NULL, NULL) == DAEL_OK && packet.sequence == 2);
    EXPECT(dael_esp_decapsulate(to, &packet, 1, DAEL_ESP_PLAIN, &accepted) == DAEL_OK);
    EXPECT(accepted == 1);
    packet.next_header = 0;
    EXPECT(dael_esp_encapsulate(next, &packet, 1, NULL, NULL) == DAEL_OK);
    EXPECT(packet.verdict == DAEL_ESP_MALFORMED);
    REFUSED(dael_esp_udp6_checksum(buffer[0], 100, buffer[1], buffer[1]), DAEL_INVALID_ARGUMENT,
            "datagram");
    dael_esp_sender_free(sender);
    dael_esp_sender_free(next);
    dael_key_free(key);
}

static void refusals(dael_sa_filler* filler, dael_esp* esp, const dael_key* key) {
    dael_esp* none = esp;
    dael_sa_table_options options = {.struct_size = sizeof options, .plan = 3};
    REFUSED(dael_esp_open(filler, &options, &none), DAEL_INVALID_ARGUMENT, "plan");
    EXPECT(none == NULL);
    options.struct_size = 1;
    REFUSED(dael_esp_open(filler, &options, &none), DAEL_INVALID_ARGUMENT, "struct_size");
    REFUSED(dael_esp_open(NULL, NULL, &none), DAEL_INVALID_ARGUMENT, "filler is null");
    REFUSED(dael_esp_open(filler, NULL, NULL), DAEL_INVALID_ARGUMENT, "esp is null");
    dael_esp_sa sa = kSa;
    sa.spi = 7;
    REFUSED(dael_esp_add(esp, key, &sa), DAEL_INVALID_ARGUMENT, "SPI 7;");
    sa.spi = 0x777;
    sa.icv_size = 5;
    REFUSED(dael_esp_add(esp, key, &sa), DAEL_INVALID_ARGUMENT, "ICV of 5 bytes");
    sa.icv_size = 0;
    sa.static_key = 1;
    dael_esp_sender* sender = NULL;
    REFUSED(dael_esp_sender_open(esp, key, &sa, &sender), DAEL_INVALID_ARGUMENT, "fresh");
    REFUSED(dael_esp_add(esp, key, NULL), DAEL_INVALID_ARGUMENT, "sa is null");
    REFUSED(dael_esp_add(esp, NULL, &sa), DAEL_INVALID_ARGUMENT, "key is null");
    REFUSED(dael_esp_remove(esp, 99), DAEL_INVALID_ARGUMENT, "no SA has SPI 99");
    REFUSED(dael_esp_decapsulate(esp, NULL, 1, 0, NULL), DAEL_INVALID_ARGUMENT, "packets is null");
    REFUSED(dael_esp_decapsulate(esp, NULL, 0, 3, NULL), DAEL_INVALID_ARGUMENT, "framing 3");
    EXPECT(dael_esp_decapsulate(esp, NULL, 0, 0, NULL) == DAEL_OK);
    REFUSED(dael_esp_encapsulate(NULL, NULL, 0, NULL, NULL), DAEL_INVALID_ARGUMENT,
            "sender is null");
    REFUSED(dael_esp_count(esp, 98, NULL), DAEL_INVALID_ARGUMENT, "counters is null");
    EXPECT(strcmp(dael_esp_describe(DAEL_ESP_REPLAYED), "a replay") == 0);
    EXPECT(strcmp(dael_esp_describe(-1), "unknown verdict") == 0);
    EXPECT(strcmp(dael_esp_describe(15), "unknown verdict") == 0);
    dael_esp_free(NULL);
    dael_esp_sender_free(NULL);
}

int main(void) {
    dael_engine* engine = NULL;
    EXPECT(dael_engine_open(NULL, &engine) == DAEL_OK);
    dael_sa_filler* filler = NULL;
    EXPECT(dael_sa_filler_open(engine, NULL, &filler) == DAEL_OK);
    dael_esp* esp = NULL;
    EXPECT(dael_esp_open(filler, NULL, &esp) == DAEL_OK);
    dael_key* const key = key_of(kKey);
    EXPECT(dael_esp_add(esp, key, &kSa) == DAEL_OK);
    REFUSED(dael_esp_add(esp, key, &kSa), DAEL_INVALID_ARGUMENT, "is taken");
    known_packet(esp);
    EXPECT(dael_esp_remove(esp, kSa.spi) == DAEL_OK);
    EXPECT(dael_esp_add(esp, key, &kSa) == DAEL_OK);
    both_ways(esp, key);
    dael_esp* there = NULL;
    EXPECT(dael_esp_open(filler, NULL, &there) == DAEL_OK);
    handed_over(esp, there);
    dael_esp_free(there);
    refusals(filler, esp, key);

    /* A sender keeps the table, that the filler, and that the engine. */
    dael_esp_sender* sender = NULL;
    dael_key* const other = key_of("000102030405060708090a0b0c0d0e0f");
    EXPECT(dael_esp_sender_open(esp, other, &kSa, &sender) == DAEL_OK);
    dael_key_free(other);
    dael_key_free(key);
    dael_esp_free(esp);
    dael_sa_filler_close(filler);
    dael_engine_close(engine);
    uint8_t buffer[100] = {0};
    dael_esp_packet packet = packet_in(buffer, 100, DAEL_ESP_HEADROOM, 50);
    EXPECT(dael_esp_encapsulate(sender, &packet, 1, NULL, NULL) == DAEL_OK);
    EXPECT(packet.verdict == DAEL_ESP_OK);
    dael_esp_sender_free(sender);
    return failures != 0;
}
