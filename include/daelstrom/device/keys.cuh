// SPDX-License-Identifier: Apache-2.0
// Blocks and keys for <daelstrom/device/aes.cuh>, on the device and on the host.
//
// Safety: these are plain structs, so that they can be kernel parameters, lie in shared or global
// memory, or be made in a thread's registers. Nothing locks or wipes them: whoever makes one on the
// host wipes it (dael::wipe in <daelstrom/key.hpp>), and what a kernel leaves in registers, shared
// and local memory stays there until something overwrites it. Round keys give the key away.
//
// Every function here keeps no state: any number of threads may call it at once.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/block_access.hpp>
#include <daelstrom/device/detail/key_expansion.hpp>
#include <daelstrom/device/detail/rounds.hpp>

namespace dael::device {

// 16 bytes as they lie in memory: words x, y, z, w, each with its first byte lowest. Aligned to 16;
// has operator^.
using Block = kernels::Words4;

// From and to 16 bytes at any address. Where both ends are aligned to 16, assigning a Block is
// faster.
DAEL_HD Block load_block(const void* bytes) {
    return kernels::load_part(static_cast<const unsigned char*>(bytes), 0, 16);
}
DAEL_HD void store_block(void* bytes, const Block& block) {
    kernels::store_part(static_cast<unsigned char*>(bytes), block, 0, 16);
}

// The round keys of AES-128, AES-192 or AES-256 for encryption (FIPS 197 5.2): 176, 208 or 240
// bytes, those of one round after another. As a parameter of a kernel declare it
// `const __grid_constant__`: then it lies in the constant bank, where reading it costs nothing.
template <int kBits>
struct alignas(16) EncryptionKey {
    static_assert(kBits == 128 || kBits == 192 || kBits == 256, "AES keys have 128, 192, 256 bits");
    static constexpr int kBytes = kBits / 8;  // of the key itself
    static constexpr int kRounds = kBits / 32 + 6;
    std::uint32_t w[4 * (kRounds + 1)];
};

// The same for decryption by the equivalent inverse cipher (FIPS 197 5.3.5). A type of its own, so
// that the two cannot be mixed up.
template <int kBits>
struct alignas(16) DecryptionKey {
    static_assert(kBits == 128 || kBits == 192 || kBits == 256, "AES keys have 128, 192, 256 bits");
    static constexpr int kBytes = kBits / 8;
    static constexpr int kRounds = kBits / 32 + 6;
    std::uint32_t w[4 * (kRounds + 1)];
};

// Expands the kBits / 8 bytes at `key`, at any address (FIPS 197 5.2). `cipher` looks S-boxes up:
// SharedTables on the device, at 40, 32 or 52 lookups by kBits; NoTables on the host, and for keys
// that are expanded seldom. In a kernel each thread can have its own key this way. Used at once for
// a block or two, it takes few registers, since the compiler expands it as it goes; kept for longer
// it takes 44, 52 or 60, so leave a thread 128 (__launch_bounds__ of 512 threads or fewer).
template <int kBits, class Cipher>
DAEL_HD EncryptionKey<kBits> expand_key(const Cipher& cipher, const void* key) {
    EncryptionKey<kBits> expanded;
    const auto* bytes = static_cast<const unsigned char*>(key);
    DAEL_UNROLL(8)
    for (int i = 0; i < kBits / 32; ++i)
        expanded.w[i] = core::load_le<std::uint32_t>(bytes + 4 * i);
    kernels::expand_words(
        kBits / 32, [&](int i) { return expanded.w[i]; },
        [&](int i, std::uint32_t word) { expanded.w[i] = word; },
        [&](std::uint32_t word) { return cipher.sub_word(word); });
    return expanded;
}

// The same for AES-128 with a key that is a block, such as a node of a tree of keys.
template <class Cipher>
DAEL_HD EncryptionKey<128> expand_key(const Cipher& cipher, const Block& key) {
    EncryptionKey<128> expanded;
    expanded.w[0] = key.x;
    expanded.w[1] = key.y;
    expanded.w[2] = key.z;
    expanded.w[3] = key.w;
    kernels::expand_words(
        4, [&](int i) { return expanded.w[i]; },
        [&](int i, std::uint32_t word) { expanded.w[i] = word; },
        [&](std::uint32_t word) { return cipher.sub_word(word); });
    return expanded;
}

// The decryption key that belongs to an encryption key. Arithmetic only, no table.
template <int kBits>
DAEL_HD DecryptionKey<kBits> invert_key(const EncryptionKey<kBits>& key) {
    DecryptionKey<kBits> inverted;
    kernels::invert_words(
        EncryptionKey<kBits>::kRounds, [&](int i) { return key.w[i]; },
        [&](int i, std::uint32_t word) { inverted.w[i] = word; });
    return inverted;
}

}  // namespace dael::device
