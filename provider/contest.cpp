// SPDX-License-Identifier: Apache-2.0
#include "contest.hpp"

#include <openssl/crypto.h>
#include <time.h>

#include <algorithm>
#include <atomic>

#include "process.hpp"
#include "settings.hpp"

namespace dael::provider {
namespace {

constexpr std::size_t kMax = 16384;
constexpr std::size_t kSizes[] = {256, 1024, 2048, 4096, kMax};
constexpr int kRounds = 9;  // the quickest counts: what disturbs a thread makes it slower only
// For AES with keys of 16, 24 and 32 bytes, the modes up to GCM, both directions. 0: not known.
constinit std::atomic<std::size_t> known[3][DAEL_GCM + 1][2];

using Bytes = unsigned char;
constexpr Bytes kZeros[kMax] = {};

std::uint64_t now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(t.tv_nsec);
}

// One side each: a message of so many bytes, from its IV to its end.
struct Contest {
    const Basis& basis;
    bool encrypts;
    void* inner = nullptr;
    dael_key* key = nullptr;
    dael_pieces* pieces = nullptr;
    Bytes* out = nullptr;

    Contest(const Basis& which, bool direction) noexcept : basis(which), encrypts(direction) {}
    Contest(const Contest&) = delete;
    Contest& operator=(const Contest&) = delete;
    ~Contest() {
        if (inner) basis.freectx(inner);
        dael_pieces_free(pieces);
        dael_key_free(key);
        OPENSSL_free(out);
    }

    bool gcm() const noexcept { return basis.kind == Kind::gcm; }
    dael_cipher cipher() const noexcept {
        return {static_cast<std::uint8_t>(mode_of(basis.kind)),
                static_cast<std::uint8_t>(encrypts ? DAEL_ENCRYPT : DAEL_DECRYPT),
                static_cast<std::uint8_t>(gcm() ? 16 : 0), 0, 0};
    }
    bool ready() noexcept {
        const auto init = encrypts ? basis.encrypt_init : basis.decrypt_init;
        inner = basis.newctx(basis.provider_context);
        out = static_cast<Bytes*>(OPENSSL_malloc(kMax + 16));
        if (!inner || !out || dael_key_import(kZeros, basis.key_bytes, &key) != DAEL_OK ||
            init(inner, kZeros, basis.key_bytes, nullptr, 0, nullptr) != 1)
            return false;
        const dael_cipher c = cipher();
        return !gcm() || dael_begin(opened_engine(), &c, key, kZeros, &pieces) == DAEL_OK;
    }
    bool theirs(std::size_t size) const noexcept {
        const auto init = encrypts ? basis.encrypt_init : basis.decrypt_init;
        std::size_t made = 0;
        const std::size_t iv = basis.kind == Kind::ecb ? 0 : gcm() ? 12 : 16;
        if (init(inner, nullptr, 0, iv ? kZeros : nullptr, iv, nullptr) != 1 ||
            basis.update(inner, out, &made, kMax + 16, kZeros, size) != 1)
            return false;
        // Opened zeros have no right tag; that it is found out is what takes time.
        if (gcm()) (void)basis.final(inner, out, &made, 16);
        return true;
    }
    bool ours(std::size_t size) const noexcept {
        if (!gcm()) {
            const dael_cipher c = cipher();
            dael_message message{};
            message.in = kZeros;
            message.out = out;
            message.size = size;
            return dael_run(opened_engine(), &c, key, &message, nullptr) == DAEL_OK;
        }
        Bytes start[16], tag[16];
        if (dael_gcm_start(kZeros, start) != DAEL_OK ||
            dael_pieces_restart(pieces, start) != DAEL_OK)
            return false;
        if (encrypts)
            return dael_pieces_update(pieces, kZeros, size, out, size, nullptr) == DAEL_OK &&
                   dael_pieces_finish(pieces, tag, 16, nullptr) == DAEL_OK;
        return dael_pieces_update_unverified(pieces, kZeros, out, size) == DAEL_OK &&
               dael_pieces_tag(pieces, tag) == DAEL_OK;
    }
    bool won(std::size_t size) const noexcept {
        std::uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
        for (int round = 0; round < kRounds; ++round) {
            for (const int side : {0, 1}) {
                const std::uint64_t began = now();
                if (!(side == 0 ? theirs(size) : ours(size))) return false;
                best[side] = std::min(best[side], now() - began);
            }
        }
        return best[1] + best[1] / 32 < best[0];  // clearly
    }
};

}  // namespace

std::size_t won_from(const Basis& basis, bool encrypts) noexcept {
    const int mode = mode_of(basis.kind);
    auto& answer = known[basis.key_bytes / 8 - 2][mode][encrypts ? 0 : 1];
    if (const std::size_t from = answer.load(std::memory_order_relaxed)) return from;
    const std::size_t least =
        std::max<std::size_t>(from_bytes(mode, encrypts ? DAEL_ENCRYPT : DAEL_DECRYPT), 1);
    std::size_t from = least;
    if (settings().warmup != 0) {
        // Opened zeros are refused by a newer OpenSSL with an error, which is nobody's business.
        const Quiet quiet;
        Contest contest(basis, encrypts);
        from = SIZE_MAX;
        if (contest.ready())
            for (std::size_t i = sizeof kSizes / sizeof *kSizes;
                 i-- > 0 && kSizes[i] >= least && contest.won(kSizes[i]);)
                from = kSizes[i];
    }
    answer.store(from, std::memory_order_relaxed);
    return from;
}

}  // namespace dael::provider
