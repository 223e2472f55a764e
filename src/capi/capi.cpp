// SPDX-License-Identifier: Apache-2.0
// The C ABI over the C++ interface: checks pointers and enumerations, turns Results into statuses.
#include <daelstrom/daelstrom.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "capi/shared.hpp"

struct dael_xts_key {
    dael::XtsKey key;
};

namespace {

using dael::Code;
using dael::Error;
using dael::Result;
using dael::capi::call;
using dael::capi::null;
using dael::capi::report;

static_assert(static_cast<int>(Code::authentication) == DAEL_AUTHENTICATION &&
              DAEL_AUTHENTICATION + 1 == dael::kCodeCount);
static_assert(static_cast<int>(Code::unsupported) == DAEL_UNSUPPORTED);
static_assert(static_cast<int>(dael::Mode::ctr) == DAEL_CTR);
static_assert(static_cast<int>(dael::Direction::decrypt) == DAEL_DECRYPT);
static_assert(dael::kBlockSize == DAEL_BLOCK_SIZE);

thread_local std::string last_error;

Result<> check_direction(int direction) {
    if (direction == DAEL_ENCRYPT || direction == DAEL_DECRYPT) return {};
    return Error{Code::invalid_argument, "direction " + std::to_string(direction) +
                                             " is unknown; give 0 to encrypt, 1 to decrypt"};
}

Result<dael::Cipher> cipher(int mode, int direction, const std::uint8_t* iv, std::uint64_t offset) {
    if (mode < DAEL_ECB || mode > DAEL_CTR)
        return Error{Code::invalid_argument,
                     "mode " + std::to_string(mode) + " is unknown; there are 0 to 4"};
    DAEL_TRY(check_direction(direction));
    dael::Cipher result{
        static_cast<dael::Mode>(mode), static_cast<dael::Direction>(direction), {}, offset};
    if (iv)
        std::copy_n(iv, dael::kBlockSize, result.iv.begin());
    else if (dael::takes_iv(result.mode))
        return Error{Code::iv_size, "the IV is null; this mode takes 16 bytes"};
    return result;
}

}  // namespace

namespace dael::capi {

dael_status failed(Error error) noexcept {
    last_error = std::move(error.message);
    return static_cast<dael_status>(error.code);
}

Result<> report(Result<Ran> ran, dael_ran* out) {
    if (!ran) return std::move(ran).error();
    if (!out) return {};
    *out = {};
    std::strncpy(out->backend, ran->backend.c_str(), sizeof out->backend - 1);
    out->threads = ran->threads;
    out->chunks = ran->chunks;
    return {};
}

}  // namespace dael::capi

namespace {

// Calls `encrypt` or `decrypt` with what both take first.
template <class Encrypt, class Decrypt>
Result<> xts(const dael_engine* engine, const dael_xts_key* key, int direction,
             const dael_xts_sectors* sectors, dael_ran* ran, Encrypt encrypt, Decrypt decrypt) {
    if (!engine || !key) return null(engine ? "key" : "engine");
    if (!sectors) return null("sectors");
    DAEL_TRY(check_direction(direction));
    const dael::XtsSectors which{sectors->first, sectors->size, sectors->first_high};
    return report(direction == DAEL_ENCRYPT ? encrypt(which) : decrypt(which), ran);
}

}  // namespace

