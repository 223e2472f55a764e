// SPDX-License-Identifier: Apache-2.0
// ECB, CBC, CFB and CTR. A context holds one of the default provider's, the basis, which does
// initialisation, parameters, padding, TLS records and all that is small. Of a large update the
// whole blocks go to the engine; what then is left to say is where the chain stands: `iv` is newer
// than the basis's while `ours` is true, and is handed down before the basis goes on.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "basis.hpp"
#include "contest.hpp"
#include "pipelines.hpp"
#include "worker.hpp"

namespace dael::provider {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kPaddedFrom =
    4096;  // decryption that holds a block back costs more to hand over

using Bytes = unsigned char;

struct Blocks {
    const Basis* basis;
    void* inner;
    std::size_t from = SIZE_MAX;  // bytes of an update from which the engine may do it
    std::size_t position = 0;     // bytes since the IV
    Bytes iv[kBlock] = {};        // the chain, while `ours`
    Bytes original[kBlock] = {};  // the IV that the caller set
    bool encrypts = true, padded = true, ours = false;
    bool handed_down = false;  // the basis takes the chain for its original IV
    bool iv_set = false, tls = false;
    bool iv_fresh = false;  // the last initialisation gave one
    Kind kind;
    Pipes* pipes = nullptr;
    Worker worker;
};

Blocks& of(void* context) noexcept {
    return *static_cast<Blocks*>(context);
}
bool buffers(const Blocks& c) noexcept {
    return c.kind == Kind::ecb || c.kind == Kind::cbc;
}

bool start_basis(Blocks& c, const Bytes* key, std::size_t key_size, const Bytes* iv,
                 std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    return (c.encrypts ? c.basis->encrypt_init : c.basis->decrypt_init)(c.inner, key, key_size, iv,
                                                                        iv_size, params) == 1;
}
// At the end of a block, where the basis holds nothing: it goes on from our chain.
bool hand_down(Blocks& c) noexcept {
    if (!c.ours) return true;
    c.ours = false;
    c.handed_down = true;
    return c.kind == Kind::ecb || start_basis(c, nullptr, 0, c.iv, kBlock, nullptr);
}
bool fetch_iv(Blocks& c) noexcept {
    if (c.ours || c.kind == Kind::ecb) return true;
    if (c.position == 0 && c.iv_fresh) {
        std::copy_n(c.original, kBlock, c.iv);
        return true;
    }
    OSSL_PARAM asked[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, c.iv, kBlock),
        OSSL_PARAM_construct_end()};
    return c.basis->get_ctx_params(c.inner, asked) == 1;
}

void choose(Blocks& c) noexcept {
    c.from = SIZE_MAX;
    if (c.worker.size == 0 || c.tls || (!c.iv_set && c.kind != Kind::ecb)) return;
    c.from = from_bytes(mode_of(c.kind), c.encrypts ? DAEL_ENCRYPT : DAEL_DECRYPT);
    if (buffers(c) && !c.encrypts && c.padded) c.from = std::max(c.from, kPaddedFrom);
}

void note_params(Blocks& c, const OSSL_PARAM* params) noexcept {
    if (!params) return;
    std::size_t number = 0;
    if (const OSSL_PARAM* p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_PADDING))
        if (OSSL_PARAM_get_size_t(p, &number)) c.padded = number != 0;
    if (const OSSL_PARAM* p = OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_NUM))
        if (OSSL_PARAM_get_size_t(p, &number)) c.position = number;
    if (OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_TLS_VERSION) ||
        OSSL_PARAM_locate_const(params, OSSL_CIPHER_PARAM_TLS_MAC_SIZE))
        c.tls = true;
    choose(c);
}

