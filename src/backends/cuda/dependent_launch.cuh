// SPDX-License-Identifier: Apache-2.0
// Launches that overlap (programmatic dependent launch, from sm_90 on; Kernel::overlaps): a kernel
// may begin while what is ahead of it on its stream still works. It touches no memory before all of
// that has ended and can be seen, so that the order of the stream holds as ever. Every thread of
// such a kernel waits, with work or without: what comes behind takes its end for that of all
// before.
#pragma once

namespace dael::cuda {

__device__ __forceinline__ void let_the_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_those_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace dael::cuda
