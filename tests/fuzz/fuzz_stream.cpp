// SPDX-License-Identifier: Apache-2.0
// A message cut into chunks, for streams (Chain), for threads and devices (slice), or by its caller
// (Pieces) comes out as it does in one piece; padding comes off as it went on, and nothing else
// comes off.
#include <algorithm>

#include <daelstrom/engine.hpp>
#include <daelstrom/unauthenticated.hpp>

#include "core/registry.hpp"
#include "fuzz/fuzz.hpp"
#include "modes/chain.hpp"
#include "modes/traits.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;

// OpenSSL's, or the reference for what that lacks.
bool is_openssls(Mode mode) {
    return !authenticates(mode) || mode == Mode::gcm;
}
core::Backend& backend(Mode mode) {
    static const auto openssl = value(core::open_backend("openssl"), "openssl"),
                      reference = value(core::open_backend("reference"), "reference");
    return is_openssls(mode) ? *openssl : *reference;
}
Engine& engine(Mode mode) {
    const auto open = [](const char* name) {
        return value(Engine::open({.backend = name, .threads = 1, .calibrated = false}), "engine");
    };
    static Engine openssl = open("openssl"), reference = open("reference");
    return is_openssls(mode) ? openssl : reference;
}

struct Case {
    Cipher cipher;
    const Key& key;
    Message message;           // start, skip, size, AAD
    Bytes in, aad, want, tag;  // `want` as the backend has it in one call
};

void run(const Case& c, const Message& message) {
    Cipher cipher = c.cipher;
    if (cipher.mode == Mode::gcm_ctr) cipher.mode = Mode::ctr;
    Code code = Code::ok;
    value(backend(cipher.mode)
              .run(cipher, {std::span(&c.key, 1), nullptr}, std::span(&message, 1),
                   std::span(&code, 1)),
          "run");
}

void check_chain(FuzzedDataProvider& data, const Case& c) {
    if (authenticates(c.cipher.mode)) return;
    modes::Chain chain(c.cipher, c.message.start, c.message.skip);
    Bytes out = c.in;
    const bool in_place = data.ConsumeBool();
    const std::size_t unit = modes::traits(c.cipher.mode).unit(c.cipher);
    std::size_t done = 0;
    while (done < c.in.size()) {
        // Every chunk but the last ends where a unit ends.
        const std::size_t head = done == 0 ? c.message.skip : 0;
        const std::size_t units = data.ConsumeIntegralInRange<std::size_t>(1, 20);
        const std::size_t size = std::min(units * unit - head, c.in.size() - done);
        run(c, chain.next((in_place ? out : c.in).data() + done, out.data() + done, size));
        chain.done();
        done += size;
    }
    require(out == c.want, "a chain of chunks gives what one call gives");
}

void check_slices(FuzzedDataProvider& data, const Case& c) {
    if (!modes::can_cut(c.cipher)) return;
    Bytes out = c.in;
    Message whole = c.message;
    whole.in = whole.out = out.data();
    const std::size_t unit = modes::traits(c.cipher.mode).unit(c.cipher);
    std::vector<Message> parts;
    for (std::size_t at = 0; at < out.size(); at += parts.back().size) {
        const std::size_t head = at == 0 ? c.message.skip : 0;
        const std::size_t units = data.ConsumeIntegralInRange<std::size_t>(1, 40);
        parts.push_back(
            modes::slice(c.cipher, whole, at, std::min(units * unit - head, out.size() - at)));
        require(parts.back().in == out.data() + at && parts.back().out == parts.back().in,
                "parts lie end to end");
        value(modes::check(c.cipher, parts.back(), 1), "a part is a message");
    }
    if (data.ConsumeBool()) std::ranges::reverse(parts);  // in place and in any order
    for (const auto& part : parts) run(c, part);
    require(out == c.want, "the parts of a message give what one call gives");
}

