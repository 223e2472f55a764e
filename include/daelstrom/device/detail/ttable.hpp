// SPDX-License-Identifier: Apache-2.0
// T-tables with a private copy for every bank of shared memory. For daelstrom's own use.
//
// A T-table entry joins SubBytes, ShiftRows and MixColumns for one byte (the AES proposal,
// section 5.2.1). Shared memory has 32 banks; lane L of a warp only ever reads bank L, so 32 lanes
// look up 32 different entries in one wavefront *whatever the data*: this is the fastest layout,
// and it closes the timing channel that bank conflicts open (SIDE-CHANNELS.md).
//
// Three layouts, so that every GPU has one that fits:
//   4 tables, 128 KiB: no rotation at all;
//   2 tables,  64 KiB: T2 and T3 are T0 and T1 rotated by 16, one rotation a column;
//   1 table,   32 KiB: three rotations a column, and one more instruction for each address.
// Decryption adds 32 KiB for the inverse S-box of its last round.
//
// With 2 and 4 tables a row of 256 bytes belongs to one table index: 32 lanes of the even table,
// then 32 lanes of the odd one. The address of a lookup is then `index << 8 | lane * 4`, which is
// one PRMT.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/device/detail/block_access.hpp>
#include <daelstrom/device/detail/hd.hpp>

namespace dael::kernels {

using Words256 = std::array<std::uint32_t, 256>;

// T0[x]: column (02 01 01 03)^T * S(x), lowest row in the lowest byte (FIPS 197 5.1.3); bytes 1 and
// 2 are S(x).
DAEL_HD constexpr std::uint32_t encrypt_entry(std::uint32_t x) {
    return static_cast<std::uint32_t>(core::mix_columns_each(core::sub_each(x) & 0xff));
}
// The same for the equivalent inverse cipher: (0e 09 0d 0b)^T * S^-1(x) (FIPS 197 5.3.3).
DAEL_HD constexpr std::uint32_t decrypt_entry(std::uint32_t x) {
    return static_cast<std::uint32_t>(core::inv_mix_columns_each(core::inv_sub_each(x) & 0xff));
}
// S^-1(x) in all four bytes.
DAEL_HD constexpr std::uint32_t inverse_sbox_entry(std::uint32_t x) {
    return core::inv_sub_each(x * 0x01010101u);
}

// The tables, one copy of each.
constexpr Words256 make_encrypt_table() {
    Words256 table{};
    for (unsigned x = 0; x < 256; ++x) table[x] = encrypt_entry(x);
    return table;
}
constexpr Words256 make_decrypt_table() {
    Words256 table{};
    for (unsigned x = 0; x < 256; ++x) table[x] = decrypt_entry(x);
    return table;
}
constexpr Words256 make_inverse_sbox() {
    Words256 table{};
    for (unsigned x = 0; x < 256; ++x) table[x] = inverse_sbox_entry(x);
    return table;
}

inline constexpr int kLanes = 32;

// Rotates a column down by one row.
DAEL_HD constexpr std::uint32_t rotate8(std::uint32_t t) {
    return byte_perm(t, t, 0x2103);
}
DAEL_HD constexpr std::uint32_t rotate16(std::uint32_t t) {
    return byte_perm(t, t, 0x1032);
}
DAEL_HD constexpr std::uint32_t rotate24(std::uint32_t t) {
    return byte_perm(t, t, 0x0321);
}

// One lane's view of the tables. `kTables` is 4, 2 or 1; `kInverse` chooses decryption.
template <int kTables, bool kInverse>
class Tables {
    static_assert(kTables == 4 || kTables == 2 || kTables == 1);

  public:
    static constexpr std::size_t kLastRoundOffset = kTables * 32 * 1024;
    static constexpr std::size_t kBytes = kLastRoundOffset + (kInverse ? 32 * 1024 : 0);

    // The image is made of runs of 128 bytes: 32 copies of one word, one for every bank. Run `i` is
    // row i % 256 of table i / 256; the inverse S-box, if there is one, comes after the tables.
    static constexpr std::uint32_t kRuns = kBytes / 128;

    DAEL_HD static std::uint32_t run_offset(std::uint32_t i) {  // bytes into the image
        const std::uint32_t table = i / 256, row = i % 256;
        if (kTables == 1 || table >= kTables) return i * 128;
        return table / 2 * 65536 + row * 256 + table % 2 * 128;
    }
    // What run i holds, of T0 and S^-1 for its row.
    DAEL_HD static std::uint32_t table_word(std::uint32_t table, std::uint32_t t,
                                            std::uint32_t inverse_sbox) {
        if (kInverse && table == kTables) return inverse_sbox;
        return table == 0 ? t : table == 1 ? rotate8(t) : table == 2 ? rotate16(t) : rotate24(t);
    }
    DAEL_HD static std::uint32_t run_word(std::uint32_t i, const std::uint32_t* t0,
                                          const std::uint32_t* inverse_sbox) {
        const std::uint32_t table = i / 256, row = i % 256;
        return table_word(table, t0[row], kInverse ? inverse_sbox[row] : 0);
    }

