// SPDX-License-Identifier: Apache-2.0
// Counter mode in a CUDA launch of a given shape, as AESCuda had it: each thread takes a block, and
// then the one that lies a whole grid further on. Made of the device header; Engine's own kernels
// choose their shape themselves, and are faster.
#pragma once

#include <cstdint>

namespace daelpy {

struct GridCtr {
    const std::uint8_t* key;
    int key_size;                 // 16, 24 or 32
    const std::uint8_t* counter;  // 16 bytes
    const std::uint8_t* in;
    std::uint8_t* out;
    std::uint64_t size;
    unsigned blocks, threads;
    bool on_device;  // data on the current device: launched on the stream; else in host memory
    int device;      // negative: not known
    void* stream;
};

// Null, or what failed. Data of the host are copied there and back, and wiped there.
const char* grid_ctr(const GridCtr& job);

}  // namespace daelpy
