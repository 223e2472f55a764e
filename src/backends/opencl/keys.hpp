// SPDX-License-Identifier: Apache-2.0
// Keys as kernels take them: one as an argument, or all of a set in device memory.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/opencl/ends.hpp"
#include "backends/opencl/gcm_work.hpp"
#include "core/backend.hpp"

namespace dael::opencl {

class OpenClDevice;

// A key as an argument. Wiped when it goes.
struct KeyArgument {
    KeyArgument(const Key& key, bool inverse);
    KeyArgument(const KeyArgument&) = default;
    ~KeyArgument();
    RoundKeys data, tweak;  // the second one is XTS's
    int rounds;
};

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
    ~SecretBuffer();
    // `size`: bytes, a multiple of 4.
    static Result<SecretBuffer> create(const cl::Context& context, const cl::CommandQueue& queue,
                                       std::size_t size);
    static SecretBuffer around(cl::Buffer buffer, cl::CommandQueue queue, std::size_t size) {
        SecretBuffer made;
        made.buffer_ = std::move(buffer);
        made.queue_ = std::move(queue);
        made.size_ = size;
        return made;
    }
    const cl::Buffer& get() const { return buffer_; }
    // Neither wiped nor given back any more.
    void lose() noexcept {
        if (buffer_()) (void)clRetainMemObject(buffer_());
        size_ = 0;
    }

  private:
    cl::CommandQueue queue_;
    cl::Buffer buffer_;
    std::size_t size_ = 0;
};

class OpenClKeys final : public core::KeyTables {
  public:
    // Errors: device, out_of_memory, limit, invalid_argument for no keys.
    static Result<std::unique_ptr<OpenClKeys>> create(OpenClDevice& device,
                                                      std::span<const Key> keys);

    ~OpenClKeys() override;
    // False once a replacement was launched and failed then.
    bool whole() const noexcept override { return whole_; }

    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override;

    const OpenClDevice& device() const { return device_; }
    // Kernels that use the set and that could not be waited for: it is not wiped before they end.
    void outlive(Ends ends) const noexcept;
    // As it is now: kernels that are launched later see what replace() has put there.
    KeyArgument argument(std::uint32_t index, bool inverse) const;
    int rounds(std::uint32_t index) const;
    // The numbers of rounds that keys of the set have now, of 10, 12 and 14.
    std::vector<int> all_rounds() const;

    // Of every key: GcmSchedule and GcmPowers. None of XTS keys.
    const cl::Buffer& schedules() const { return schedules_.get(); }
    const cl::Buffer& powers() const { return powers_.get(); }

  private:
    explicit OpenClKeys(OpenClDevice& device) : device_(device) {}
    Result<> upload();

    OpenClDevice& device_;
    mutable SecretBuffer schedules_, powers_;
    mutable std::mutex mutex_;  // guards what follows
    std::vector<Key> keys_;
    Ends replaced_;
    mutable std::vector<Ends> unfinished_;
    std::atomic<bool> whole_{true};
    std::array<std::uint32_t, 3> of_size_{};  // how many keys have 10, 12 and 14 rounds
};

}  // namespace dael::opencl
