// SPDX-License-Identifier: Apache-2.0
// AEGIS-128L and AEGIS-256 for <daelstrom/device/aes.cuh> (RFC 10032): authenticated encryption
// inside your own kernels, a message to a thread, on the device and on the host.
//
// Safety: a nonce must never come twice under one key: two messages under one give away the state,
// and with it all that the key protects. A message is good for fewer than 2^61 bytes, and so is its
// additional data. open() decrypts before it knows whether the message is authentic; what it
// returns says so, and what was forged it takes back (below). Lists of messages that lie in GPU
// memory are faster by Engine::prepare, which shares a message among lanes.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/aegis.hpp>
#include <daelstrom/device/tables.cuh>

namespace dael::device {

// Key and nonce: 16 bytes each for AEGIS-128L, 32 for AEGIS-256, as they lie in memory.
template <int kBits>
struct AegisSecret {
    static_assert(kBits == 128 || kBits == 256,
                  "AEGIS-128L has keys of 128 bits, AEGIS-256 of 256");
    Block key[kBits / 128], nonce[kBits / 128];
};

// One message, by one thread. Not used by name.
template <class Cipher, int kBits>
class AegisMessage {
    static constexpr int kBlocks = kBits == 128 ? 8 : 6;
    static constexpr std::uint64_t kStep = kBits == 128 ? 32 : 16;  // bytes

  public:
    DAEL_HD AegisMessage(const Cipher& cipher, const AegisSecret<kBits>& secret) : cipher_(cipher) {
        if constexpr (kBits == 128) {
            DAEL_UNROLL(8)
            for (int i = 0; i < kBlocks; ++i)
                s_[i] = kernels::aegis_first_128(static_cast<std::uint32_t>(i), secret.key[0],
                                                 secret.nonce[0]);
            DAEL_UNROLL(1)
            for (std::uint32_t i = 0; i < kernels::kAegisBegin128; ++i)
                kernels::aegis_update(cipher_, s_, secret.nonce[0], secret.key[0]);
        } else {
            DAEL_UNROLL(8)
            for (int i = 0; i < kBlocks; ++i)
                s_[i] = kernels::aegis_first_256(static_cast<std::uint32_t>(i), secret.key,
                                                 secret.nonce);
            DAEL_UNROLL(1)
            for (std::uint32_t i = 0; i < kernels::kAegisBegin256; ++i)
                kernels::aegis_update(
                    cipher_, s_, kernels::aegis_begin_256(i, secret.key, secret.nonce), Block{});
        }
    }

    // Data of a kind, all of it at once: AAD first, which has no output, then the message.
    // `opens`: it is ciphertext.
    DAEL_HD void take(const void* in, void* out, std::uint64_t size, bool opens) {
        const auto* const from = static_cast<const unsigned char*>(in);
        auto* const to = static_cast<unsigned char*>(out);
        DAEL_UNROLL(1)
        for (std::uint64_t at = 0; at < size; at += kStep) {
            Block m[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, z[2];
            kernels::aegis_keystream(s_, z[0], z[1]);
            DAEL_UNROLL(2)
            for (std::uint64_t half = 0; half < kStep / 16; ++half) {
                const std::uint64_t place = at + 16 * half;
                const int have = place >= size        ? 0
                                 : size - place >= 16 ? 16
                                                      : static_cast<int>(size - place);
                unsigned char* const there = to ? to + place : nullptr;
                const bool whole = have == 16 && kernels::aligned16(from + place, there);
                m[half] = whole ? kernels::load_aligned(from + place)
                                : kernels::load_part(from + place, 0, have);
                if (!there) continue;
                const Block o = m[half] ^ z[half];
                if (whole)
                    kernels::store_aligned(there, o);
                else
                    kernels::store_part(there, o, 0, have);
                if (opens) m[half] = kernels::first_bytes(o, have);
            }
            kernels::aegis_update(cipher_, s_, m[0], m[1]);
        }
    }

    // The tag, of 16 bytes or 32, once all has been taken.
    DAEL_HD void finish(std::uint64_t aad_size, std::uint64_t size, std::uint32_t tag_size,
                        Block (&tag)[2]) {
        const Block t = s_[kBits == 128 ? 2 : 3] ^ kernels::aegis_lengths(aad_size, size);
        DAEL_UNROLL(1)
        for (std::uint32_t i = 0; i < kernels::kAegisEnd; ++i)
            kernels::aegis_update(cipher_, s_, t, t);
        tag[0] = tag[1] = Block{0, 0, 0, 0};
        DAEL_UNROLL(8)
        for (std::uint32_t i = 0; i < kBlocks; ++i) {
            if (kernels::aegis_in_first<kBlocks>(i, tag_size)) tag[0] = tag[0] ^ s_[i];
            if (kernels::aegis_in_second<kBlocks>(i, tag_size)) tag[1] = tag[1] ^ s_[i];
        }
    }

  private:
    const Cipher& cipher_;
    Block s_[kBlocks];
};

// Encrypts `size` bytes, of any number, at any address; `out` is `in` itself or does not overlap
// it. `tag` gets `tag_size` bytes, 16 or 32. `cipher` is SharedTables, or NoTables on the host.
template <class Cipher, int kBits>
DAEL_HD void aegis_seal(const Cipher& cipher, const AegisSecret<kBits>& secret, const void* aad,
                        std::uint64_t aad_size, const void* in, void* out, std::uint64_t size,
                        void* tag, std::uint32_t tag_size = 16) {
    AegisMessage<Cipher, kBits> message(cipher, secret);
    message.take(aad, nullptr, aad_size, false);
    message.take(in, out, size, false);
    Block made[2];
    message.finish(aad_size, size, tag_size, made);
    auto* const to = static_cast<unsigned char*>(tag);
    kernels::store_part(to, made[0], 0, 16);
    if (tag_size == 32) kernels::store_part(to + 16, made[1], 0, 16);
}

// Decrypts, and returns whether the message is authentic. Where it is not, `out` is zeros, or in
// place the ciphertext that it was; what other threads read of it meanwhile nobody vouches for.
template <class Cipher, int kBits>
[[nodiscard]] DAEL_HD bool aegis_open(const Cipher& cipher, const AegisSecret<kBits>& secret,
                                      const void* aad, std::uint64_t aad_size, const void* in,
                                      void* out, std::uint64_t size, const void* tag,
                                      std::uint32_t tag_size = 16) {
    AegisMessage<Cipher, kBits> message(cipher, secret);
    message.take(aad, nullptr, aad_size, false);
    message.take(in, out, size, true);
    Block made[2];
    message.finish(aad_size, size, tag_size, made);
    const auto* const given = static_cast<const unsigned char*>(tag);
    const Block a = made[0] ^ kernels::load_part(given, 0, 16);
    std::uint32_t wrong = a.x | a.y | a.z | a.w;
    if (tag_size == 32) {
        const Block b = made[1] ^ kernels::load_part(given + 16, 0, 16);
        wrong |= b.x | b.y | b.z | b.w;
    }
    if (wrong == 0) return true;
    if (in == out) {
        AegisMessage<Cipher, kBits> again(cipher, secret);
        again.take(aad, nullptr, aad_size, false);
        again.take(out, out, size, false);
    } else {
        for (std::uint64_t i = 0; i < size; ++i) static_cast<unsigned char*>(out)[i] = 0;
    }
    return false;
}

}  // namespace dael::device
