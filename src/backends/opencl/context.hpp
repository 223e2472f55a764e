// SPDX-License-Identifier: Apache-2.0
// A context of OpenCL and the page-locked host memory that was made in it. Engines of one process
// that open the same device share one context: a driver copies at full speed only from memory that
// was page-locked in the queue's own context, and whoever allocates such memory
// (dael::allocate_pinned) is seldom the engine that copies it. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

class Context {
  public:
    // The process's own context for this device, made when there is none. Errors: device.
    static Result<std::shared_ptr<Context>> of(const cl::Device& device);
    // The caller's.
    static std::shared_ptr<Context> of(const cl::Context& context);

    explicit Context(cl::Context handle) : handle_(std::move(handle)) {}

    const cl::Context& operator*() const { return handle_; }
    cl_context operator()() const { return handle_(); }

    // Page-locked memory: a buffer that the driver puts into host memory, mapped for as long as it
    // lives by way of `queue`. Starts on a page. Errors: out_of_memory, device.
    Result<void*> allocate_pinned(std::size_t size, const cl::CommandQueue& queue);
    void release_pinned(void* memory, const cl::CommandQueue& queue) noexcept;
    // Whether all these bytes are, as one piece.
    bool is_pinned(const void* host_memory, std::size_t size) const;

  private:
    struct Pinned {
        std::size_t size;
        cl::Buffer buffer;
        void* mapped;  // the buffer's beginning, less than a page before
    };
    const cl::Context handle_;
    mutable std::mutex mutex_;  // guards what follows
    std::map<std::uintptr_t, Pinned> pinned_;
};

}  // namespace dael::opencl
