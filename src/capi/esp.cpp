// SPDX-License-Identifier: Apache-2.0
// ESP, for C.
#include <daelstrom/daelstrom_packets.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <daelstrom/esp.hpp>

#include "capi/keystream.hpp"

namespace {

// Senders keep the table alive, whose address must stay.
struct EspTable {
    explicit EspTable(dael::SaTable&& opened) : table(std::move(opened)), receiver(table) {}
    dael::SaTable table;
    dael::esp::Decapsulator receiver;
};

}  // namespace

struct dael_esp {
    std::shared_ptr<EspTable> its;
};
struct dael_esp_sender {
    explicit dael_esp_sender(std::shared_ptr<EspTable> of) noexcept : table(std::move(of)) {}
    std::shared_ptr<EspTable> table;  // goes last
    std::optional<dael::esp::Encapsulator> its;
};

using dael::Code;
using dael::Error;
using dael::Result;
using namespace dael::capi;
namespace esp = dael::esp;

namespace {

static_assert(sizeof(dael_esp_packet) == sizeof(esp::Packet));
static_assert(offsetof(dael_esp_packet, capacity) == offsetof(esp::Packet, capacity));
static_assert(offsetof(dael_esp_packet, offset) == offsetof(esp::Packet, offset));
static_assert(offsetof(dael_esp_packet, size) == offsetof(esp::Packet, size));
static_assert(offsetof(dael_esp_packet, pad_to) == offsetof(esp::Packet, pad_to));
static_assert(offsetof(dael_esp_packet, next_header) == offsetof(esp::Packet, next_header));
static_assert(offsetof(dael_esp_packet, verdict) == offsetof(esp::Packet, verdict));
static_assert(offsetof(dael_esp_packet, spi) == offsetof(esp::Packet, spi));
static_assert(offsetof(dael_esp_packet, sequence) == offsetof(esp::Packet, sequence));
static_assert(offsetof(dael_esp_packet, user) == offsetof(esp::Packet, user));
static_assert(DAEL_ESP_HEADROOM == esp::kHeadroom && DAEL_ESP_TAILROOM == esp::kTailroom);
static_assert(DAEL_ESP_FAULT == static_cast<int>(esp::Verdict::fault) &&
              DAEL_ESP_FAULT + 1 == esp::kVerdicts && esp::kVerdicts <= 32);
static_assert(DAEL_ESP_UDP_CONTENT == static_cast<int>(esp::Framing::udp_content));

std::span<esp::Packet> esp_packets(dael_esp_packet* packets, std::size_t count) noexcept {
    return {reinterpret_cast<esp::Packet*>(packets), count};
}

Result<esp::Options> esp_options(const dael_esp_sa* given) {
    DAEL_LET(sa, sized(given, "sa"));
    esp::Options options{.spi = sa.spi,
                         .icv_size = sa.icv_size ? sa.icv_size : std::uint8_t{16},
                         .esn = sa.short_seq == 0,
                         .udp_source = sa.udp_source,
                         .udp_destination = sa.udp_destination,
                         .fresh_key = sa.static_key == 0,
                         .soft_limit = sa.soft_limit,
                         .limit = sa.limit,
                         .limit_bytes = sa.limit_bytes,
                         .soft_limit_bytes = sa.soft_limit_bytes,
                         .most_bad_icvs = sa.most_bad_icvs,
                         .accept_again = sa.accept_again != 0};
    DAEL_LET(lifetime, milliseconds(sa.lifetime_ms));
    DAEL_LET(soft_lifetime, milliseconds(sa.soft_lifetime_ms));
    options.lifetime = lifetime;
    options.soft_lifetime = soft_lifetime;
    std::copy_n(sa.salt, 4, options.salt.begin());
    if (sa.window != 0) options.window = sa.window;
    if (sa.no_window) options.window = 0;
    if (sa.counting_ivs) options.ivs = dael::SaIvs::counting;
    if (sa.direct) options.quota = 0;
    return options;
}

void write_out(dael_esp_counters* out, const esp::Counters& counters) noexcept {
    *out = {};
    std::copy(counters.packets.begin(), counters.packets.end(), out->packets);
    out->bytes = counters.bytes;
}

Result<dael_esp_window> window_of(const dael_esp_window* given) {
    if (given->struct_size < sizeof *given)
        return Error{Code::invalid_argument,
                     "dael_esp_window says that it has " + std::to_string(given->struct_size) +
                         " bytes; set struct_size to sizeof(dael_esp_window)"};
    DAEL_LET(window, sized(given, "dael_esp_window"));
    DAEL_TRY(readable(window.seen, window.words, "seen"));
    return window;
}

}  // namespace

