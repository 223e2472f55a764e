// SPDX-License-Identifier: Apache-2.0
// The lock in front of a stream that is sealed with a passphrase. All numbers are big-endian:
//
//     0   8  "DAELSEAL"
//     8   1  version, 1
//     9   1  log2 of scrypt's N
//    10   1  r
//    11   1  p
//    12   4  bytes of a segment
//    16  32  salt
//    48  12  nonce
//    60  32  the stream's key, under AES-256-GCM with the key that scrypt makes of the passphrase
//    92  16  tag, which covers all that stands before it
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include <daelstrom/gcm.hpp>
#include <daelstrom/sealed.hpp>

#include "core/guard.hpp"
#include "core/libcrypto.hpp"
#include "core/random.hpp"
#include "formats/keys.hpp"

namespace dael::sealed {
namespace {

using formats::SecretBytes;

constexpr std::string_view kMagic = "DAELSEAL";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kCostAt = 9, kSegmentAt = 12, kSaltAt = 16, kNonceAt = 48, kKeyAt = 60,
                      kTagAt = 92, kKeySize = 32;

// A lock's parts.
HostIn salt_of(const Lock& lock) {
    return HostIn(lock).subspan(kSaltAt, kNonceAt - kSaltAt);
}
HostIn nonce_of(const Lock& lock) {
    return HostIn(lock).subspan(kNonceAt, kKeyAt - kNonceAt);
}
HostIn wrapped(const Lock& lock) {
    return HostIn(lock).subspan(kKeyAt, kKeySize);
}
HostIn authenticated(const Lock& lock) {
    return HostIn(lock).first(kKeyAt);
}
HostIn tag_of(const Lock& lock) {
    return HostIn(lock).subspan(kTagAt, gcm::kTagSize);
}

std::uint32_t segment_of(const Lock& lock) {
    std::uint32_t segment = 0;
    for (std::size_t i = 0; i < 4; ++i) segment = segment << 8 | lock[kSegmentAt + i];
    return segment;
}

// What scrypt takes: blocks of 128 bytes, and steps, each about a third of a microsecond.
struct Work {
    std::uint64_t blocks, steps;
};
Work work_of(const Cost& cost) {  // of one that makes sense
    const std::uint64_t blocks =
        cost.log2_n > 40 ? std::uint64_t{1} << 40
                         : (std::uint64_t{1} << cost.log2_n) * static_cast<std::uint64_t>(cost.r);
    return {blocks, blocks * static_cast<std::uint64_t>(cost.p)};
}

std::string shown(const Cost& cost) {
    const Work work = work_of(cost);
    return std::to_string(work.blocks >> 13) + " MiB of memory and " + std::to_string(work.steps) +
           " steps (N = 2^" + std::to_string(cost.log2_n) + ", r = " + std::to_string(cost.r) +
           ", p = " + std::to_string(cost.p) + ")";
}

Result<> check(const Cost& cost) {
    const auto [log2_n, r, p] = cost;
    if (log2_n < 1 || r < 1 || p < 1 || r > 255 || p > 255)
        return Error{Code::bad_format, "the lock's scrypt cost makes no sense: N = 2^" +
                                           std::to_string(log2_n) + ", r = " + std::to_string(r) +
                                           ", p = " + std::to_string(p)};
    if (log2_n >= 16 * r)  // RFC 7914 section 6
        return Error{Code::bad_format,
                     "the lock's scrypt cost makes no sense: with r = " + std::to_string(r) +
                         ", N must be below 2^" + std::to_string(16 * r) + ", and is 2^" +
                         std::to_string(log2_n)};
    return {};
}

// Before anything is computed: what a stranger's file asks for is refused if it is too much.
Result<> check(const Cost& cost, const Cost& most) {
    DAEL_TRY(check(cost));
    const Work work = work_of(cost), limit = work_of(most), last = work_of(kMostCost);
    const std::string asks = "the lock asks scrypt for " + shown(cost) + ", ";
    if (work.blocks > last.blocks || work.steps > last.steps)
        return Error{Code::limit, asks + "more than any lock may"};
    if (work.blocks > limit.blocks || work.steps > limit.steps)
        return Error{Code::limit, asks + "more than " + shown(most) +
                                      "; allow it that if you trust where it comes from"};
    return {};
}

Result<> check_segment(std::uint32_t segment) {
    if (segment > formats::header_size(kKeySize) + gcm::kTagSize &&
        segment <= formats::kMostSegment)
        return {};
    return Error{Code::bad_format, "the lock says segments of " + std::to_string(segment) +
                                       " bytes; they are 57 to " +
                                       std::to_string(formats::kMostSegment)};
}

// The key that a passphrase makes for this lock (RFC 7914).
Result<Key> scrypt(HostIn passphrase, const Lock& lock) {
    const Cost cost = cost_of(lock);
    auto derived = SecretBytes::create(kKeySize);
    if (!derived) return std::move(derived).error();
    struct Free {
        void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
        void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
    };
    const std::unique_ptr<EVP_KDF, Free> kdf(EVP_KDF_fetch(core::libcrypto(), "SCRYPT", nullptr));
    const std::unique_ptr<EVP_KDF_CTX, Free> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
    if (!context) return Error{Code::unsupported, "libcrypto has no scrypt here"};
    std::uint64_t n = std::uint64_t{1} << cost.log2_n;
    auto r = static_cast<std::uint32_t>(cost.r), p = static_cast<std::uint32_t>(cost.p);
    std::uint64_t memory = (std::uint64_t{1} << 30) + (std::uint64_t{64} << 20);  // and its own
    const auto bytes = [](const char* name, HostIn value) {
        return OSSL_PARAM_construct_octet_string(name, const_cast<std::uint8_t*>(value.data()),
                                                 value.size());
    };
    const std::array<OSSL_PARAM, 7> parameters{
        bytes(OSSL_KDF_PARAM_PASSWORD, passphrase),
        bytes(OSSL_KDF_PARAM_SALT, salt_of(lock)),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &n),
        OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &r),
        OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &p),
        OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &memory),
        OSSL_PARAM_construct_end()};
    if (EVP_KDF_derive(context.get(), derived->bytes().data(), kKeySize, parameters.data()) != 1)
        return Error{Code::out_of_memory, "scrypt failed: its " + std::to_string((n * r) >> 13) +
                                              " MiB of memory may not be there"};
    return Key::import(derived->bytes());
}