int init(Blocks& c, bool encrypts, const Bytes* key, std::size_t key_size, const Bytes* iv,
         std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    // Without a new IV, CTR goes on from the chain, CBC and CFB begin anew from the IV that was
    // set last: so the basis must know the right one.
    Bytes again[kBlock];
    if (!iv && c.kind == Kind::ctr) {
        const bool at_block = c.position % kBlock == 0;
        if (c.ours && at_block && !hand_down(c)) return 0;
    } else if (!iv && c.handed_down && c.iv_set) {
        std::copy_n(c.original, kBlock, again);
        iv = again;
        iv_size = kBlock;
    }
    const bool anew = key || params || !iv || !c.iv_set || encrypts != c.encrypts;
    c.encrypts = encrypts;
    c.ours = c.iv_fresh = false;
    if (anew) c.from = SIZE_MAX;
    if (!start_basis(c, key, key_size, iv, iv_size, params)) return 0;
    c.position = 0;  // the basis forgets what it held, and the block that was begun
    if (iv && iv_size == kBlock && c.kind != Kind::ecb) {
        std::copy_n(iv, kBlock, c.original);
        c.iv_set = c.iv_fresh = true;
        c.handed_down = false;
    }
    if (!anew) {
        // After what went wrong, `from` is out of reach; all begins anew now.
        if (c.from == SIZE_MAX) choose(c);
        return 1;
    }
    if (key && key_size <= sizeof c.worker.bytes) c.worker.set(key, key_size);
    note_params(c, params);
    choose(c);
    return 1;
}

int encrypt_init(void* context, const Bytes* key, std::size_t key_size, const Bytes* iv,
                 std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    return init(of(context), true, key, key_size, iv, iv_size, params);
}
int decrypt_init(void* context, const Bytes* key, std::size_t key_size, const Bytes* iv,
                 std::size_t iv_size, const OSSL_PARAM* params) noexcept {
    return init(of(context), false, key, key_size, iv, iv_size, params);
}

// The chain after `size` bytes at `ciphertext`, and in CTR after as many blocks.
void advance(Blocks& c, const Bytes* last_block, std::size_t size) noexcept {
    if (c.kind == Kind::ctr) {
        std::uint64_t carry = size / kBlock;
        for (int i = 15; i >= 0 && carry != 0; --i) {
            carry += c.iv[i];
            c.iv[i] = static_cast<Bytes>(carry);
            carry >>= 8;
        }
    } else if (c.kind != Kind::ecb) {
        std::copy_n(last_block, kBlock, c.iv);
    }
}

// Whole blocks by the engine, from c.iv on. Returns how many bytes were done before it failed.
std::size_t run(Blocks& c, const dael_key* key, const Bytes* in, Bytes* out,
                std::size_t size) noexcept {
    const int mode = mode_of(c.kind);
    const int direction = c.encrypts || c.kind == Kind::ctr ? DAEL_ENCRYPT : DAEL_DECRYPT;
    const dael_cipher cipher{static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(direction),
                             0, 0, 0};
    const bool wide = size >= settings().threshold;
    const std::size_t most = wide ? size : Worker::kSlice;
    dael_message message{};
    dael_ran ran;
    for (std::size_t done = 0; done < size;) {
        const std::size_t count = std::min(most, size - done);
        message.in = in + done;
        message.out = out + done;
        message.size = count;
        std::copy_n(c.iv, kBlock, message.start);
        Bytes last[kBlock];  // of the ciphertext, before it is overwritten
        std::copy_n(in + done + count - kBlock, kBlock, last);
        if (dael_run(opened_engine(), &cipher, key, &message, &ran) != DAEL_OK) {
            engine_failed("an update");
            return done;
        }
        advance(c, last, count);
        done += count;
    }
    wide ? Worker::did_wide(size) : c.worker.did(size);
    note_worker(mode, c.encrypts ? DAEL_ENCRYPT : DAEL_DECRYPT, ran);
    return size;
}

bool by_basis(Blocks& c, Bytes*& out, std::size_t& written, std::size_t& room, const Bytes*& in,
              std::size_t& size, std::size_t count) noexcept {
    if (count == 0) return true;
    std::size_t made = 0;
    if (c.basis->update(c.inner, out, &made, room, in, count) != 1) return false;
    out += made;
    written += made;
    room -= made;
    in += count;
    size -= count;
    c.position += count;
    return true;
}