extern "C" {

const char* dael_esp_describe(int verdict) {
    const bool known = verdict >= 0 && verdict < static_cast<int>(esp::kVerdicts);
    // All of them are literals.
    return known ? esp::describe(static_cast<esp::Verdict>(verdict)).data() : "unknown verdict";
}

dael_status dael_esp_open(dael_sa_filler* filler, const dael_sa_table_options* options,
                          dael_esp** out) {
    return hand_out(out, "esp", [&]() -> Result<dael_esp*> {
        DAEL_TRY(given({{filler, "filler"}}));
        DAEL_LET(wanted, table_options(options));
        DAEL_LET(table, dael::SaTable::open(filler->filler, wanted));
        return new dael_esp{std::make_shared<EspTable>(std::move(table))};
    });
}
void dael_esp_free(dael_esp* esp) {
    release(esp);
}

dael_status dael_esp_add(dael_esp* to, const dael_key* key, const dael_esp_sa* sa) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{to, "esp"}, {key, "key"}, {sa, "sa"}}));
        DAEL_LET(options, esp_options(sa));
        return to->its->receiver.add(key->key, options);
    });
}
dael_status dael_esp_remove(dael_esp* from, uint32_t spi) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{from, "esp"}}));
        return from->its->receiver.remove(spi);
    });
}
dael_status dael_esp_export(dael_esp* from, uint32_t spi, int remove, dael_esp_window* out) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{from, "esp"}, {out, "window"}}));
        DAEL_LET(window, window_of(out));
        esp::WindowState state;
        if (remove != 0) {
            DAEL_TRY(from->its->receiver.remove(spi, &state));
        } else {
            DAEL_LET(now, from->its->receiver.export_state(spi));
            state = std::move(now);
        }
        window.top = state.top;
        window.accepted = state.accepted;
        window.words = std::min(window.words, state.seen.size());
        std::copy_n(state.seen.begin(), window.words, window.seen);
        return write_sized(out, window, "dael_esp_window");
    });
}
dael_status dael_esp_import(dael_esp* to, const dael_key* key, const dael_esp_sa* sa,
                            const dael_esp_window* from) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{to, "esp"}, {key, "key"}, {sa, "sa"}, {from, "window"}}));
        DAEL_LET(options, esp_options(sa));
        DAEL_LET(window, window_of(from));
        return to->its->receiver.add(
            key->key, options,
            {window.top, window.accepted, {window.seen, window.seen + window.words}});
    });
}
dael_status dael_esp_decapsulate(dael_esp* by, dael_esp_packet* packets, size_t count, int framing,
                                 size_t* accepted) {
    return call([&]() -> Result<> {
        if (accepted) *accepted = 0;
        DAEL_TRY(given({{by, "esp"}}));
        DAEL_TRY(readable(packets, count, "packets"));
        if (framing < 0 || framing > DAEL_ESP_UDP_CONTENT)
            return Error{Code::invalid_argument,
                         "framing " + std::to_string(framing) + "; there are 0, 1 and 2"};
        const std::size_t ok = by->its->receiver.decapsulate(esp_packets(packets, count),
                                                             static_cast<esp::Framing>(framing));
        if (accepted) *accepted = ok;
        return {};
    });
}
dael_status dael_esp_count(const dael_esp* of, uint32_t spi, dael_esp_counters* counters) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{of, "esp"}, {counters, "counters"}}));
        if (spi == 0) {
            write_out(counters, of->its->receiver.counters());
            return {};
        }
        DAEL_LET(one, of->its->receiver.counters(spi));
        write_out(counters, one);
        return {};
    });
}

