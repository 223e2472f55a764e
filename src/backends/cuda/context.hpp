// SPDX-License-Identifier: Apache-2.0
// Where this backend's calls happen: in the primary context of the GPU that they are for, which is
// made when it is first needed, and with nothing of the caller's changed afterwards.
//
// The run-time library's own way, cudaSetDevice, makes a context on every GPU that it is set to and
// back to, and replaces one that the caller made. So contexts are pushed and popped by the driver's
// calls, which are found at run time: a program with this backend starts without a driver.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include <daelstrom/error.hpp>

namespace dael::cuda {

// Whether this process has the GPU's primary context, whoever made it. Makes none.
bool has_context(int device) noexcept;

// The GPU whose context is current for this thread, or else the first whose primary context this
// process has: one that is in use. -1 for none. Makes no context.
int device_in_use() noexcept;

// What the driver knows of an address, without any context. A failure is the driver's, as after a
// kernel that faulted, and tells nothing of the address.
struct Whereabouts {
    bool pinned = false;                 // page-locked host memory
    const unsigned char* end = nullptr;  // of what was locked or allocated together, if known
    int device = -1;                     // whose memory it is, managed memory too; -1: no GPU's
};
Result<Whereabouts> find_memory(const void* address);

// Makes a GPU's primary context current for this thread while it lives, then what was current
// before. The first of a process makes the context, which stays: it takes a third of a second to
// make, and all memory and streams that there are in it would go with it. Cheap where it is current
// already.
class CurrentDevice {
  public:
    explicit CurrentDevice(int device) noexcept;
    ~CurrentDevice();
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

    bool works() const noexcept { return status_ == 0; }
    Result<> result() const;

  private:
    int status_;  // a CUresult
    const char* call_ = "";
    bool pushed_ = false;
};

// While it lives, this thread may call what would break the capture of another thread's stream into
// a graph: to allocate and to free, which frameworks (PyTorch) forbid all threads meanwhile. Of use
// only where nothing is launched on streams of the caller's.
class BesideCaptures {
  public:
    BesideCaptures() noexcept { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
    ~BesideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
    BesideCaptures(const BesideCaptures&) = delete;
    BesideCaptures& operator=(const BesideCaptures&) = delete;

  private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// The scope of what prepares and destroys: the device current, beside captures, and a stream of our
// own that waits for nothing that the caller or a framework has queued, on stream 0 say.
class SetUp {
  public:
    explicit SetUp(int device) noexcept;
    ~SetUp();
    SetUp(const SetUp&) = delete;
    SetUp& operator=(const SetUp&) = delete;

    Result<> result() const;
    cudaStream_t stream() const { return stream_; }
    // Done when it returns, whichever stream reads next.
    Result<> upload(void* to, const void* from, std::size_t size) const;
    Result<> wait() const;

  private:
    const int device_;
    const CurrentDevice current_;
    const BesideCaptures beside_;
    cudaStream_t stream_ = nullptr;
    cudaError_t status_ = cudaSuccess;
};

// Page-locked memory on the way to a GPU, for secrets: from any other, the driver would copy them
// to a place of its own that nobody wipes. One user at a time; wiped when it goes.
class Staging {
  public:
    static constexpr std::size_t kSize = std::size_t{64} << 10;

    explicit Staging(int device) noexcept;  // within a SetUp
    ~Staging();
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;

    Result<> result() const;
    unsigned char* data() const;  // kSize bytes

  private:
    const int device_;
    cudaError_t status_ = cudaSuccess;
};

}  // namespace dael::cuda
