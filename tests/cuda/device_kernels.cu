// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_kernels.hpp"

#include <daelstrom/device/aes.cuh>

namespace dael::test {
namespace {

using namespace device;

constexpr unsigned kThreads = 256, kGrid = 3;

// AES is much code, which takes the compiler long. A kernel has it inline once, or twice; where it
// needs it again it calls these.
template <class Tables>
struct OutOfLine {
    const Tables& aes;
    template <int kBits>
    DAEL_HD Block encrypt(const EncryptionKey<kBits>& key, const Block& x) const {
        return encrypt_xor(key, x, Block{0, 0, 0, 0});
    }
    template <int kBits>
    __host__ __device__ __noinline__ Block encrypt_xor(const EncryptionKey<kBits>& key,
                                                       const Block& x, const Block& mask) const {
        return aes.encrypt_xor(key, x, mask);
    }
    template <int kBits>
    __device__ __noinline__ Block decrypt(const DecryptionKey<kBits>& key, const Block& x) const {
        return aes.decrypt(key, x);
    }
};

template <int kBits>
__device__ __noinline__ void expand_and_invert(const unsigned char* raw,
                                               DecryptionKey<kBits>& key) {
    key = invert_key(expand_key<kBits>(NoTables{}, raw));
}

template <class... Arguments>
__device__ __noinline__ void share_ctr(const Arguments&... arguments) {
    ctr(arguments...);
}

template <int kBits, int kTables>
__global__ void __launch_bounds__(kThreads)
    forward(const __grid_constant__ EncryptionKey<kBits> key, DeviceBlocks work) {
    extern __shared__ __align__(16) unsigned char memory[];
    const SharedTables<kTables> aes(memory);
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < work.count;
         i += gridDim.x * blockDim.x) {
        const Block x = load_block(work.in + 16 * i);
        const unsigned char* const own = work.keys + kBits / 8 * i;
        store_block(work.by_key + 16 * i, aes.encrypt(key, x));
        const OutOfLine<SharedTables<kTables>> again{aes};
        store_block(work.by_own + 16 * i, again.encrypt(expand_key<kBits>(aes, own), x));
        store_block(work.hashes + 48 * i, mmo(again, key, x));
        store_block(work.hashes + 48 * i + 16, mmo_sigma(again, key, x));
        store_block(work.hashes + 48 * i + 32, tmmo(again, key, x, load_block(own)));
    }
}

template <int kBits, int kTables>
__global__ void __launch_bounds__(kThreads)
    inverse(const __grid_constant__ DecryptionKey<kBits> key, DeviceBlocks work) {
    extern __shared__ __align__(16) unsigned char memory[];
    const SharedInverseTables<kTables> aes(memory);
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < work.count;
         i += gridDim.x * blockDim.x) {
        const Block x = load_block(work.in + 16 * i);
        store_block(work.by_key + 16 * i, aes.decrypt(key, x));
        DecryptionKey<kBits> own;
        expand_and_invert(work.keys + kBits / 8 * i, own);
        store_block(work.by_own + 16 * i,
                    OutOfLine<SharedInverseTables<kTables>>{aes}.decrypt(own, x));
    }
}

// The key lies in shared memory here, and the block of threads has three dimensions.
template <int kBits, int kTables>
__global__ void __launch_bounds__(kThreads)
    counter_mode(EncryptionKey<kBits> key, Block counter, DeviceCtr work) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ EncryptionKey<kBits> shared_key;
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (thread == 0) shared_key = key;
    const SharedTables<kTables> aes(memory);  // synchronises the threads
    const unsigned everyone = blockIdx.x * kThreads + thread;
    if (work.piece == 0) {
        share_ctr(aes, shared_key, counter, work.offset, work.in, work.out, work.size, everyone,
                  gridDim.x * kThreads);
        return;
    }
    for (std::size_t at = everyone / 32 * work.piece; at < work.size;
         at += gridDim.x * kThreads / 32 * work.piece)
        share_ctr(aes, shared_key, counter, work.offset + at, work.in + at, work.out + at,
                  min(work.piece, work.size - at), everyone % 32, 32u);
}

