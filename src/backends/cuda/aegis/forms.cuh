// SPDX-License-Identifier: Apache-2.0
// From a way of taking messages to the kernels that were compiled for it.
#pragma once

#include "backends/cuda/aegis/kernels.hpp"
#include "backends/cuda/aegis/messages.cuh"

namespace dael::cuda {

// A few messages, whose list travels as a parameter, and AAD of the host's with it.
template <class F, bool kOpen>
__global__ void __launch_bounds__(F::kThreads, 1)
    aegis_few(const __grid_constant__ AegisLaunch launch) {
    __shared__ Message list[kMaxLaunched];
    __shared__ std::uint32_t aad[kMaxLaunchedAad / 4];
    static_assert(sizeof list + sizeof aad == shapes::aegis_few().fixed);
    for (std::uint32_t i = threadIdx.x; i < launch.batch.count; i += F::kThreads) {
        Message m = launch.messages[i];
        if (launch.aad_words != 0)
            m.aad = reinterpret_cast<const unsigned char*>(aad) +
                    reinterpret_cast<std::uintptr_t>(m.aad);
        list[i] = m;
    }
    for (std::uint32_t i = threadIdx.x; i < launch.aad_words; i += F::kThreads)
        aad[i] = launch.aad[i];
    aegis_messages<F, kOpen>(launch.batch, list);  // which waits for all threads first
    __syncthreads();
    if (threadIdx.x == 0 && launch.batch.ended) atomicAdd(launch.batch.ended, 1ull);
}

template <class F>
Kernel aegis_kernel_of(bool opening) {
    const void* seal = reinterpret_cast<const void*>(&aegis_batch<F, false>);
    const void* open = reinterpret_cast<const void*>(&aegis_batch<F, true>);
    return {opening ? open : seal, F::shape(), true};
}
template <class F>
Kernel aegis_few_of(bool opening) {
    const void* seal = reinterpret_cast<const void*>(&aegis_few<F, false>);
    const void* open = reinterpret_cast<const void*>(&aegis_few<F, true>);
    static_assert(F::kThreads == shapes::aegis_few().threads && F::kTables == 1);
    return {opening ? open : seal, shapes::aegis_few(), true};
}

}  // namespace dael::cuda
