// SPDX-License-Identifier: Apache-2.0
// The block cipher for <daelstrom/device/aes.cuh>: by tables in a thread block's shared memory, or
// without tables.
//
// Safety: SharedTables and SharedInverseTables look words up at addresses that depend on key and
// data. Every lane of a warp has a copy of the tables in a memory bank of its own, so that a warp's
// 32 lookups take one wavefront whatever the data (SIDE-CHANNELS.md). That holds in shared memory,
// for lanes that are 0 to 31 of one warp, and nowhere else: on the host use NoTables, which has no
// branch and no address that depends on key or data.
#pragma once

#include <cstddef>
#include <cstdint>

#include <daelstrom/device/detail/table_free.hpp>
#include <daelstrom/device/keys.cuh>

namespace dael::device {

// The most tables whose bytes fit into `shared_bytes`, which is cudaDeviceProp's
// sharedMemPerBlockOptin less what else the kernel keeps there: 4, 2 or 1, or 0 when none fits.
// More are faster; all give the same bytes.
constexpr int tables_that_fit(std::size_t shared_bytes, bool inverse = false) {
    constexpr std::size_t kTable = 32 * 1024;
    const std::size_t fit = shared_bytes / kTable - (inverse && shared_bytes >= kTable ? 1 : 0);
    return fit >= 4 ? 4 : fit >= 2 ? 2 : static_cast<int>(fit);
}

// What SharedTables and SharedInverseTables have in common. Not used by name.
template <int kTables, bool kInverse>
class TablesInSharedMemory {
    using Lane = kernels::Tables<kTables, kInverse>;

  public:
    // Bytes of shared memory that the tables take: kTables * 32 KiB, and 32 KiB more for
    // decryption. More than 48 KiB must be dynamic shared memory, which the host allows for a
    // kernel once with cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
    // kBytes).
    static constexpr std::size_t kBytes = Lane::kBytes;

#ifdef __CUDACC__
    // Fills kBytes at `shared_memory`, which is aligned to 16, and gives this thread its view. All
    // threads of the block must take part: it ends with __syncthreads(). It takes a few
    // microseconds, so let blocks live long: fill once, then loop over the work.
    __device__ __forceinline__ explicit TablesInSharedMemory(void* shared_memory)
        : lane_(nullptr, 0) {
        const std::uint32_t thread =
            threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        fill(shared_memory, thread, blockDim.x * blockDim.y * blockDim.z);
        __syncthreads();
        lane_ = Lane(static_cast<const unsigned char*>(shared_memory), thread % kernels::kLanes);
    }
#endif

    // The first half of that, for kernels with barriers of their own and for tests on the host:
    // thread `thread` of `threads` writes its share of the tables. Once all have, view() follows.
    DAEL_HD static void fill(void* memory, std::uint32_t thread, std::uint32_t threads) {
        auto* const image = static_cast<unsigned char*>(memory);
        for (std::uint32_t row = thread; row < 256; row += threads) {
            const std::uint32_t entry =
                kInverse ? kernels::decrypt_entry(row) : kernels::encrypt_entry(row);
            const std::uint32_t sbox = kInverse ? kernels::inverse_sbox_entry(row) : 0;
            DAEL_UNROLL(5)
            for (std::uint32_t table = 0; table < Lane::kRuns / 256; ++table)
                Lane::write_run(image, 256 * table + row, Lane::table_word(table, entry, sbox));
        }
    }

  protected:
    DAEL_HD TablesInSharedMemory(const void* memory, std::uint32_t lane)
        : lane_(static_cast<const unsigned char*>(memory), lane) {}
    Lane lane_;
};

// The forward cipher by `kTables` (4, 2 or 1) tables: 128, 64 or 32 KiB of shared memory. A
// thread's view of them, a few registers; the functions are for any threads, in any order, without
// barriers.
template <int kTables>
class SharedTables : public TablesInSharedMemory<kTables, false> {
    using Base = TablesInSharedMemory<kTables, false>;

  public:
    using Base::Base;

    // For memory that all threads have filled: the view of lane 0 to 31 of a warp.
    DAEL_HD static SharedTables view(const void* memory, std::uint32_t lane) {
        return SharedTables(memory, lane);
    }

    // AES(key, block) (FIPS 197 5.1).
    template <int kBits>
    DAEL_HD Block encrypt(const EncryptionKey<kBits>& key, const Block& block) const {
        return encrypt_xor(key, block, Block{0, 0, 0, 0});
    }
    // AES(key, block) ^ mask, the XOR at no cost.
    template <int kBits>
    DAEL_HD Block encrypt_xor(const EncryptionKey<kBits>& key, const Block& block,
                              const Block& mask) const {
        return kernels::crypt_masked<EncryptionKey<kBits>::kRounds>(this->lane_, key, block, mask);
    }
    // SubWord (FIPS 197 5.2), for expand_key.
    DAEL_HD std::uint32_t sub_word(std::uint32_t word) const {
        return this->lane_.last_column(word, word, word, word);
    }
    // A column of a round (FIPS 197 5.1): bytes 0 of a, 1 of b, 2 of c, 3 of d. For aegis.cuh.
    DAEL_HD std::uint32_t column(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                                 std::uint32_t round_key) const {
        return this->lane_.column(a, b, c, d, round_key);
    }
};

// The inverse cipher by `kTables` (4, 2 or 1) tables: 160, 96 or 64 KiB of shared memory. Both
// directions in one kernel need both tables, side by side.
template <int kTables>
class SharedInverseTables : public TablesInSharedMemory<kTables, true> {
    using Base = TablesInSharedMemory<kTables, true>;

  public:
    using Base::Base;

    // For memory that all threads have filled: the view of lane 0 to 31 of a warp.
    DAEL_HD static SharedInverseTables view(const void* memory, std::uint32_t lane) {
        return SharedInverseTables(memory, lane);
    }

    // AES^-1(key, block) by the equivalent inverse cipher (FIPS 197 5.3.5).
    template <int kBits>
    DAEL_HD Block decrypt(const DecryptionKey<kBits>& key, const Block& block) const {
        return kernels::crypt_masked<DecryptionKey<kBits>::kRounds>(this->lane_, key, block,
                                                                    Block{0, 0, 0, 0});
    }
};

// Both directions without tables, on the host and on the device: the S-box is computed. It needs no
// shared memory and takes many times as long, which is right for hosts that prepare keys or
// expected values, and for the odd block. Keeps no state; any number of threads at once.
struct NoTables {
    template <int kBits>
    DAEL_HD Block encrypt(const EncryptionKey<kBits>& key, const Block& block) const {
        return kernels::encrypt_table_free<EncryptionKey<kBits>::kRounds>(key, block);
    }
    template <int kBits>
    DAEL_HD Block encrypt_xor(const EncryptionKey<kBits>& key, const Block& block,
                              const Block& mask) const {
        return encrypt(key, block) ^ mask;
    }
    template <int kBits>
    DAEL_HD Block decrypt(const DecryptionKey<kBits>& key, const Block& block) const {
        return kernels::decrypt_table_free<DecryptionKey<kBits>::kRounds>(key, block);
    }
    DAEL_HD std::uint32_t sub_word(std::uint32_t word) const { return core::sub_each(word); }
    DAEL_HD std::uint32_t column(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                                 std::uint32_t round_key) const {
        return kernels::mix_column(core::sub_each(kernels::gather_rows(a, b, c, d))) ^ round_key;
    }
};

}  // namespace dael::device