template <int kBits, int kTables>
__global__ void __launch_bounds__(kThreads) aegis(DeviceAegis work) {
    extern __shared__ __align__(16) unsigned char memory[];
    const SharedTables<kTables> aes(memory);
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < work.count;
         i += gridDim.x * blockDim.x) {
        AegisSecret<kBits> secret;
        for (int k = 0; k < kBits / 128; ++k) {
            secret.key[k] = load_block(work.secrets + kBits / 4 * i + 16 * k);
            secret.nonce[k] = load_block(work.secrets + kBits / 4 * i + kBits / 8 + 16 * k);
        }
        const unsigned char *const aad = work.aad + i, *const in = work.in + work.stride * i;
        unsigned char *const out = work.out + work.stride * i, *const tag = work.tags + 32 * i;
        if (work.authentic)
            work.authentic[i] =
                aegis_open(aes, secret, aad, i % 53, in, out, i, tag, work.tag_size);
        else
            aegis_seal(aes, secret, aad, i % 53, in, out, i, tag, work.tag_size);
    }
}

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 threads, std::size_t shared_bytes,
                   const Arguments&... arguments) {
    const auto allowed = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shared_bytes));
    if (allowed != cudaSuccess) return allowed;
    kernel<<<kGrid, threads, shared_bytes>>>(arguments...);
    const auto launched = cudaGetLastError();
    return launched == cudaSuccess ? cudaDeviceSynchronize() : launched;
}

template <int value>
struct Constant {
    static constexpr int kValue = value;
};

// call(bits, tables), as constants.
template <class Call>
cudaError_t choose(const DeviceCipher& cipher, Call call) {
    const auto by_tables = [&](auto bits) {
        return cipher.tables == 4   ? call(bits, Constant<4>{})
               : cipher.tables == 2 ? call(bits, Constant<2>{})
                                    : call(bits, Constant<1>{});
    };
    return cipher.bits == 128   ? by_tables(Constant<128>{})
           : cipher.bits == 192 ? by_tables(Constant<192>{})
                                : by_tables(Constant<256>{});
}

}  // namespace

cudaError_t run_blocks(const DeviceCipher& cipher, bool decrypt, const DeviceBlocks& blocks) {
    return choose(cipher, [&](auto bits, auto tables) {
        constexpr int kBits = decltype(bits)::kValue, kTables = decltype(tables)::kValue;
        const auto key = expand_key<kBits>(NoTables{}, cipher.key);
        return decrypt ? launch(inverse<kBits, kTables>, kThreads,
                                SharedInverseTables<kTables>::kBytes, invert_key(key), blocks)
                       : launch(forward<kBits, kTables>, kThreads, SharedTables<kTables>::kBytes,
                                key, blocks);
    });
}

cudaError_t run_ctr(const DeviceCipher& cipher, const DeviceCtr& work) {
    return choose(cipher, [&](auto bits, auto tables) {
        constexpr int kBits = decltype(bits)::kValue, kTables = decltype(tables)::kValue;
        return launch(counter_mode<kBits, kTables>, dim3(8, 8, 4), SharedTables<kTables>::kBytes,
                      expand_key<kBits>(NoTables{}, cipher.key), load_block(work.counter), work);
    });
}

cudaError_t run_aegis(int bits, int tables, const DeviceAegis& work) {
    const auto by_tables = [&](auto of) {
        constexpr int kBits = decltype(of)::kValue;
        return tables == 4   ? launch(aegis<kBits, 4>, kThreads, SharedTables<4>::kBytes, work)
               : tables == 2 ? launch(aegis<kBits, 2>, kThreads, SharedTables<2>::kBytes, work)
                             : launch(aegis<kBits, 1>, kThreads, SharedTables<1>::kBytes, work);
    };
    return bits == 128 ? by_tables(Constant<128>{}) : by_tables(Constant<256>{});
}

std::size_t shared_memory_limit() {
    int bytes = 0;
    return cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess
               ? static_cast<std::size_t>(bytes)
               : 0;
}

}  // namespace dael::test