dael_status dael_esp_sender_open(dael_esp* in, const dael_key* key, const dael_esp_sa* sa,
                                 dael_esp_sender** sender) {
    return hand_out(sender, "sender", [&]() -> Result<dael_esp_sender*> {
        DAEL_TRY(given({{in, "esp"}, {key, "key"}, {sa, "sa"}}));
        DAEL_LET(options, esp_options(sa));
        auto made = std::make_unique<dael_esp_sender>(in->its);
        DAEL_LET(opened, esp::Encapsulator::open(in->its->table, key->key, options));
        made->its = std::move(opened);
        return made.release();
    });
}
dael_status dael_esp_sender_export(dael_esp_sender* sender, uint64_t more, dael_sa_state* out) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{sender, "sender"}, {out, "state"}}));
        DAEL_TRY(whole_state(out));
        DAEL_LET(state, sender->its->export_state(more));
        return write_state(out, state);
    });
}
dael_status dael_esp_sender_import(dael_esp* in, const dael_key* key, const dael_esp_sa* sa,
                                   const dael_sa_state* state, dael_esp_sender** sender) {
    return hand_out(sender, "sender", [&]() -> Result<dael_esp_sender*> {
        DAEL_TRY(given({{in, "esp"}, {key, "key"}, {sa, "sa"}, {state, "state"}}));
        DAEL_LET(options, esp_options(sa));
        DAEL_LET(from, read_state(state));
        // Made before the state is taken over, which is done once.
        auto made = std::make_unique<dael_esp_sender>(in->its);
        DAEL_LET(opened, esp::Encapsulator::open(in->its->table, key->key, options, from));
        made->its = std::move(opened);
        return made.release();
    });
}
void dael_esp_sender_free(dael_esp_sender* sender) {
    release(sender);
}
dael_status dael_esp_encapsulate(dael_esp_sender* sender, dael_esp_packet* packets, size_t count,
                                 size_t* sent, int* rekey_soon) {
    return call([&]() -> Result<> {
        if (sent) *sent = 0;
        if (rekey_soon) *rekey_soon = 0;
        DAEL_TRY(given({{sender, "sender"}}));
        DAEL_TRY(readable(packets, count, "packets"));
        DAEL_LET(done, sender->its->encapsulate(esp_packets(packets, count)));
        if (sent) *sent = done.packets;
        if (rekey_soon) *rekey_soon = done.rekey_soon;
        return {};
    });
}
dael_status dael_esp_packet_size(const dael_esp_sa* sa, size_t payload, size_t pad_to,
                                 size_t* size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{sa, "sa"}, {size, "size"}}));
        DAEL_LET(options, esp_options(sa));
        *size = esp::packet_size(options, payload, pad_to);
        return {};
    });
}
dael_status dael_esp_most_payload(const dael_esp_sa* sa, size_t room, size_t* payload) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{sa, "sa"}, {payload, "payload"}}));
        DAEL_LET(options, esp_options(sa));
        *payload = esp::most_payload(options, room);
        return {};
    });
}
dael_status dael_esp_udp6_checksum(uint8_t* datagram, size_t size, const uint8_t source[16],
                                   const uint8_t destination[16]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{datagram, "datagram"}, {source, "source"}, {destination, "destination"}}));
        return esp::udp6_checksum({datagram, size}, std::span<const std::uint8_t, 16>(source, 16),
                                  std::span<const std::uint8_t, 16>(destination, 16));
    });
}
dael_status dael_esp_sender_count(const dael_esp_sender* of, dael_esp_counters* counters) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{of, "sender"}, {counters, "counters"}}));
        write_out(counters, of->its->counters());
        return {};
    });
}

}  // extern "C"
