// SPDX-License-Identifier: Apache-2.0
// A device made of threads, for tests of the pipeline where there is no GPU. Each stream is a
// thread with a queue; copies and kernels run there, later than the call that asked for them. It is
// strict where a GPU would be silently wrong or merely slow:
//   - asynchronous copies must use page-locked host memory and stay inside one device allocation
//     (a batch's codes, which are no secret, may be fetched to any: that copy waits, as a GPU's
//     does);
//   - kernels read and write this device's memory only, and get valid messages only, but for lists
//     that lie in device memory; runs of keystream go to page-locked memory;
//   - device and page-locked memory must be wiped before it is released;
//   - everything must be released, and nothing while a stream still uses it;
//   - no two streams write to the same page-locked memory at once.
// What it finds is in violations(). Failures and a small memory can be asked for.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/device.hpp"

namespace dael::test {

struct HostDeviceOptions {
    std::string name = "threads:0";
    std::uint64_t memory = std::uint64_t{1} << 30;  // bytes of device memory
    std::uint64_t pinned = std::uint64_t{1} << 30;  // bytes that may be page-locked
    int fail_at = 0;                                // the nth call that can fail does; 0: none
    int fail_for = 1;                               // and so do as many in a row in all
    std::string fail_call{};  // only those of this name, or, with a star, that begin so; empty: all
    bool gives_up = false;    // a wait that fails has not waited: the work goes on
    std::chrono::microseconds delay{0};          // of every operation on a stream
    bool silent_failures = false;                // batches fail, which their outcome alone tells
    bool reads_lists = true;                     // that lie in device memory
    std::size_t reach = 0;                       // of its kernels, as core::Device has it
    bool makes_keystream = false;                // runs of it (core/keystream_maker.hpp)
    std::vector<std::string> forms{};            // of its kernels, as it says;
    std::set<std::string> refused{};             // but these it refuses to use
    std::optional<Mode> lacks{};                 // a mode that its backend says it has not
    std::function<void(const char* call)> at{};  // called at the head of each that can fail
};

class HostDevice final : public core::Device, public Memory, public Order, private core::Forms {
  public:
    explicit HostDevice(HostDeviceOptions options = {});
    ~HostDevice() override;

    const HostDeviceOptions& options() const { return options_; }
    const DeviceInfo& info() const override { return info_; }
    std::size_t reach() const override { return options_.reach; }
    Memory& memory() override { return *this; }
    Order& order() override { return *this; }
    core::Forms* forms() override { return options_.forms.empty() ? nullptr : this; }
    Result<> run(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                 Stream stream) override;
    Result<> run_in_reach(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                          Stream stream) override;
    Result<std::unique_ptr<core::Prepared>> prepare(const Cipher& cipher, const core::KeyList& keys,
                                                    const Messages& messages) override;
    Result<> run(core::Prepared& prepared, Stream stream) override;
    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 const LaunchOptions& options, Stream stream) override;

    Result<std::unique_ptr<core::KeystreamMaker>> keystream_maker() override;

