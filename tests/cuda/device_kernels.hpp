// SPDX-License-Identifier: Apache-2.0
// Kernels that use <daelstrom/device/aes.cuh> as somebody else's would, for device_header_test.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace dael::test {

// Which cipher: a key of 128, 192 or 256 bits, by 4, 2 or 1 tables; `key` has bits / 8 bytes, in
// host memory.
struct DeviceCipher {
    int bits, tables;
    const unsigned char* key;
};

// `count` blocks, 16 bytes each, and as many raw keys; all pointers are device memory.
struct DeviceBlocks {
    std::size_t count;
    const unsigned char* in;
    const unsigned char* keys;  // bits / 8 bytes each, one to a block
    unsigned char* by_key;      // each block under DeviceCipher::key
    unsigned char* by_own;      // each block under its own key, expanded by its thread
    unsigned char* hashes;      // forward only: mmo, mmo_sigma and tmmo of each block, 48 bytes;
                                // tmmo's tweak is the same bytes as the block's own key begins with
};
cudaError_t run_blocks(const DeviceCipher& cipher, bool decrypt, const DeviceBlocks& blocks);

// CTR over device memory, from `offset` of the message on, by every thread of a grid (`everyone`)
// or, piece by piece of `piece` bytes, each by one warp.
struct DeviceCtr {
    const unsigned char* counter;  // 16 bytes, host memory
    std::uint64_t offset;
    const unsigned char* in;
    unsigned char* out;
    std::size_t size;
    std::size_t piece;  // 0: everyone
};
cudaError_t run_ctr(const DeviceCipher& cipher, const DeviceCtr& ctr);

// AEGIS-128L or -256, a message to a thread; all pointers are device memory. Message i has i bytes,
// at stride * i, and i % 53 bytes of AAD, at i.
struct DeviceAegis {
    std::size_t count, stride;
    const unsigned char* secrets;  // bits / 8 bytes of a key and of a nonce for each
    const unsigned char* aad;
    const unsigned char* in;
    unsigned char* out;
    unsigned char* tags;  // 32 bytes for each, of which `tag_size` are its tag
    std::uint32_t tag_size;
    unsigned char* authentic;  // of opening: 1 or 0 for each; null: sealing
};
cudaError_t run_aegis(int bits, int tables, const DeviceAegis& work);

// The shared memory that a kernel may ask for, in bytes; 0 without a GPU.
std::size_t shared_memory_limit();

}  // namespace dael::test
