// SPDX-License-Identifier: Apache-2.0
// A device made of threads, for tests of the pipeline where there is no GPU. Each stream is a
// thread with a queue; copies and kernels run there, later than the call that asked for them. It is
// strict where a GPU would be silently wrong or merely slow:
//   - asynchronous copies must use page-locked host memory and stay inside one device allocation;
//   - device and page-locked memory must be wiped before it is released;
//   - everything must be released, and nothing while a stream still uses it.
// What it finds is in violations(). Failures and a small memory can be asked for.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/device.hpp"

namespace dael::test {

struct HostDeviceOptions {
    std::uint64_t memory = std::uint64_t{1} << 30;  // bytes of device memory
    std::uint64_t pinned = std::uint64_t{1} << 30;  // bytes that may be page-locked
    int fail_at = 0;                                // the nth call that can fail does; 0: none
    std::chrono::microseconds delay{0};             // of every operation on a stream
    bool silent_failures = false;                   // batches fail, which their outcome alone tells
    std::vector<std::string> shapes{};              // of its kernels, as it says;
    std::set<std::string> refused{};                // but these it refuses to use
};

class HostDevice final : public core::Device {
  public:
    explicit HostDevice(HostDeviceOptions options = {});
    ~HostDevice() override;

    const core::DeviceInfo& info() const override { return info_; }
    Result<> run(const core::Operation& operation, const core::Segment& segment,
                 Stream stream) override;
    Result<std::unique_ptr<core::PreparedBatch>> prepare(
        Mode mode, Direction direction, std::span<const core::Segment> segments) override;
    Result<> run(const core::Operation& operation, const core::PreparedBatch& batch,
                 Stream stream) override;
    Result<> xts(const core::XtsOperation& operation, const core::Segment& segment,
                 Stream stream) override;
    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) override;
    Result<std::unique_ptr<core::PreparedGcm>> prepare_gcm(
        const core::PreparedKeys& keys, std::span<const core::GcmSegment> segments) override;
    Result<std::unique_ptr<core::PreparedGcm>> prepare_gcm(const core::PreparedKeys& keys,
                                                           const GcmMessage* device_messages,
                                                           std::uint32_t count,
                                                           std::size_t tag_size) override;
    Result<> gcm(Direction direction, const core::PreparedGcm& batch, Stream stream) override;
    Result<std::unique_ptr<core::PreparedKeyed>> prepare_cbc_encrypt(
        const core::PreparedKeys& keys, std::span<const KeyedMessage> messages) override;
    Result<std::unique_ptr<core::PreparedKeyed>> prepare_cbc_encrypt(
        const core::PreparedKeys& keys, const KeyedMessage* device_messages,
        std::uint32_t count) override;
    Result<> cbc_encrypt(const core::PreparedKeyed& batch, Stream stream) override;
    std::vector<std::string> shapes() const override { return options_.shapes; }
    Result<> use_shape(const std::string& shape) override;
    Result<void*> allocate(std::size_t size) override;
    void release(void* memory) noexcept override;
    Result<void*> allocate_pinned(std::size_t size) override;
    void release_pinned(void* memory) noexcept override;
    Result<std::uint64_t> free_memory() override;
    bool is_pinned(const void* host_memory) override;
    bool owns(const void* device_memory) override;
    Result<Stream> create_stream() override;
    void destroy_stream(Stream stream) noexcept override;
    Result<core::Event> create_event() override;
    void destroy_event(core::Event event) noexcept override;
    Result<> record(core::Event event, Stream stream) override;
    Result<> wait(Stream stream, core::Event event) override;
    Result<> wait(core::Event event) override;
    Result<> wait(Stream stream) override;
    Result<float> elapsed_ms(core::Event from, core::Event to) override;
    Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                     Stream stream) override;
    Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                      Stream stream) override;
    Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) override;
    Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                  Stream stream) override;

    // For tests.
    std::set<std::string> violations();
    std::size_t live();                   // allocations, streams, events, batches that exist now
    int calls() const { return calls_; }  // that could have failed so far
    std::string failed_call();            // which call fail_at hit; empty: none yet
    int most_at_once() const { return most_at_once_; }  // operations that ran at the same time
    std::uint64_t kernels() const { return kernels_; }
    std::uint64_t copied_out() const { return copied_out_; }  // bytes

  private:
    struct Queue;
    struct Mark;
    struct Prepared;
    struct Keys;
    struct Gcm;
    struct Keyed;

    Result<std::unique_ptr<Keyed>> prepare_keyed(const core::PreparedKeys& keys, std::size_t count);
    Code run_keyed(const Keys& keys, Mode mode, std::uint32_t key, const core::Segment& segment);
    Result<> attempt(const char* call);
    Result<> outcome() const;
    void violation(std::string what);
    void enqueue(Stream stream, std::function<void()> work);
    void check_device_range(const void* memory, std::size_t size, const char* call);
    void check_pinned_range(const void* memory, std::size_t size, const char* call);
    Result<> check_run(const core::Operation& operation, bool batch);

    const HostDeviceOptions options_;
    core::DeviceInfo info_;
    std::unique_ptr<core::Backend> maths_;
    std::mutex mutex_;
    std::map<const std::uint8_t*, std::size_t> device_memory_, pinned_memory_;
    std::uint64_t device_used_ = 0, pinned_used_ = 0;
    std::set<Queue*> streams_;
    std::set<Mark*> events_;
    std::set<std::string> violations_;
    std::string failed_call_;
    std::atomic<int> calls_{0}, batches_{0}, at_once_{0}, most_at_once_{0};
    std::atomic<std::uint64_t> kernels_{0}, copied_out_{0};
};

// The backend that an engine sees. The device outlives it, so that a test can look at it
// afterwards.
class HostDeviceBackend final : public core::Backend {
  public:
    explicit HostDeviceBackend(HostDevice& device) : device_(device) {}
    std::string_view name() const override { return "threads:0"; }
    std::string description() const override { return "a device made of threads"; }
    bool supports(Mode mode, Direction direction, std::size_t segments) const override {
        return parallel_within_message(mode, direction) || segments > 1;
    }
    Result<> run(const core::Operation&, std::span<const core::Segment>) override {
        return Error{Code::unsupported, "threads:0 does not reach host memory"};
    }
    core::Device* device() override { return &device_; }

  private:
    HostDevice& device_;
};

}  // namespace dael::test
