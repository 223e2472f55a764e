// SPDX-License-Identifier: Apache-2.0
// GCM's keys and batches in device memory, as the host holds them.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "backends/opencl/gcm_work.hpp"
#include "backends/opencl/opencl_device.hpp"

namespace dael::opencl {

inline Error lists_lie_on_the_host() {
    return {Code::unsupported,
            "opencl: a list of messages in device memory would hold pointers, which OpenCL's "
            "buffers do not have; give the list in host memory"};
}

// Results of a batch, byte by byte: of messages whose tag has yet to be made or compared, and of
// those that have none.
inline constexpr std::uint8_t kNotRun = 0xff, kAllOk = static_cast<std::uint8_t>(Code::ok);
static_assert(static_cast<int>(Code::ok) == 0);

// A buffer that is wiped before it goes.
class SecretBuffer {
  public:
    SecretBuffer() = default;
    SecretBuffer(SecretBuffer&& other) noexcept
        : queue_(std::move(other.queue_)),
          buffer_(std::exchange(other.buffer_, {})),
          size_(other.size_) {}
    SecretBuffer& operator=(SecretBuffer&& other) noexcept {
        std::swap(queue_, other.queue_);
        std::swap(buffer_, other.buffer_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~SecretBuffer() {
        if (!buffer_()) return;
        (void)queue_.enqueueFillBuffer(buffer_, cl_uint{0}, 0, size_);
        (void)queue_.finish();
    }
    // `size`: bytes, a multiple of 4.
    static Result<SecretBuffer> create(const cl::Context& context, const cl::CommandQueue& queue,
                                       std::size_t size) {
        SecretBuffer made;
        cl_int status = CL_SUCCESS;
        made.buffer_ = cl::Buffer(context, CL_MEM_READ_WRITE, size, nullptr, &status);
        DAEL_TRY(checked(status, "clCreateBuffer"));
        made.queue_ = queue;
        made.size_ = size;
        return made;
    }
    const cl::Buffer& get() const { return buffer_; }

  private:
    cl::CommandQueue queue_;
    cl::Buffer buffer_;
    std::size_t size_ = 0;
};

class GcmKeys final : public core::PreparedKeys {
  public:
    const OpenClDevice* device = nullptr;
    SecretBuffer schedules, powers;       // GcmSchedule, GcmPowers of each
    std::vector<std::uint8_t> rounds_of;  // of each
    std::vector<Key> host;  // copies, for kernels that take a key as an argument; not of large sets
};

// Messages of one key size between the same buffers: what one launch can reach.
struct GcmPart {
    std::optional<Place> in, out, aad, tag;  // none: no message of the part needs it
    int rounds = 0;
    bool many_keys = false;
    std::uint32_t only_key = 0;  // the key of all, where they have but one
    std::vector<GcmItem> items;  // until they are uploaded

    std::uint32_t count = 0, hash_count = 0, divided_count = 0, ctr_count = 0, log_blocks = 0;
    cl::Buffer list, hash_tiles, divided, ctr_tiles;
    SecretBuffer sums;
    Kernel *hash = nullptr, *combine = nullptr, *tags = nullptr, *ctr = nullptr;
};

// What batches of messages with a result each have in common. Base: core::PreparedGcm or
// core::PreparedKeyed.
template <class Base>
class BatchWithResults : public Base {
  public:
    BatchWithResults(OpenClDevice& its_device, const GcmKeys& its_keys)
        : device(its_device), keys(its_keys) {}
    ~BatchWithResults() override {
        if (codes) device.release(codes);
    }
    const std::uint32_t* results() const override { return codes; }
    Result<> outcome() const override { return ends.outcome(); }

    OpenClDevice& device;
    const GcmKeys& keys;
    Tuning tuning;                   // of the kernels that encrypt
    std::uint32_t* codes = nullptr;  // device memory
    mutable Ends ends;               // of the run
};

class GcmBatch final : public BatchWithResults<core::PreparedGcm> {
  public:
    using BatchWithResults::BatchWithResults;
    // The sums are wiped by another queue than the one that may still be using them.
    ~GcmBatch() override { ends.wait(); }

    std::uint32_t tag_size = 0;
    std::vector<GcmPart> parts;
    std::size_t codes_size = 0;  // bytes
    Place codes_place;
};

}  // namespace dael::opencl