// Any sizes; a clone takes over now and then, and what went before may be another message.
void check_pieces(FuzzedDataProvider& data, const Case& c) {
    if (c.message.skip != 0) return;
    const bool gcm = authenticates(c.cipher.mode);
    const bool opens = gcm && c.cipher.direction == Direction::decrypt;
    const Start start(c.message.start, c.message.start_rest);
    auto pieces = value(engine(c.cipher.mode).begin(c.cipher, c.key, start), "begin");
    if (data.ConsumeBool()) {
        Bytes some = bytes(data, data.ConsumeIntegralInRange<std::size_t>(0, 60)), room(60);
        if (opens)
            value(pieces.authenticate(some), "authenticate");
        else
            value(pieces.update(some, room), "update");
        value(pieces.restart(start), "restart");
    }
    if (gcm) value(pieces.aad(c.aad), "aad");
    Bytes out, room(c.in.size() + 1);
    for (std::size_t at = 0; at < c.in.size();) {
        const std::size_t size =
            std::min(data.ConsumeIntegralInRange<std::size_t>(1, 300), c.in.size() - at);
        if (data.ConsumeIntegralInRange(0, 7) == 0) pieces = value(pieces.clone(), "clone");
        const HostIn piece = HostIn(c.in).subspan(at, size);
        std::size_t written = size;
        if (opens)
            value(pieces.update_unverified(piece, HostOut(room).first(size)), "update_unverified");
        else
            written = value(pieces.update(piece, room), "update");
        out.insert(out.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(written));
        at += size;
    }
    if (opens) {
        value(pieces.verify(c.tag), "verify");
    } else {
        Bytes last(gcm ? c.cipher.tag : pieces.held());
        require(value(pieces.finish(last), "finish") == last.size(), "the end is whole");
        if (gcm)
            require(last == c.tag, "the tag of pieces is that of one call");
        else
            out.insert(out.end(), last.begin(), last.end());
    }
    require(out == c.want, "pieces give what one call gives");
}

void check_padding(FuzzedDataProvider& data) {
    const Bytes tail =
        data.ConsumeBytes<std::uint8_t>(data.ConsumeIntegralInRange<std::size_t>(0, 15));
    const Block padded = dael::pad(tail);
    require(value(dael::unpad(padded), "padding that was put on") == tail.size(),
            "unpad undoes pad");
    require(std::ranges::equal(tail, std::span(padded).first(tail.size())), "pad keeps the data");

    // RFC 5652 6.3, in the plain way.
    const Block last = block(data);
    const std::size_t count = last[kBlockSize - 1];
    const bool valid = count >= 1 && count <= kBlockSize &&
                       std::all_of(last.end() - static_cast<std::ptrdiff_t>(count), last.end(),
                                   [&](std::uint8_t byte) { return byte == count; });
    const auto kept = dael::unpad(last);
    require(static_cast<bool>(kept) == valid, "unpad takes what RFC 5652 takes");
    if (kept)
        require(*kept == kBlockSize - count, "unpad keeps the rest");
    else
        require(kept.code() == Code::bad_padding, "one code for every fault");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    check_padding(data);
    Cipher cipher{fuzz::mode(data), fuzz::direction(data)};
    if (cipher.mode == Mode::xts)
        cipher.sector = data.ConsumeIntegralInRange<std::uint32_t>(16, 600);
    if (cipher.mode == Mode::gcm_siv) return 0;  // which has no pieces
    if (is_aegis(cipher.mode)) cipher.tag = tag_for(data, cipher.mode);
    const Key key = key_for(data, cipher.mode);
    Case c{cipher, key, {}, {}, {}, {}, Bytes(cipher.tag)};
    start_for(data, cipher.mode, c.message);
    if (cipher.mode == Mode::gcm_ctr)  // far from where its counter would wrap
        c.message.start[12] &= 0x7f;
    if (makes_keystream(cipher.mode) && data.ConsumeBool())
        c.message.skip = data.ConsumeIntegralInRange<std::uint8_t>(0, 15);
    std::size_t length = data.ConsumeIntegralInRange<std::size_t>(0, 2000);
    if (whole_blocks_only(cipher.mode)) length = length / kBlockSize * kBlockSize;
    if (cipher.mode == Mode::xts && length % cipher.sector < 16)
        length = length / cipher.sector * cipher.sector;
    c.in = bytes(data, length);
    if (authenticates(cipher.mode))
        c.aad = bytes(data, data.ConsumeIntegralInRange<std::size_t>(0, 100));
    c.want.resize(length);
    c.message.size = length;
    if (authenticates(cipher.mode)) {  // in both directions the tag is the ciphertext's
        auto tables = value(backend(cipher.mode).tables(std::span(&key, 1)), "tables");
        auto whole = value(backend(cipher.mode)
                               .begin(cipher, {std::span(&key, 1), tables.get()}, 0,
                                      {c.message.start, c.message.start_rest}),
                           "begin");
        value(whole->aad(c.aad), "aad");
        value(whole->update(c.in.data(), c.want.data(), length), "update");
        const core::Tag tag = value(whole->finish(), "finish");
        c.tag.assign(tag.begin(), tag.begin() + cipher.tag);
    } else {
        Message message = c.message;
        message.in = c.in.data();
        message.out = c.want.data();
        value(modes::check(cipher, message, 1), "check");
        run(c, message);
    }
    check_chain(data, c);
    check_slices(data, c);
    check_pieces(data, c);
    return 0;
}