extern "C" {

const char* dael_strerror(int value) {
    if (value < 0 || value >= dael::kCodeCount) return "unknown status";
    return dael::describe(static_cast<Code>(value)).data();  // literals, which end in a zero
}

const char* dael_last_error(void) {
    return last_error.c_str();
}

dael_status dael_engine_open(const char* backend, int threads, dael_engine** engine) {
    return call([&]() -> Result<> {
        if (!engine) return null("engine");
        *engine = nullptr;
        auto opened = dael::Engine::open({.backend = backend ? backend : "", .threads = threads});
        if (!opened) return std::move(opened).error();
        *engine = new dael_engine{std::move(*opened)};
        return {};
    });
}

void dael_engine_close(dael_engine* engine) {
    delete engine;
}

dael_status dael_key_import(const void* bytes, size_t size, dael_key** key) {
    return call([&]() -> Result<> {
        if (!key) return null("key");
        *key = nullptr;
        if (!bytes) return null("the key's bytes");
        auto imported = dael::Key::import({static_cast<const std::uint8_t*>(bytes), size});
        if (!imported) return std::move(imported).error();
        *key = new dael_key{std::move(*imported)};
        return {};
    });
}

void dael_key_free(dael_key* key) {
    delete key;
}

dael_status dael_crypt(dael_engine* engine, const dael_key* key, int mode, int direction,
                       const uint8_t* iv, uint64_t offset, const void* in, void* out, size_t size,
                       dael_ran* ran) {
    return call([&]() -> Result<> {
        if (!engine || !key) return null(engine ? "key" : "engine");
        auto how = cipher(mode, direction, iv, offset);
        if (!how) return std::move(how).error();
        return report(
            engine->engine.run(key->key, *how, {static_cast<const std::uint8_t*>(in), size},
                               {static_cast<std::uint8_t*>(out), size}),
            ran);
    });
}

dael_status dael_crypt_device(dael_engine* engine, const dael_key* key, int mode, int direction,
                              const uint8_t* iv, uint64_t offset, const void* device_in,
                              void* device_out, size_t size, void* stream, dael_ran* ran) {
    return call([&]() -> Result<> {
        if (!engine || !key) return null(engine ? "key" : "engine");
        auto how = cipher(mode, direction, iv, offset);
        if (!how) return std::move(how).error();
        return report(engine->engine.run(key->key, *how, dael::DeviceIn{device_in, size},
                                         dael::DeviceOut{device_out, size}, dael::Stream{stream}),
                      ran);
    });
}

dael_status dael_crypt_batch(dael_engine* engine, const dael_key* key, int mode, int direction,
                             const dael_message* messages, size_t count, dael_ran* ran) {
    return call([&]() -> Result<> {
        if (!engine || !key) return null(engine ? "key" : "engine");
        if (!messages && count != 0) return null("messages");
        constexpr std::uint8_t kUnused[DAEL_BLOCK_SIZE] = {};
        auto how = cipher(mode, direction, kUnused, 0);
        if (!how) return std::move(how).error();
        std::vector<dael::Message> batch(count);
        for (size_t i = 0; i < count; ++i) {
            const dael_message& from = messages[i];
            batch[i] = {static_cast<const std::uint8_t*>(from.in),
                        static_cast<std::uint8_t*>(from.out),
                        from.size,
                        {},
                        from.offset};
            std::copy_n(from.iv, dael::kBlockSize, batch[i].iv.begin());
        }
        return report(engine->engine.run(key->key, how->mode, how->direction, batch), ran);
    });
}

dael_status dael_xts_key_import(const void* bytes, size_t size, dael_xts_key** key) {
    return call([&]() -> Result<> {
        if (!key) return null("key");
        *key = nullptr;
        if (!bytes) return null("the key's bytes");
        auto imported = dael::XtsKey::import({static_cast<const std::uint8_t*>(bytes), size});
        if (!imported) return std::move(imported).error();
        *key = new dael_xts_key{std::move(*imported)};
        return {};
    });
}

void dael_xts_key_free(dael_xts_key* key) {
    delete key;
}

dael_status dael_xts(dael_engine* engine, const dael_xts_key* key, int direction,
                     const dael_xts_sectors* sectors, const void* in, void* out, size_t size,
                     dael_ran* ran) {
    const dael::HostIn from(static_cast<const std::uint8_t*>(in), size);
    const dael::HostOut to(static_cast<std::uint8_t*>(out), size);
    return call([&] {
        return xts(
            engine, key, direction, sectors, ran,
            [&](const auto& s) { return engine->engine.xts_encrypt(key->key, s, from, to); },
            [&](const auto& s) { return engine->engine.xts_decrypt(key->key, s, from, to); });
    });
}

dael_status dael_xts_device(dael_engine* engine, const dael_xts_key* key, int direction,
                            const dael_xts_sectors* sectors, const void* device_in,
                            void* device_out, size_t size, void* stream, dael_ran* ran) {
    const dael::DeviceIn from{device_in, size};
    const dael::DeviceOut to{device_out, size};
    const dael::Stream on{stream};
    return call([&] {
        return xts(
            engine, key, direction, sectors, ran,
            [&](const auto& s) { return engine->engine.xts_encrypt(key->key, s, from, to, on); },
            [&](const auto& s) { return engine->engine.xts_decrypt(key->key, s, from, to, on); });
    });
}

void* dael_pinned_alloc(size_t size) {
    return dael::allocate_pinned(size);
}
void dael_pinned_free(void* memory) {
    dael::release_pinned(memory);
}

dael_status dael_list_backends(void (*visit)(void* context, const dael_backend* backend),
                               void* context) {
    return call([&]() -> Result<> {
        if (!visit) return null("visit");
        for (const dael::BackendInfo& info : dael::list_backends()) {
            const dael_backend backend{info.name.c_str(), info.description.c_str(),
                                       info.summary.c_str(), info.present, info.missing.c_str()};
            visit(context, &backend);
        }
        return {};
    });
}

}  // extern "C"
