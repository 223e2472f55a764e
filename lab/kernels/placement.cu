// SPDX-License-Identifier: Apache-2.0
// placement.cl for CUDA: what OpenCL is told by definitions are a template's parameters here.
#include "lab/kernels/placement.hpp"

#include <daelstrom/device/detail/ttable.hpp>

namespace dael::lab {
namespace {

using uint = unsigned int;
using uchar = unsigned char;
using ulong = unsigned long long;

struct Table {
    uint words[1024];
};
constexpr Table make_table() {
    Table table{};
    const kernels::Words256 first = kernels::make_encrypt_table();
    for (uint i = 0; i < 1024; ++i) {
        const uint word = first[i % 256], bits = i / 256 * 8;
        table.words[i] = bits == 0 ? word : word << bits | word >> (32 - bits);
    }
    return table;
}
// Lookups in constant memory, and a copy from which shared memory is filled: constant memory serves
// one address at a time.
__constant__ const Table constant_table = make_table();
__device__ const Table global_table = make_table();

__device__ __forceinline__ uint get_local_id(int) {
    return threadIdx.x;
}
__device__ __forceinline__ uint get_group_id(int) {
    return blockIdx.x;
}
__device__ __forceinline__ uint get_num_groups(int) {
    return gridDim.x;
}

extern __shared__ uint shared_words[];

}  // namespace
}  // namespace dael::lab

#define __global
#define __local
#define FUNCTION __device__ __forceinline__
#define KERNEL                                                                                  \
    template <int LAB_FORM, int LAB_BYTES, int LAB_TABLES, int LAB_COUNT, bool LAB_KEYS_SHARED, \
              int LAB_STATE>                                                                    \
    __global__ __launch_bounds__(LAB_FORM == SLICED ? kSlicedThreads : kMaxThreads)
#define CONSTANTS const __grid_constant__ Constants constants
#define CONSTANT_AT(i) (reinterpret_cast<const uint*>(&constants)[i])
#define LAB_GROUP blockDim.x
#define lab_table constant_table.words
#define TABLE_IN_GLOBAL global_table.words
#define SHARED_WORDS(name) uint* const name = shared_words
#define CLK_LOCAL_MEM_FENCE
#define barrier(fence) __syncthreads()

// Where a shape has no use for a part, loops over it end at once, or are not reached.
#pragma nv_diag_suppress 186, 128
namespace dael::lab {
namespace {
#include "lab/kernels/placement.cl"  // NOLINT(bugprone-suspicious-include)

struct Variant {
    Shape shape;
    const void* kernel;
};
template <int kForm, int kBytes, int kTables, int kCount, bool kKeysShared, int kState>
Variant variant() {
    Shape shape;
    shape.form = static_cast<Shape::Form>(kForm);
    shape.bytes = kBytes;
    shape.tables = static_cast<Shape::Tables>(kTables);
    shape.count = kCount;
    shape.keys_shared = kKeysShared;
    shape.state = static_cast<Shape::State>(kState);
    return {shape, reinterpret_cast<const void*>(
                       &placement<kForm, kBytes, kTables, kCount, kKeysShared, kState>)};
}

}  // namespace

const void* cuda_kernel(const Shape& shape) {
    static const Variant variants[] = {
        variant<BLOCKS, 16, CONSTANT, 4, false, REGISTERS>(),
        variant<BLOCKS, 16, SHARED, 4, false, REGISTERS>(),
        variant<BLOCKS, 16, SHARED, 4, true, REGISTERS>(),
        variant<BLOCKS, 16, SHARED, 1, true, REGISTERS>(),
        variant<BLOCKS, 16, SHARED, 4, true, SOA>(),
        variant<BLOCKS, 16, SHARED, 4, true, AOS>(),
        variant<BLOCKS, 8, SHARED, 4, false, AOS>(),
        variant<BLOCKS, 8, SHARED, 4, true, AOS>(),
        variant<BLOCKS, 8, SHARED, 4, false, SOA>(),
        variant<BLOCKS, 4, SHARED, 4, false, AOS>(),
        variant<BLOCKS, 4, SHARED, 4, true, AOS>(),
        variant<BLOCKS, 4, SHARED, 4, false, SOA>(),
        variant<BLOCKS, 1, SHARED, 4, true, AOS>(),
        variant<BLOCKS, 16, BANKS, 1, false, REGISTERS>(),
        variant<BLOCKS, 16, BANKS, 2, false, REGISTERS>(),
        variant<BLOCKS, 16, BANKS, 4, false, REGISTERS>(),
        variant<BLOCKS, 16, NONE, 4, false, REGISTERS>(),
        variant<SLICED, 32, NONE, 4, false, REGISTERS>(),
        variant<COUNTERS, 16, SHARED, 4, false, REGISTERS>(),
        variant<CACHED, 16, SHARED, 4, false, REGISTERS>(),
        variant<COUNTERS, 16, BANKS, 4, false, REGISTERS>(),
        variant<CACHED, 16, BANKS, 4, false, REGISTERS>(),
    };
    Shape any_size = shape;
    any_size.threads = Shape{}.threads;
    for (const Variant& one : variants)
        if (one.shape == any_size) return one.kernel;
    return nullptr;
}

}  // namespace dael::lab
