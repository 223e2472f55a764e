// SPDX-License-Identifier: Apache-2.0
// OpenCL for this backend: Khronos's C++ bindings at version 1.2, and of 2.0 the C functions for
// shared virtual memory. All functions are forwarded to the drivers by loader.cpp; which of those
// are loaded is drivers.hpp's.
#pragma once

#include <string>

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS  // clCreateCommandQueue, for devices of version 1.2
#include <CL/cl_icd.h>
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#include <CL/opencl.hpp>

#include <daelstrom/error.hpp>

namespace dael::opencl {

// Whether this is a child of fork() whose parent had loaded a driver, was looking for one, or was
// given a driver's objects. Drivers have threads, which such a child has not: from then on every
// function of OpenCL fails there (CL_INVALID_OPERATION), since it would wait for them forever.
// Whoever takes a lock asks before: another thread may have held it.
bool after_fork() noexcept;
void watch_for_forks() noexcept;
Error fork_failure();

// The Error for a failed OpenCL call, naming it.
Error cl_failure(cl_int status, const char* call);

// Checks one call: `DAEL_TRY(checked(queue.finish(), "clFinish"));`
inline Result<> checked(cl_int status, const char* call) {
    if (status != CL_SUCCESS) return cl_failure(status, call);
    return {};
}

}  // namespace dael::opencl