// An update that the basis does whole.
int small(Blocks& c, Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
          std::size_t size) noexcept {
    if (!hand_down(c)) return 0;
    if (c.basis->update(c.inner, out, written, room, in, size) != 1) {
        c.from = SIZE_MAX;  // who knows what it has taken
        return 0;
    }
    c.position += size;
    return 1;
}

// Whether input and output are neither the same nor apart, as OpenSSL itself never asks.
bool entangled(const Bytes* in, const Bytes* out, std::size_t size) noexcept {
    const auto from = reinterpret_cast<std::uintptr_t>(in);
    const auto to = reinterpret_cast<std::uintptr_t>(out);
    return in != out && (from < to ? to - from : from - to) < size + kBlock;
}

// Apart, so that the way of small updates keeps to few registers.
[[gnu::noinline]] int large(Blocks& c, Bytes* out, std::size_t* written, std::size_t room,
                            const Bytes* in, std::size_t size) noexcept {
    const bool keeps = buffers(c) && !c.encrypts && c.padded;  // the last whole block
    const std::size_t begun = c.position % kBlock;
    const bool holds = begun != 0 || (keeps && c.position != 0);
    // With something held, the output lies a part of a block behind the input.
    if (room < size || entangled(in, out, size) || (buffers(c) && holds && in == out))
        return small(c, out, written, room, in, size);
    const dael_key* const key = c.worker.ready(size);
    if (!key) return small(c, out, written, room, in, size);
    if (size < settings().threshold) {
        const std::size_t won = won_from(*c.basis, c.encrypts);
        if (size < won) {
            c.from = std::max(c.from, std::min(won, settings().threshold));
            return small(c, out, written, room, in, size);
        }
    }

    std::size_t total = 0;
    const auto failed = [&] {
        c.from = SIZE_MAX;
        ERR_raise_data(ERR_LIB_PROV, PROV_R_CIPHER_OPERATION_FAILED, "daelstrom: %s",
                       dael_last_error());
        return 0;
    };
    *written = 0;
    if (!by_basis(c, out, total, room, in, size, (kBlock - begun) % kBlock)) return failed();
    if (keeps && holds) {
        // One block more gives out the one that is held; it is then held itself, forgotten with
        // the next IV, and decrypted again as our first.
        const Bytes* const block = in;
        const std::size_t left = size;
        if (!by_basis(c, out, total, room, in, size, kBlock)) return failed();
        in = block;
        size = left;
        c.position -= kBlock;
    }
    std::size_t whole = size / kBlock * kBlock;
    if (keeps && whole == size) whole -= kBlock;
    if (!fetch_iv(c)) return failed();
    const std::size_t done = run(c, key, in, out, whole);
    // In place what failed may have gone over its own input: nothing can make that good.
    if (done != whole && in == out) return failed();
    c.ours = true;
    c.position += done;
    in += done;
    out += done;
    total += done;
    room -= done;
    size -= done;
    if (size != 0 || keeps) {
        if (c.kind == Kind::ecb) {
            c.ours = false;
            if (keeps && !start_basis(c, nullptr, 0, nullptr, 0, nullptr)) return failed();
        } else if (!hand_down(c)) {
            return failed();
        }
        if (!by_basis(c, out, total, room, in, size, size)) return failed();
    }
    *written = total;
    return 1;
}

int update(void* context, Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
           std::size_t size) noexcept {
    Blocks& c = of(context);
    if (size >= c.from) return large(c, out, written, room, in, size);
    if (c.ours) return small(c, out, written, room, in, size);
    const int ok = c.basis->update(c.inner, out, written, room, in, size);
    c.position += size;
    if (ok != 1) c.from = SIZE_MAX;
    return ok;
}