// The stream's key in a lock of its own.
Result<Lock> wrap(Engine& engine, HostIn passphrase, HostIn key, std::uint32_t segment,
                  const Cost& cost) {
    if (passphrase.empty())
        return Error{Code::invalid_argument, "the passphrase is empty; give at least a character"};
    DAEL_TRY(check(cost, kMostCost));
    DAEL_TRY(check_segment(segment));
    Lock lock{};
    std::ranges::copy(kMagic, lock.begin());
    lock[kMagic.size()] = kVersion;
    lock[kCostAt] = static_cast<std::uint8_t>(cost.log2_n);
    lock[kCostAt + 1] = static_cast<std::uint8_t>(cost.r);
    lock[kCostAt + 2] = static_cast<std::uint8_t>(cost.p);
    for (std::size_t i = 0; i < 4; ++i)
        lock[kSegmentAt + i] = static_cast<std::uint8_t>(segment >> (24 - 8 * i));
    DAEL_TRY(core::fill_random(std::span(lock).subspan(kSaltAt, kKeyAt - kSaltAt)));
    auto wrapping = scrypt(passphrase, lock);
    if (!wrapping) return std::move(wrapping).error();
    const HostOut out(lock);
    auto sealed = gcm::seal(engine, *wrapping, nonce_of(lock), authenticated(lock), key,
                            out.subspan(kKeyAt, kKeySize), out.subspan(kTagAt, gcm::kTagSize));
    if (!sealed) return std::move(sealed).error();
    return lock;
}

// What a caller of ours asked for in vain, rather than a file.
Error as_argument(Error error) {
    if (error.code == Code::bad_format || error.code == Code::limit)
        error.code = Code::invalid_argument;
    return error;
}

Result<SecretBytes> unwrap(Engine& engine, HostIn passphrase, const Lock& lock, const Cost& most) {
    if (!is_lock(lock))
        return Error{Code::bad_format, "the data does not begin with " + std::string(kMagic)};
    if (lock[kMagic.size()] != kVersion)
        return Error{Code::unsupported, "the lock is of version " +
                                            std::to_string(lock[kMagic.size()]) +
                                            "; this daelstrom knows version 1"};
    DAEL_TRY(check(cost_of(lock), most));
    DAEL_TRY(check_segment(segment_of(lock)));
    auto wrapping = scrypt(passphrase, lock);
    if (!wrapping) return std::move(wrapping).error();
    auto key = SecretBytes::create(kKeySize);
    if (!key) return key;
    auto opened = gcm::open(engine, *wrapping, nonce_of(lock), authenticated(lock), wrapped(lock),
                            key->bytes(), tag_of(lock));
    if (opened) return key;
    if (opened.code() != Code::authentication) return std::move(opened).error();
    return Error{Code::authentication, "another passphrase, or the lock in front was altered"};
}

Result<Keys> keys_of(SecretBytes key, std::uint32_t segment) {
    auto state = std::make_unique<Keys::State>();
    state->keys.push_back({std::move(key), segment, kKeySize, formats::Hash::sha256});
    return Keys(std::move(state));
}

}  // namespace

bool is_lock(HostIn start) noexcept {
    return start.size() >= kMagic.size() && std::ranges::equal(start.first(kMagic.size()), kMagic);
}

Result<Locked> make_lock(Engine& engine, HostIn passphrase, std::uint32_t segment, Cost cost) {
    return core::guarded([&]() -> Result<Locked> {
        auto key = SecretBytes::create(kKeySize);
        if (!key) return std::move(key).error();
        DAEL_TRY(core::fill_random(key->bytes()));
        auto lock = wrap(engine, passphrase, key->bytes(), segment, cost);
        if (!lock) return as_argument(std::move(lock).error());
        auto keys = keys_of(std::move(*key), segment);
        if (!keys) return std::move(keys).error();
        return Locked{*lock, std::move(*keys)};
    });
}

Cost cost_of(const Lock& lock) noexcept {
    return {lock[kCostAt], lock[kCostAt + 1], lock[kCostAt + 2]};
}

Result<Keys> unlock(Engine& engine, HostIn passphrase, const Lock& lock, Cost most) {
    return core::guarded([&]() -> Result<Keys> {
        if (auto sane = check(most); !sane) return as_argument(std::move(sane).error());
        auto key = unwrap(engine, passphrase, lock, most);
        if (!key) return std::move(key).error();
        return keys_of(std::move(*key), segment_of(lock));
    });
}

Result<Lock> relock(Engine& engine, HostIn old_passphrase, HostIn new_passphrase, const Lock& lock,
                    Cost cost, Cost most) {
    return core::guarded([&]() -> Result<Lock> {
        if (auto possible = check(cost, kMostCost); !possible)
            return as_argument(std::move(possible).error());
        if (auto sane = check(most); !sane) return as_argument(std::move(sane).error());
        auto key = unwrap(engine, old_passphrase, lock, most);
        if (!key) return std::move(key).error();
        return wrap(engine, new_passphrase, key->bytes(), segment_of(lock), cost);
    });
}

}  // namespace dael::sealed
