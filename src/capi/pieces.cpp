// SPDX-License-Identifier: Apache-2.0
// A message in pieces, for C.
#include <daelstrom/pieces.hpp>

#include <new>

#include "capi/shared.hpp"

struct dael_pieces {
    dael::Pieces message;
    dael::Mode mode;
};

using dael::Result;
using namespace dael::capi;

namespace {

// As many bytes as the mode has.
Result<dael::Start> start_at(const std::uint8_t* start, dael::Mode mode) {
    if (!dael::takes_iv(mode)) return dael::Start();
    if (!start) return null("start");
    return dael::Start(block(start),
                       dael::has_start_rest(mode) ? block(start + DAEL_BLOCK_SIZE) : dael::Block());
}

Result<> written_to(size_t* out, const Result<std::size_t>& written) {
    if (!written) return written.error();
    if (out) *out = *written;
    return {};
}

}  // namespace

extern "C" {

dael_status dael_begin(dael_engine* engine, const dael_cipher* what, const dael_key* key,
                       const uint8_t* start, dael_pieces** pieces) {
    return hand_out(pieces, "pieces", [&]() -> Result<dael_pieces*> {
        DAEL_TRY(given({{engine, "engine"}, {what, "cipher"}, {key, "key"}}));
        DAEL_LET(from, start_at(start, cipher(what).mode));
        DAEL_LET(begun, engine->engine.begin(cipher(what), key->key, from));
        return new dael_pieces{std::move(begun), cipher(what).mode};
    });
}
void dael_pieces_free(dael_pieces* pieces) {
    release(pieces);
}

dael_status dael_pieces_aad(dael_pieces* pieces, const void* data, size_t size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{pieces, "pieces"}}));
        DAEL_TRY(readable(data, size, "the additional data"));
        return pieces->message.aad(bytes(data, size));
    });
}
dael_status dael_pieces_update(dael_pieces* pieces, const void* in, size_t in_size, void* out,
                               size_t out_size, size_t* written) {
    return call([&]() -> Result<> {
        if (written) *written = 0;
        DAEL_TRY(given({{pieces, "pieces"}}));
        DAEL_TRY(readable(in, in_size, "in"));
        DAEL_TRY(readable(out, out_size, "out"));
        return written_to(written,
                          pieces->message.update(bytes(in, in_size), bytes(out, out_size)));
    });
}
dael_status dael_pieces_authenticate(dael_pieces* pieces, const void* ciphertext, size_t size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{pieces, "pieces"}}));
        DAEL_TRY(readable(ciphertext, size, "ciphertext"));
        return pieces->message.authenticate(bytes(ciphertext, size));
    });
}
dael_status dael_pieces_update_unverified(dael_pieces* pieces, const void* in, void* out,
                                          size_t size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{pieces, "pieces"}}));
        DAEL_TRY(readable(in, size, "in"));
        DAEL_TRY(readable(out, size, "out"));
        return pieces->message.update_unverified(bytes(in, size), bytes(out, size));
    });
}
dael_status dael_pieces_verify(dael_pieces* pieces, const void* tag, size_t tag_size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{pieces, "pieces"}, {tag, "tag"}}));
        return pieces->message.verify(bytes(tag, tag_size));
    });
}
dael_status dael_pieces_tag(dael_pieces* pieces, uint8_t tag[DAEL_TAG_SIZE]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{pieces, "pieces"}, {tag, "tag"}}));
        DAEL_LET(whole, pieces->message.tag());
        std::copy(whole.begin(), whole.end(), tag);
        return {};
    });
}
dael_status dael_pieces_finish(dael_pieces* pieces, void* out, size_t out_size, size_t* written) {
    return call([&]() -> Result<> {
        if (written) *written = 0;
        DAEL_TRY(given({{pieces, "pieces"}}));
        DAEL_TRY(readable(out, out_size, "out"));
        return written_to(written, pieces->message.finish(bytes(out, out_size)));
    });
}

size_t dael_pieces_unit(const dael_pieces* pieces) {
    return pieces ? pieces->message.unit() : 0;
}
size_t dael_pieces_held(const dael_pieces* pieces) {
    return pieces ? pieces->message.held() : 0;
}

dael_status dael_pieces_clone(const dael_pieces* pieces, dael_pieces** copy) {
    return hand_out(copy, "copy", [&]() -> Result<dael_pieces*> {
        DAEL_TRY(given({{pieces, "pieces"}}));
        DAEL_LET(another, pieces->message.clone());
        return new dael_pieces{std::move(another), pieces->mode};
    });
}
dael_status dael_pieces_restart(dael_pieces* pieces, const uint8_t* start) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{pieces, "pieces"}}));
        DAEL_LET(from, start_at(start, pieces->mode));
        return pieces->message.restart(from);
    });
}

}  // extern "C"
