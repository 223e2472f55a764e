// SPDX-License-Identifier: Apache-2.0
#include "bench/work.hpp"

#include <algorithm>

#include <daelstrom/gcm.hpp>
#include <daelstrom/xts.hpp>

#include "bench/packets.hpp"
#include "io/text.hpp"

namespace dael::bench {
namespace {

// The IV, or the initial counter block, of message `index`.
Block iv_of(std::uint64_t index) noexcept {
    Block iv{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5};
    for (std::size_t i = 0; i < 6; ++i) iv[11 - i] = static_cast<std::uint8_t>(index >> 8 * i);
    iv[15] = 0xfd;  // not a multiple of 256: the start that CTR kernels like least
    return iv;
}

// Of a nonce of 12 bytes. Longer ones have zeros behind these; in XAES-256-GCM they are what the
// message's own key is derived of.
Block nonce_start(Mode mode, std::uint64_t number) noexcept {
    gcm::Nonce nonce{0xc0, 0xc1, 0xc2, 0xc3};
    for (std::size_t i = 0; i < 8; ++i)
        nonce[gcm::kNonceSize - 1 - i] = static_cast<std::uint8_t>(number >> 8 * i);
    if (mode == Mode::gcm) return gcm::start(nonce);
    Block start{};
    std::ranges::copy(nonce, start.begin());
    return start;
}

std::string mode_name(const Work& work) {
    return work.mac_only ? "gmac" : std::string(name(work.cipher.mode));
}

// What tells a row from its neighbours, besides cipher and size.
std::string manner(const Work& work) {
    std::string text = work.measure == "call" || work.measure == "kernel" ? "" : work.measure;
    if (work.where == "file")
        text = work.threads == 1 ? "one reader" : std::to_string(work.threads) + " readers";
    if (work.where == "pinned" || work.where == "pageable") text = work.measure;
    if (work.where == "host" && (work.backend == "cpu" || work.backend == "openssl"))
        text = work.threads == 1 ? "one core" : std::to_string(work.threads) + " threads";
    if (!work.list.empty())
        text += (text.empty() ? "list there" : ", list there") +
                std::string(work.list == kListBound ? ", bound" : "");
    if (!work.data.empty()) text += (text.empty() ? "" : ", ") + work.data + " data";
    if (work.placement != "apart") text += (text.empty() ? "" : ", ") + work.placement;
    return text;
}

std::string heading(const measure::Machine& machine, const std::string& where) {
    if (where == "cache") return "Messages in the cache of one core of " + machine.cpu;
    if (where == "host") return "Host memory";
    if (where == "file") return "A sealed file in the page cache, opened into " + machine.gpu;
    if (where == "device") return machine.gpu + ", device memory, read and written";
    return "Host memory (" + where + ") through " + machine.gpu;
}

}  // namespace

Work::Work(const Point& point) {
    const std::string& mode = point.text("mode");
    backend = point.text("backend");
    form = point.text("isa");
    mac_only = mode == "gmac";
    cipher.mode = mac_only ? Mode::gcm : mode_by_name(mode).value_or(Mode::ctr);
    cipher.direction =
        point.text("direction") == "decrypt" ? Direction::decrypt : Direction::encrypt;
    if (point.number("sector")) cipher.sector = static_cast<std::uint32_t>(point.number("sector"));
    bits = static_cast<int>(point.number("bits"));
    keys = point.number("keys");
    size = point.number("size");
    messages = std::max<std::uint64_t>(1, point.number("messages"));
    mix = point.text("mix");
    if (!mix.empty()) size = std::ranges::max(Mix::imix().sizes);
    list = point.text("list");
    where = point.text("where");
    if (!point.text("measure").empty()) measure = point.text("measure");
    if (!point.text("placement").empty()) placement = point.text("placement");
    threads = static_cast<int>(point.number("threads"));
    data = point.text("data");
}

Point Work::point() const {
    return {{"backend", backend},
            {"isa", form},
            {"mode", mode_name(*this)},
            {"direction", std::string(name(cipher.direction))},
            {"bits", static_cast<std::uint64_t>(bits)},
            {"sector", is(Mode::xts) ? std::uint64_t{cipher.sector} : std::uint64_t{0}},
            {"keys", keys},
            {"size", size},
            {"messages", messages},
            {"mix", mix},
            {"list", list},
            {"where", where},
            {"measure", measure},
            {"placement", placement},
            {"threads", static_cast<std::uint64_t>(threads)},
            {"data", data}};
}

std::uint64_t Work::size_of(std::uint64_t index) const {
    if (mix.empty()) return size;
    static const Mix imix = Mix::imix();
    return imix.sizes[index % imix.sizes.size()];
}

std::size_t Work::bytes() const {
    if (measure == "keys") return static_cast<std::size_t>(keys) * static_cast<unsigned>(bits) / 8;
    if (mix.empty()) return static_cast<std::size_t>(size * messages);
    std::size_t bytes = 0;
    for (std::uint64_t i = 0; i < messages; ++i) bytes += size_of(i);
    return bytes;
}

Shift shift_of(const Work& work) {
    const auto* const found = std::ranges::find(kShifts, work.placement, &Shift::name);
    return found != std::end(kShifts) ? *found : Shift{"", 0, 0};
}

std::string cipher_name(const Work& work) {
    std::string text = mode_name(work) + "-" + std::to_string(work.bits);
    if (work.tagged())
        return text + (work.cipher.direction == Direction::decrypt ? " decrypt" : "") +
               (work.keys > 1 ? ", " + std::to_string(work.keys) + " keys" : "");
    if (!work.is(Mode::ctr) && !work.is(Mode::ofb))
        text += " " + std::string(name(work.cipher.direction));
    if (work.is(Mode::xts))
        text += ", " +
                (work.cipher.sector < 1024 ? std::to_string(work.cipher.sector) + " B"
                                           : app::format_size(work.cipher.sector)) +
                " sectors";
    return text;
}

std::string size_name(const Work& work) {
    return (work.messages > 1 ? std::to_string(work.messages) + " x " : "") +
           (work.mix.empty() ? app::format_size(static_cast<double>(work.size)) : "IMIX");
}

std::string describe(const Work& work) {
    return (work.backend.empty() ? "" : work.backend + " ") + cipher_name(work) + ", " +
           size_name(work) + (work.where.empty() ? "" : ", " + work.where);
}

const measure::Columns& columns() {
    static const measure::Columns all{
        {{"backend", false,
          [](const Point& p) {
              return p.text("backend") + (p.text("isa").empty() ? "" : " " + p.text("isa"));
          }},
         {"cipher", false, [](const Point& p) { return cipher_name(Work(p)); }},
         {"size", true, [](const Point& p) { return size_name(Work(p)); }},
         {"how", false, [](const Point& p) { return manner(Work(p)); }}},
        {"cache", "host", "device", "pinned", "pageable", "file"},
        heading};
    return all;
}

std::vector<std::uint8_t> key_bytes(const Work& work, std::uint64_t index) {
    std::vector<std::uint8_t> bytes(
        static_cast<std::size_t>(work.bits / (work.is(Mode::xts) ? 4 : 8)));
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(0x9d * i + 0x35);
    for (std::size_t i = 0; i < 8; ++i) bytes[i] ^= static_cast<std::uint8_t>(index >> 8 * i);
    return bytes;
}

Result<std::vector<Key>> make_keys(const Work& work) {
    std::vector<Key> keys;
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(1, work.keys); ++i) {
        const auto bytes = key_bytes(work, i);
        DAEL_LET(key, work.is(Mode::xts) ? Key::import_xts(bytes) : Key::import(bytes));
        keys.push_back(std::move(key));
    }
    return keys;
}

std::vector<Message> lay_out(const Work& work, const std::uint8_t* in, std::uint8_t* out,
                             std::uint8_t* tags) {
    std::vector<Message> messages(work.messages);
    for (std::uint64_t i = 0; i < work.messages; ++i) {
        Message& message = messages[i];
        const std::uint64_t place = work.place_of(i), size = work.size_of(i);
        if (work.mac_only) {
            message.aad = in + place;
            message.aad_size = size;
        } else {
            message.in = in + place;
            message.out = out ? out + place : nullptr;
            message.size = size;
        }
        if (work.tagged()) {
            message.tag = tags ? tags + i * gcm::kTagSize : nullptr;
            message.key = static_cast<std::uint32_t>(i % work.keys);
            message.start = nonce_start(work.cipher.mode, i);
        } else if (work.is(Mode::xts)) {
            message.start = xts::start({kFirstSector, work.cipher.sector});
        } else if (takes_iv(work.cipher.mode)) {
            message.start = iv_of(i);
        }
    }
    return messages;
}

void renew(Mode mode, std::span<Message> messages, std::uint64_t& next) noexcept {
    for (Message& message : messages) message.start = nonce_start(mode, next++);
}

}  // namespace dael::bench
