// SPDX-License-Identifier: Apache-2.0
// GCM in the C ABI.
#include <cstddef>
#include <cstring>
#include <vector>

#include "capi/shared.hpp"

struct dael_keyset {
    dael::KeySet keys;
};

namespace {

using dael::Code;
using dael::GcmMessage;
using dael::Result;
using dael::capi::call;
using dael::capi::null;
using dael::capi::report;

// A list of the one is a list of the other.
static_assert(sizeof(dael_gcm_message) == sizeof(GcmMessage));
static_assert(offsetof(dael_gcm_message, in) == offsetof(GcmMessage, in));
static_assert(offsetof(dael_gcm_message, out) == offsetof(GcmMessage, out));
static_assert(offsetof(dael_gcm_message, size) == offsetof(GcmMessage, size));
static_assert(offsetof(dael_gcm_message, aad) == offsetof(GcmMessage, aad));
static_assert(offsetof(dael_gcm_message, aad_size) == offsetof(GcmMessage, aad_size));
static_assert(offsetof(dael_gcm_message, tag) == offsetof(GcmMessage, tag));
static_assert(offsetof(dael_gcm_message, nonce) == offsetof(GcmMessage, nonce));
static_assert(offsetof(dael_gcm_message, key) == offsetof(GcmMessage, key));
static_assert(DAEL_NONCE_SIZE == dael::kNonceSize && DAEL_TAG_SIZE == dael::kTagSize);

template <class Batch>
Result<> run_batch(dael_engine* engine, const dael_keyset* keys, const dael_gcm_message* messages,
                   size_t count, int* results, size_t tag_size, dael_ran* ran, Batch batch) {
    if (!engine || !keys) return null(engine ? "keys" : "engine");
    if (count != 0 && !messages) return null("messages");
    if (count != 0 && !results) return null("results");
    std::vector<GcmMessage> list(count);
    if (count != 0)
        std::memcpy(static_cast<void*>(list.data()), messages, count * sizeof(GcmMessage));
    std::vector<Code> codes(count, Code::internal);
    auto done = (engine->engine.*batch)(keys->keys, list, codes, tag_size);
    for (size_t i = 0; i < count; ++i) results[i] = static_cast<int>(codes[i]);
    return report(std::move(done), ran);
}

std::span<const std::uint8_t> bytes(const void* data, size_t size) {
    return {static_cast<const std::uint8_t*>(data), size};
}
std::span<std::uint8_t> bytes(void* data, size_t size) {
    return {static_cast<std::uint8_t*>(data), size};
}

}  // namespace

extern "C" {

dael_status dael_gcm_seal(dael_engine* engine, const dael_key* key, const void* iv, size_t iv_size,
                          const void* aad, size_t aad_size, const void* in, void* out, size_t size,
                          void* tag, size_t tag_size, dael_ran* ran) {
    return call([&]() -> Result<> {
        if (!engine || !key) return null(engine ? "key" : "engine");
        return report(
            engine->engine.gcm_seal(key->key, bytes(iv, iv_size), bytes(aad, aad_size),
                                    bytes(in, size), bytes(out, size), bytes(tag, tag_size)),
            ran);
    });
}

dael_status dael_gcm_open(dael_engine* engine, const dael_key* key, const void* iv, size_t iv_size,
                          const void* aad, size_t aad_size, const void* in, void* out, size_t size,
                          const void* tag, size_t tag_size, dael_ran* ran) {
    return call([&]() -> Result<> {
        if (!engine || !key) return null(engine ? "key" : "engine");
        return report(
            engine->engine.gcm_open(key->key, bytes(iv, iv_size), bytes(aad, aad_size),
                                    bytes(in, size), bytes(out, size), bytes(tag, tag_size)),
            ran);
    });
}

dael_status dael_keyset_prepare(dael_engine* engine, const dael_key* const* keys, size_t count,
                                dael_keyset** set) {
    return call([&]() -> Result<> {
        if (!set) return null("set");
        *set = nullptr;
        if (!engine || !keys) return null(engine ? "keys" : "engine");
        std::vector<dael::Key> copies;
        copies.reserve(count);
        for (size_t i = 0; i < count; ++i) {
            if (!keys[i]) return null("a key");
            auto copy = keys[i]->key.duplicate();
            if (!copy) return std::move(copy).error();
            copies.push_back(std::move(*copy));
        }
        auto prepared = engine->engine.prepare_keys(copies);
        if (!prepared) return std::move(prepared).error();
        *set = new dael_keyset{std::move(*prepared)};
        return {};
    });
}

void dael_keyset_free(dael_keyset* set) {
    delete set;
}

dael_status dael_seal_batch(dael_engine* engine, const dael_keyset* keys,
                            const dael_gcm_message* messages, size_t count, int* results,
                            size_t tag_size, dael_ran* ran) {
    return call([&] {
        return run_batch(engine, keys, messages, count, results, tag_size, ran,
                         &dael::Engine::seal_batch);
    });
}

dael_status dael_open_batch(dael_engine* engine, const dael_keyset* keys,
                            const dael_gcm_message* messages, size_t count, int* results,
                            size_t tag_size, dael_ran* ran) {
    return call([&] {
        return run_batch(engine, keys, messages, count, results, tag_size, ran,
                         &dael::Engine::open_batch);
    });
}

}  // extern "C"
