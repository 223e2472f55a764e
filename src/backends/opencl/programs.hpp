// SPDX-License-Identifier: Apache-2.0
// The programs of one device: built at first need, kept while the device is, and kept on disk
// (binary_cache.hpp). Thread-safe.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/opencl/cl.hpp"
#include "backends/opencl/tuning.hpp"

namespace dael::opencl {

// Setting a kernel's arguments and launching it is one step: hold the mutex over both.
struct Kernel {
    cl::Kernel handle;
    std::mutex mutex;
};

class Programs {
  public:
    // What the programs for a call depend on besides cipher and rounds: known_answers.cpp.
    struct Variant {
        Tuning tuning{};
        bool batch = false, keys = false;  // several keys in one launch
        bool in_place = false, keystream = false;
        bool stream = false;                  // ctr_stream.cl
        bool table = false, divided = false;  // ghash.cl
    };
    // The one that this thread asks about now, and so has to take; null: none.
    static const Variant* variant_asked();

    Programs(cl::Context context, cl::Device device);

    // The kernel `entry` of a unit (see units() in programs.cpp), built with these macros:
    // "-DDAEL_ROUNDS=10 ...". Errors: device, with the compiler's log.
    Result<Kernel*> find(const std::string& unit, const std::string& entry,
                         const std::string& macros);

    // Whether what is built is kept on disk. PoCL keeps it itself, and to hand it out compiles
    // every kernel a second time.
    void keep_on_disk(bool keep) { keeps_ = keep; }
    // For tests: macros for every program that is found from now on.
    void define(std::string macros);
    // Builds any source. Public for tests.
    Result<cl::Program> build(const std::string& name, const std::string& source,
                              const std::string& macros) const;
    // How many programs came from the disk.
    int from_disk() const { return from_disk_; }

  private:
    struct Program {
        std::mutex mutex;  // guards the others; held while it is built, when others are in use
        cl::Program handle;
        std::map<std::string, Kernel> kernels;
    };
    cl::Context context_;
    cl::Device device_;
    std::string identity_;  // of platform, device and driver
    std::atomic<bool> keeps_;
    mutable std::atomic<int> from_disk_{0};
    std::mutex mutex_;  // guards what follows
    std::string defined_;
    std::map<std::string, Program> programs_;
};

}  // namespace dael::opencl
