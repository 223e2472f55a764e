// SPDX-License-Identifier: Apache-2.0
// AES as it should not be on a GPU: one copy of a T-table for all lanes, so that lookups of
// different entries in one bank wait for each other, and time depends on data. The control of
// cuda_timing_test.
#include "cuda/leaky_kernel.hpp"

#include <daelstrom/device/detail/ttable.hpp>

namespace dael::test {
namespace {

__device__ const kernels::Words256 encrypt_table = kernels::make_encrypt_table();

__global__ void leaky_rounds(const std::uint32_t* in, std::uint32_t* out, std::size_t words) {
    __shared__ std::uint32_t table[256];
    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) table[i] = encrypt_table[i];
    __syncthreads();
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
         i += std::size_t{gridDim.x} * blockDim.x) {
        std::uint32_t state = in[i];
        for (int lookup = 0; lookup < 40; ++lookup)
            state = table[state & 255] ^ (state >> 8 | state << 24);
        out[i] = state;
    }
}

}  // namespace

cudaError_t launch_leaky_rounds(const void* in, void* out, std::size_t bytes, cudaStream_t stream) {
    leaky_rounds<<<256, 256, 0, stream>>>(static_cast<const std::uint32_t*>(in),
                                          static_cast<std::uint32_t*>(out), bytes / 4);
    return cudaGetLastError();
}

}  // namespace dael::test