int final(void* context, Bytes* out, std::size_t* written, std::size_t room) noexcept {
    Blocks& c = of(context);
    return hand_down(c) ? c.basis->final(c.inner, out, written, room) : 0;
}

// EVP_Cipher(): whole blocks and no padding, from wherever the chain stands.
int cipher(void* context, Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
           std::size_t size) noexcept {
    Blocks& c = of(context);
    if (!hand_down(c)) return 0;
    c.position += size;
    return c.basis->cipher(c.inner, out, written, room, in, size);
}

int get_ctx_params(void* context, OSSL_PARAM* params) noexcept {
    Blocks& c = of(context);
    if (!hand_down(c) || c.basis->get_ctx_params(c.inner, params) != 1) return 0;
    if (!c.handed_down || !c.iv_set) return 1;
    OSSL_PARAM* const p = OSSL_PARAM_locate(params, OSSL_CIPHER_PARAM_IV);
    return !p || OSSL_PARAM_set_octet_ptr(p, c.original, kBlock) ||
           OSSL_PARAM_set_octet_string(p, c.original, kBlock);
}
int set_ctx_params(void* context, const OSSL_PARAM* params) noexcept {
    Blocks& c = of(context);
    if (!hand_down(c) || c.basis->set_ctx_params(c.inner, params) != 1) return 0;
    note_params(c, params);
    return 1;
}

void free_context(void* context) noexcept {
    if (!context) return;
    Blocks& c = of(context);
    c.worker.tell();
    c.worker.drop();
    Pipes::drop(c.pipes);
    c.basis->freectx(c.inner);
    OPENSSL_cleanse(c.worker.bytes, sizeof c.worker.bytes);  // the one secret
    OPENSSL_free(context);
}
void* duplicate(void* context) noexcept {
    Blocks& c = of(context);
    if (!c.basis->dupctx || (c.pipes && c.pipes->running()) || !hand_down(c)) return nullptr;
    void* const memory = OPENSSL_malloc(sizeof(Blocks));
    if (!memory) return nullptr;
    auto* const copy = new (memory) Blocks(c);
    copy->pipes = nullptr;
    copy->worker.key = nullptr;  // made ready again when there is need
    copy->worker.updates = copy->worker.done = 0;
    copy->inner = c.basis->dupctx(c.inner);
    if (copy->inner) return copy;
    OPENSSL_clear_free(memory, sizeof(Blocks));
    return nullptr;
}

}  // namespace

void* new_blocks(Provider& provider, std::size_t offer) noexcept {
    const Basis& basis = provider.basis[offer];
    void* const memory = OPENSSL_malloc(sizeof(Blocks));
    if (!memory) return nullptr;
    void* const inner = basis.newctx(provider.default_context);
    if (inner)
        return new (memory)
            Blocks{.basis = &basis, .inner = inner, .kind = kOffers[offer].kind, .worker = {}};
    OPENSSL_free(memory);
    return nullptr;
}

void offer_blocks(OSSL_DISPATCH* functions, Kind kind) noexcept {
    replace(functions, OSSL_FUNC_CIPHER_FREECTX, &free_context);
    replace(functions, OSSL_FUNC_CIPHER_DUPCTX, &duplicate);
    replace(functions, OSSL_FUNC_CIPHER_ENCRYPT_INIT, &encrypt_init);
    replace(functions, OSSL_FUNC_CIPHER_DECRYPT_INIT, &decrypt_init);
    replace(functions, OSSL_FUNC_CIPHER_UPDATE, &update);
    replace(functions, OSSL_FUNC_CIPHER_FINAL, &final);
    replace(functions, OSSL_FUNC_CIPHER_CIPHER, &cipher);
    replace(functions, OSSL_FUNC_CIPHER_GET_CTX_PARAMS, &get_ctx_params);
    replace(functions, OSSL_FUNC_CIPHER_SET_CTX_PARAMS, &set_ctx_params);
    if (kind == Kind::cbc || kind == Kind::ctr) offer_pipelines<Blocks>(functions);
}

}  // namespace dael::provider
