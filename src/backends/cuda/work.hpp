// SPDX-License-Identifier: Apache-2.0
// What the host tells a kernel to do. Plain data, passed by value or lying in device memory.
#pragma once

#include <cstdint>

#include <daelstrom/device/detail/rounds.hpp>

#include "backends/cuda/kernel_shapes.hpp"
#include "kernels/xts_tweak.hpp"

namespace dael::cuda {

using kernels::RoundKeys;
using kernels::Words4;

// A message as kernels under one key read it.
struct DeviceSegment {
    const unsigned char* in;  // null in counter modes: the keystream itself
    unsigned char* out;
    std::uint64_t size;  // bytes
    Words4 iv;           // memory-order words
    std::uint32_t skip;  // bytes of the first keystream block to leave out (CTR)

    // Cipher blocks that the data touches.
    DAEL_HD std::uint64_t blocks() const { return (skip + size + 15) / 16; }
};

// Where one warp's share of the blocks begins; it ends where the next warp's begins.
struct WarpStart {
    std::uint64_t block;    // within the segment; in a list a multiple of 32
    std::uint32_t segment;  // index into the list
    std::uint32_t unused = 0;
};

// Work for kernels in which a warp takes 32 blocks at a time. One segment comes by value and is
// divided evenly by the kernel; many come as a list in device memory, divided by the host.
struct BlocksWork {
    DeviceSegment one;
    const DeviceSegment* list;  // null: `one`
    const WarpStart* starts;    // warps + 1 of them
    bool synchronise;           // in place and chained: a cooperative launch (see modes/blocks.cuh)
};

// Work for kernels in which a thread takes a whole segment.
struct SerialWork {
    const DeviceSegment* list;
    std::uint32_t count;
};

// A kernel, ready to be launched: the address to give to cudaLaunchKernel and its shape.
struct Kernel {
    const void* function = nullptr;
    Shape shape;
    // Begins before those ahead of it on its stream have ended, and waits for them itself.
    bool overlaps = false;
};

// The kernels, by mode, rounds (10, 12, 14) and tables (4, 2, 1). Each is defined beside its code.
Kernel ecb_kernel(bool decrypt, int rounds, int tables);  // BlocksWork; modes/ecb.cu
Kernel cbc_decrypt_kernel(int rounds, int tables);        // BlocksWork; modes/chained.cu
Kernel cfb_decrypt_kernel(int rounds, int tables);        // BlocksWork; modes/chained.cu
// BlocksWork, in which no message's counter wraps its low 32 bits; ctr/ctr.cu
Kernel ctr_kernel(int rounds, int tables);
Kernel ctr_small_kernel(int rounds);  // DeviceSegment: little; any grid; ctr/small.cu
enum class Serial { cbc_encrypt, cfb_encrypt, ofb };
Kernel serial_kernel(Serial which, int rounds, int tables);  // SerialWork; modes/serial.cu

// Neighbouring XTS sectors, all of one size.
struct XtsWork {
    const unsigned char* in;
    unsigned char* out;
    std::uint64_t sectors;
    std::uint64_t rows;         // of all of them, as xts_rows() counts
    std::uint32_t sector_size;  // bytes
    bool aligned;               // every block of every sector, to 16 bytes, in and out
    kernels::XtsShape shape;
    Words4 first;          // the first sector's number
    RoundKeys tweak_keys;  // for encryption, whatever the direction
};
// XtsWork; rounds 10 or 14. For decryption `tables` may be 0: one inverse table, and none for the
// tweaks. modes/xts.cu
Kernel xts_kernel(bool decrypt, int rounds, int tables);

}  // namespace dael::cuda
