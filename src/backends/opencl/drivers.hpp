// SPDX-License-Identifier: Apache-2.0
// OpenCL's drivers: which are registered on this machine, and loading them, kind by kind. This is
// what a libOpenCL.so does (extension cl_khr_icd), and it is done here for one reason: that loads
// every driver there is at its first call, and some asks all of them for their devices, so that a
// program that would like a GPU pays for PoCL's compiler too, or dies in it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

// Drivers that make OpenCL devices of the host's own processors, and the others: of GPUs, and of
// whatever is not known to be one of those.
enum class DriverKind { gpu, cpu };

// A driver's library as its registration names it: "libpocl.so.2.10.0".
struct Driver {
    std::string library;
    DriverKind kind;
};
// By name alone; nothing is loaded. `registration`: the file that names it, if one does.
DriverKind kind_of(const std::string& library, const std::string& registration);

// The libraries that the *.icd files in /etc/OpenCL/vendors name, in the order of the files' names.
// As with other loaders, OCL_ICD_VENDORS names another folder, one file, or a library itself, and
// OCL_ICD_FILENAMES more libraries, with colons between. Loads nothing.
std::vector<Driver> registered_drivers();

// The platforms of all drivers of a kind, which the first call loads for good. A library that is
// not there, or is no driver, has none. Thread-safe.
std::span<const cl::Platform> platforms(DriverKind kind);

}  // namespace dael::opencl
