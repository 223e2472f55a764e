// SPDX-License-Identifier: Apache-2.0
#include <daelstrom/device/aes.cuh>
#include <daelstrom/key.hpp>

#include "grid_ctr.hpp"

namespace daelpy {
namespace {

using namespace dael::device;
using Tables = SharedTables<1>;  // 32 KiB: any GPU has them without being asked

template <int kBits>
__global__ void __launch_bounds__(1024)
    grid_kernel(const __grid_constant__ EncryptionKey<kBits> key, Block counter,
                const std::uint8_t* in, std::uint8_t* out, std::uint64_t size) {
    extern __shared__ __align__(16) unsigned char memory[];
    const Tables aes(memory);
    ctr(aes, key, counter, 0, in, out, size, std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
        std::uint64_t{gridDim.x} * blockDim.x);
}

template <int kBits>
cudaError_t launch(const GridCtr& job, const std::uint8_t* in, std::uint8_t* out,
                   cudaStream_t stream) {
    EncryptionKey<kBits> key = expand_key<kBits>(NoTables{}, job.key);
    grid_kernel<kBits><<<job.blocks, job.threads, Tables::kBytes, stream>>>(
        key, load_block(job.counter), in, out, job.size);
    dael::wipe(&key, sizeof key);
    return cudaGetLastError();
}

cudaError_t launch(const GridCtr& job, const std::uint8_t* in, std::uint8_t* out,
                   cudaStream_t stream) {
    if (job.size == 0) return cudaSuccess;
    switch (job.key_size) {
        case 16:
            return launch<128>(job, in, out, stream);
        case 24:
            return launch<192>(job, in, out, stream);
        default:
            return launch<256>(job, in, out, stream);
    }
}

cudaError_t on_host(const GridCtr& job) {
    if (job.size == 0) return cudaSuccess;
    std::uint8_t* memory = nullptr;
    cudaError_t error = cudaMalloc(&memory, job.size);
    if (error != cudaSuccess) return error;
    error = cudaMemcpy(memory, job.in, job.size, cudaMemcpyHostToDevice);
    if (error == cudaSuccess) error = launch(job, memory, memory, nullptr);
    if (error == cudaSuccess) error = cudaMemcpy(job.out, memory, job.size, cudaMemcpyDeviceToHost);
    (void)cudaMemset(memory, 0, job.size);
    (void)cudaFree(memory);
    return error;
}

}  // namespace

const char* grid_ctr(const GridCtr& job) {
    int before = 0, device = job.device;
    cudaError_t error = cudaGetDevice(&before);
    if (error == cudaSuccess && job.on_device && device < 0) {
        cudaPointerAttributes said{};
        error = cudaPointerGetAttributes(&said, job.out);
        device = said.device;
    }
    if (error == cudaSuccess && job.on_device && device != before) error = cudaSetDevice(device);
    if (error == cudaSuccess)
        error = job.on_device ? launch(job, job.in, job.out, static_cast<cudaStream_t>(job.stream))
                              : on_host(job);
    if (job.on_device && device != before) (void)cudaSetDevice(before);
    if (error == cudaSuccess) return nullptr;
    (void)cudaGetLastError();  // not left for others to find
    return cudaGetErrorString(error);
}

}  // namespace daelpy
