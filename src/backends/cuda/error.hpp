// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include <daelstrom/error.hpp>

namespace dael::cuda {

// The Error for a failed CUDA call, naming it; clears the runtime's record of it.
inline Error cuda_failure(cudaError_t status, const char* call) {
    (void)cudaGetLastError();
    const Code code = status == cudaErrorMemoryAllocation ? Code::out_of_memory : Code::device;
    return {code, std::string("cuda: ") + call + ": " + cudaGetErrorString(status) + " (" +
                      cudaGetErrorName(status) + ")"};
}

// Runs one CUDA call: `DAEL_TRY(checked(cudaMalloc(&p, n), "cudaMalloc"));`
inline Result<> checked(cudaError_t status, const char* call) {
    if (status != cudaSuccess) return cuda_failure(status, call);
    return {};
}

// Of a call whose failure nobody can be told: leaves no trace in the run-time library, which a
// program may share with us, and would meet it at its next question for the last error.
inline void forget_failure(cudaError_t status) {
    if (status != cudaSuccess) (void)cudaGetLastError();
}

}  // namespace dael::cuda
