// SPDX-License-Identifier: Apache-2.0
// Named uses of the engine for C: starts and nonces, GCM and CTR in one call.
#include <daelstrom/ctr.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/unauthenticated.hpp>
#include <daelstrom/xts.hpp>

#include <new>

#include "capi/shared.hpp"

struct dael_nonces {
    dael::NonceCounter counter;
};

using dael::Result;
using namespace dael::capi;

namespace {

void copy(const dael::Block& from, std::uint8_t* to) noexcept {
    std::copy(from.begin(), from.end(), to);
}

}  // namespace

extern "C" {

dael_status dael_gcm_start(const uint8_t nonce[DAEL_NONCE_SIZE], uint8_t start[DAEL_BLOCK_SIZE]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{nonce, "nonce"}, {start, "start"}}));
        dael::gcm::Nonce twelve;
        std::copy_n(nonce, twelve.size(), twelve.begin());
        copy(dael::gcm::start(twelve), start);
        return {};
    });
}
dael_status dael_gcm_start_iv(const dael_key* key, const void* iv, size_t iv_size,
                              uint8_t start[DAEL_BLOCK_SIZE]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{key, "key"}, {start, "start"}}));
        DAEL_TRY(readable(iv, iv_size, "iv"));
        DAEL_LET(j0, dael::gcm::start(key->key, bytes(iv, iv_size)));
        copy(j0, start);
        return {};
    });
}

dael_status dael_gcm_seal(dael_engine* engine, const dael_key* key, const void* iv, size_t iv_size,
                          const void* aad, size_t aad_size, const void* in, void* out, size_t size,
                          void* tag, size_t tag_size, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {key, "key"}, {tag, "tag"}}));
        DAEL_TRY(readable(iv, iv_size, "iv"));
        return report(
            dael::gcm::seal(engine->engine, key->key, bytes(iv, iv_size), bytes(aad, aad_size),
                            bytes(in, size), bytes(out, size), bytes(tag, tag_size)),
            ran);
    });
}
dael_status dael_gcm_open(dael_engine* engine, const dael_key* key, const void* iv, size_t iv_size,
                          const void* aad, size_t aad_size, const void* in, void* out, size_t size,
                          const void* tag, size_t tag_size, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {key, "key"}, {tag, "tag"}}));
        DAEL_TRY(readable(iv, iv_size, "iv"));
        return report(
            dael::gcm::open(engine->engine, key->key, bytes(iv, iv_size), bytes(aad, aad_size),
                            bytes(in, size), bytes(out, size), bytes(tag, tag_size)),
            ran);
    });
}

dael_status dael_ctr_crypt(dael_engine* engine, const dael_key* key,
                           const uint8_t counter[DAEL_BLOCK_SIZE], uint64_t offset, const void* in,
                           void* out, size_t size, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {key, "key"}, {counter, "counter"}}));
        const dael::HostOut to = bytes(out, size);
        const dael::Block first = block(counter);
        return report(
            in ? dael::ctr::crypt(engine->engine, key->key, first, bytes(in, size), to, offset)
               : dael::ctr::keystream(engine->engine, key->key, first, to, offset),
            ran);
    });
}
dael_status dael_ctr_crypt_device(dael_engine* engine, const dael_key* key,
                                  const uint8_t counter[DAEL_BLOCK_SIZE], uint64_t offset,
                                  const void* device_in, void* device_out, size_t size,
                                  void* stream, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {key, "key"}, {counter, "counter"}}));
        const dael::DeviceOut to{device_out, size};
        const dael::Stream on{stream};
        const dael::Block first = block(counter);
        return report(device_in
                          ? dael::ctr::crypt(engine->engine, key->key, first,
                                             dael::DeviceIn{device_in, size}, to, on, offset)
                          : dael::ctr::keystream(engine->engine, key->key, first, to, on, offset),
                      ran);
    });
}

dael_status dael_xts_start(uint64_t first, uint64_t first_high, uint8_t start[DAEL_BLOCK_SIZE]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{start, "start"}}));
        copy(dael::xts::start({.first = first, .first_high = first_high}), start);
        return {};
    });
}

dael_status dael_pad(const void* tail, size_t size, uint8_t last[DAEL_BLOCK_SIZE]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{last, "last"}}));
        DAEL_TRY(readable(tail, size, "tail"));
        if (size >= dael::kBlockSize)
            return dael::Error{dael::Code::invalid_argument,
                               "the tail is " + std::to_string(size) +
                                   " bytes; give what is left after the whole blocks, 0 to 15"};
        copy(dael::pad(bytes(tail, size)), last);
        return {};
    });
}
dael_status dael_unpad(const uint8_t last[DAEL_BLOCK_SIZE], size_t* size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{last, "last"}, {size, "size"}}));
        *size = 0;
        // Read where it lies: a copy of plaintext would have to be wiped.
        DAEL_LET(data, dael::unpad(*reinterpret_cast<const dael::Block*>(last)));
        *size = data;
        return {};
    });
}

dael_status dael_nonces_make(const uint8_t fixed[4], uint64_t first, dael_nonces** nonces) {
    return hand_out(nonces, "nonces", [&]() -> Result<dael_nonces*> {
        DAEL_TRY(given({{fixed, "fixed"}}));
        return new dael_nonces{dael::NonceCounter({fixed[0], fixed[1], fixed[2], fixed[3]}, first)};
    });
}
dael_status dael_nonces_next(dael_nonces* nonces, uint8_t nonce[DAEL_NONCE_SIZE]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{nonces, "nonces"}, {nonce, "nonce"}}));
        DAEL_LET(next, nonces->counter.next());
        std::copy(next.begin(), next.end(), nonce);
        return {};
    });
}
dael_status dael_nonces_number(dael_nonces* nonces, dael_message* messages, size_t count) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{nonces, "nonces"}}));
        DAEL_TRY(readable(messages, count, "messages"));
        return nonces->counter.number({reinterpret_cast<dael::Message*>(messages), count});
    });
}
uint64_t dael_nonces_unused(const dael_nonces* nonces) {
    return nonces ? nonces->counter.unused() : 0;
}
void dael_nonces_free(dael_nonces* nonces) {
    release(nonces);
}

}  // extern "C"