    // What its backend passes on.
    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys);
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start);

    Result<void*> allocate(std::size_t size) override;
    void release(void* memory) noexcept override;
    Result<void*> allocate_pinned(std::size_t size) override;
    void release_pinned(void* memory) noexcept override;
    Result<std::uint64_t> free_memory() override;
    bool is_pinned(const void* host_memory, std::size_t size) override;
    bool owns(const void* device_memory) override;
    Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                     Stream stream) override;
    Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                      Stream stream) override;
    Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) override;
    Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                  Stream stream) override;

    Result<Stream> create_stream() override;
    void destroy_stream(Stream stream) noexcept override;
    Result<Event> create_event() override;
    void destroy_event(Event event) noexcept override;
    Result<> record(Event event, Stream stream) override;
    Result<> wait(Stream stream, Event event) override;
    Result<> wait(Event event) override;
    Result<bool> is_done(Event event) override;
    Result<> wait(Stream stream) override;
    Result<float> elapsed_ms(Event from, Event to) override;
    bool is_capturing(Stream stream) override { return captured_ && stream.handle == captured_; }

    // For tests.
    const std::string& name() const { return options_.name; }
    std::set<std::string> violations();
    // Allocations, streams, events, batches, tables of keys, makers of keystream.
    std::size_t live();
    int calls() const { return calls_; }        // that could have failed so far
    std::string failed_call();                  // which call fail_at hit; empty: none yet
    int given_up() const { return given_up_; }  // waits that failed and have not waited
    // As if it had been opened with these: the nth call from now on.
    void fail(int nth, std::string call = {}, int in_a_row = 1);
    // And whether it then throws, as where there is no memory for words.
    void throw_instead(bool throws) { throws_ = throws; }
    int most_at_once() const { return most_at_once_; }  // operations that ran at the same time
    std::uint64_t kernels() const { return kernels_; }
    std::uint64_t runs() const { return runs_; }              // of keystream
    std::uint64_t copied_out() const { return copied_out_; }  // bytes
    // Whether what streams are to do waits, as on a device that does not answer.
    void hang(bool hangs) {
        hung_ = hangs;
        hung_.notify_all();
    }
    void capture(Stream stream) { captured_ = stream.handle; }  // null: none; it runs nevertheless
    std::uint64_t most_memory() const { return most_memory_; }  // bytes of the device's, at once

  private:
    struct Queue;
    struct Mark;
    struct HeldTables;
    struct HeldBatch;
    struct Tables;
    struct PreparedBatch;
    class Maker;

    std::vector<std::string> list() const override { return options_.forms; }
    Result<> use(const std::string& form) override;
    std::string in_use() const override { return form_; }

    Result<> attempt(const char* call);
    void violation(std::string what);
    Queue& queue_of(Stream stream);
    static void drain(Queue& queue);
    template <class Wait>
    Result<> waited(const char* call, Wait wait);
    bool is_codes(const void* device_memory);
    // Memory that an operation reads or writes when its turn comes.
    struct Use {
        const void* memory = nullptr;
        std::size_t size = 0;
        bool written = false;
        const Queue* queue = nullptr;
    };
    using Uses = std::vector<Use>;
    // `then`: what tells that the work is done, when nothing is in use by it any more.
    void enqueue(Stream stream, Uses uses, std::function<void()> work,
                 std::function<void()> then = {});
    bool in_use(const void* memory, std::size_t size) const;  // under the mutex
    void check_device_range(const void* memory, std::size_t size, const std::string& what);
    void check_pinned_range(const void* memory, std::size_t size, const std::string& what);
    Result<> run_one(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                     Stream stream, const char* call);
    void check_message(const Cipher& cipher, const Message& message, const std::string& call);
    Result<> check_host_list(const Cipher& cipher, const Tables& tables, const Messages& messages);
    Result<> check_device_list(const Cipher& cipher, const Messages& messages);
    Result<const Tables*> own(const core::KeyList& keys) const;
    Code compute(Cipher cipher, const core::KeyList& keys, Message message);
    void execute(HeldBatch& batch);

    HostDeviceOptions options_;
    DeviceInfo info_;
    std::unique_ptr<core::Backend> maths_;
    std::unique_ptr<Queue> default_stream_;
    std::mutex mutex_;
    std::map<const std::uint8_t*, std::size_t> device_memory_, pinned_memory_;
    std::set<const void*> codes_;  // of batches; within device_memory_
    std::list<Use> uses_;          // of operations that are not over
    std::uint64_t device_used_ = 0, pinned_used_ = 0;
    std::set<Queue*> streams_;
    std::set<Mark*> events_;
    std::set<std::string> violations_;
    std::string failed_call_, form_;
    std::atomic<void*> captured_{nullptr};
    std::atomic<bool> throws_{false};
    std::atomic<bool> hung_{false};
    std::atomic<int> calls_{0}, batches_{0}, at_once_{0}, most_at_once_{0}, given_up_{0};
    std::atomic<std::uint64_t> kernels_{0}, runs_{0}, copied_out_{0}, most_memory_{0};
};

// The backend that an engine sees. The device outlives it, so that a test can look at it
// afterwards.
class HostDeviceBackend : public core::Backend {
  public:
    explicit HostDeviceBackend(HostDevice& device)
        : device_(device), profile_{device.name(), "a device made of threads"} {}
    const core::Profile& profile() const override { return profile_; }
    core::Can can(const Cipher& cipher, int key_bits) const override;
    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        return device_.tables(keys);
    }
    Result<> run(const Cipher&, const core::KeyList&, std::span<const Message>,
                 std::span<Code>) override {
        return Error{Code::unsupported, device_.name() + " does not reach host memory"};
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        return device_.begin(cipher, keys, key, start);
    }
    core::Device* device() override { return &device_; }

  private:
    HostDevice& device_;
    const core::Profile profile_;
};

// After the engine and all else is gone: nothing left, nothing wrong.
void expect_clean(HostDevice& device);

}  // namespace dael::test