    // Writes run i. Threads of a warp write neighbouring rows, which are a multiple of 128 bytes
    // apart: each begins at another place of its run, so that no bank is hit twice.
    DAEL_HD static void write_run(unsigned char* image, std::uint32_t i, std::uint32_t word) {
        unsigned char* const run = image + run_offset(i);
        DAEL_UNROLL(8)
        for (std::uint32_t k = 0; k < 8; ++k)
            store_aligned(run + (i + k) % 8 * 16, {word, word, word, word});
    }

    // `image` is the filled table image; `lane` is 0 to 31.
    DAEL_HD Tables(const unsigned char* image, std::uint32_t lane)
        : image_(image), lane4_(lane * 4) {}
    // The same where shared memory is addressed from `shared` on and the image lies `offset` bytes
    // into it, a multiple of 64 KiB: then one PRMT makes the whole address of a lookup, wherever
    // that is.
    DAEL_HD Tables(const unsigned char* shared, std::uint32_t offset, std::uint32_t lane)
        : image_(shared), lane4_(offset | lane * 4) {}

    // One column of a round: bytes 0 of a, 1 of b, 2 of c, 3 of d through T0 to T3, and the round
    // key.
    DAEL_HD std::uint32_t column(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                                 std::uint32_t round_key) const {
        if constexpr (kTables == 4) {
            const std::uint32_t t = xor3(lookup<0>(a, 0), lookup<1>(b, 1), lookup<2>(c, 2));
            return xor3(t, lookup<3>(d, 3), round_key);
        } else if constexpr (kTables == 2) {
            const std::uint32_t t = xor3(lookup<0>(a, 0), lookup<1>(b, 1), round_key);
            return t ^ rotate16(lookup<0>(c, 2) ^ lookup<1>(d, 3));
        } else {
            const std::uint32_t t = xor3(lookup<0>(a, 0), rotate8(lookup<0>(b, 1)), round_key);
            return xor3(t, rotate16(lookup<0>(c, 2)), rotate24(lookup<0>(d, 3)));
        }
    }

    // One term of a column: byte k of `word` through table T_k.
    template <int k>
    DAEL_HD std::uint32_t term(std::uint32_t word) const {
        if constexpr (kTables == 4) return lookup<k>(word, k);
        if constexpr (kTables == 2) {
            const std::uint32_t t = lookup<k & 1>(word, k);
            return k >= 2 ? rotate16(t) : t;
        }
        const std::uint32_t t = lookup<0>(word, k);
        return k == 0 ? t : k == 1 ? rotate8(t) : k == 2 ? rotate16(t) : rotate24(t);
    }

    // One column of the last round, without MixColumns and the round key.
    DAEL_HD std::uint32_t last_column(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                      std::uint32_t d) const {
        // Byte 1 of a last-round word is S (or S^-1) of its index.
        const std::uint32_t ab = byte_perm(last(a, 0), last(b, 1), 0x0051);
        const std::uint32_t cd = byte_perm(last(c, 2), last(d, 3), 0x5100);
        return byte_perm(ab, cd, 0x7610);
    }

  private:
    // Byte k of `word` through table t, which must be there.
    template <int t>
    DAEL_HD std::uint32_t lookup(std::uint32_t word, int k) const {
        if constexpr (kTables == 1) return narrow(word, k, 0);
        const std::uint32_t address =
            byte_perm(word, lane4_, 0x7604u | static_cast<unsigned>(k) << 4);
        return load(address + (t >> 1) * 65536 + (t & 1) * 128);
    }

    DAEL_HD std::uint32_t last(std::uint32_t word, int k) const {
        if constexpr (kInverse) return narrow(word, k, kLastRoundOffset);
        return lookup<0>(word, k);
    }

    // A lookup in rows of 128 bytes, for which the index has to be shifted by 7.
    DAEL_HD std::uint32_t narrow(std::uint32_t word, int k, std::uint32_t offset) const {
        const std::uint32_t shifted = k == 0 ? word << 7 : word >> (8 * k - 7);
        return load(((shifted & 0x7f80) | lane4_) + offset);
    }

    DAEL_HD std::uint32_t load(std::uint32_t address) const {
        return *reinterpret_cast<const std::uint32_t*>(image_ + address);
    }

    const unsigned char* image_;
    std::uint32_t lane4_;
};

}  // namespace dael::kernels
