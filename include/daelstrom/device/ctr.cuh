// SPDX-License-Identifier: Apache-2.0
// Counter mode for <daelstrom/device/aes.cuh> (NIST SP 800-38A 6.5), on the device and on the host.
//
// Safety: a counter block must never come twice under one key, in this message or in another: the
// XOR of two messages would show. CTR does not authenticate; whoever can change the ciphertext can
// flip any bit of the plaintext. A stream is good for 2^64 bytes, of which a key should make no
// more than 2^64 blocks' square root allows: below 2^44 bytes the keystream passes for random.
#pragma once

#include <cstdint>

#include <daelstrom/device/tables.cuh>

namespace dael::device {

// The 128-bit big-endian counter `start` + `index`, modulo 2^128 (SP 800-38A B.1).
using kernels::counter_block;

// Encrypts or decrypts `size` bytes, of any number, at any address: the piece of a message that
// starts at its byte `offset`; byte 0 of the message takes byte 0 of AES(key, counter). So pieces
// can be taken apart and in any order. `out` is `in` itself or does not overlap it, and
// `offset` + `size` stays below 2^64.
//
// Workers 0 to `workers` - 1 share the work, each calling this with the same arguments but its own
// number: a thread alone (0 of 1), the lanes of a warp (lane of 32), a thread block, the whole
// grid. Worker w takes blocks w, w + workers, ..., so neighbours touch neighbouring memory. None
// waits for another and none reads what another writes: whoever goes on to read all of `out`
// synchronises first.
//
// `cipher` is SharedTables, or NoTables on the host. Pieces whose blocks lie at addresses that are
// multiples of 16 (`in` - `offset` and `out` - `offset` are) are the fastest.
template <class Cipher, int kBits>
DAEL_HD void ctr(const Cipher& cipher, const EncryptionKey<kBits>& key, const Block& counter,
                 std::uint64_t offset, const void* in, void* out, std::uint64_t size,
                 std::uint64_t worker = 0, std::uint64_t workers = 1) {
    const auto skip = static_cast<std::int64_t>(offset % 16);  // of the first block
    const auto end = static_cast<std::int64_t>(size) + skip;
    const auto* const from = static_cast<const unsigned char*>(in);
    auto* const to = static_cast<unsigned char*>(out);
    const std::uint64_t blocks = (static_cast<std::uint64_t>(end) + 15) / 16;
    DAEL_UNROLL(1)
    for (std::uint64_t block = size == 0 ? blocks : worker; block < blocks; block += workers) {
        const auto at = static_cast<std::int64_t>(block * 16);
        const int first = block == 0 ? static_cast<int>(skip) : 0;
        const int last = end - at < 16 ? static_cast<int>(end - at) : 16;
        const unsigned char* const source = from + (at - skip);
        unsigned char* const target = to + (at - skip);
        const bool whole = first == 0 && last == 16 && kernels::aligned16(source, target);
        const Block data =
            whole ? kernels::load_aligned(source) : kernels::load_part(source, first, last);
        const Block done =
            cipher.encrypt_xor(key, counter_block(counter, offset / 16 + block), data);
        if (whole)
            kernels::store_aligned(target, done);
        else
            kernels::store_part(target, done, first, last);
    }
}

}  // namespace dael::device
