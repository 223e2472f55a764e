// SPDX-License-Identifier: Apache-2.0
#include "support/host_device.hpp"

#include <algorithm>
#include <cstring>

#include "core/key_schedule.hpp"
#include "core/registry.hpp"
#include "support/bytes.hpp"

namespace dael::test {

struct HostDevice::Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> work;
    bool busy = false, closing = false;
    std::thread thread;

    void serve() {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return closing || !work.empty(); });
            if (work.empty()) return;
            auto next = std::move(work.front());
            work.pop_front();
            busy = true;
            lock.unlock();
            next();
            next = nullptr;
            lock.lock();
            busy = false;
            changed.notify_all();
        }
    }
};

// An event: the number of times it was recorded, and how many of those the streams have passed.
struct HostDevice::Mark {
    std::mutex mutex;
    std::condition_variable passed;
    std::uint64_t recorded = 0, reached = 0;
    std::chrono::steady_clock::time_point when;

    void wait_for(std::uint64_t which) {
        std::unique_lock lock(mutex);
        passed.wait(lock, [&] { return reached >= which; });
    }
};

struct HostDevice::Prepared final : core::PreparedBatch {
    Prepared(std::atomic<int>& count, std::span<const core::Segment> all)
        : live(count), segments(all.begin(), all.end()) {
        ++live;
    }
    ~Prepared() override { --live; }
    std::atomic<int>& live;
    std::vector<core::Segment> segments;
};

HostDevice::HostDevice(HostDeviceOptions options)
    : options_(options), maths_(*core::open_backend("openssl")) {
    info_.name = "threads";
    info_.architecture = "host";
    info_.memory = options.memory;
    info_.multiprocessors = 1;
}

HostDevice::~HostDevice() = default;

Result<> HostDevice::attempt(const char* call) {
    if (++calls_ != options_.fail_at) return {};
    const std::lock_guard lock(mutex_);
    failed_call_ = call;
    return Error{Code::device, std::string("threads:0: ") + call + " failed, as the test asked"};
}

void HostDevice::violation(std::string what) {
    const std::lock_guard lock(mutex_);
    violations_.insert(std::move(what));
}

std::set<std::string> HostDevice::violations() {
    const std::lock_guard lock(mutex_);
    return violations_;
}

std::string HostDevice::failed_call() {
    const std::lock_guard lock(mutex_);
    return failed_call_;
}

std::size_t HostDevice::live() {
    const std::lock_guard lock(mutex_);
    return device_memory_.size() + pinned_memory_.size() + streams_.size() + events_.size() +
           static_cast<std::size_t>(batches_);
}

namespace {

bool contains(const std::map<const std::uint8_t*, std::size_t>& allocations, const void* memory,
              std::size_t size) {
    const auto* begin = static_cast<const std::uint8_t*>(memory);
    auto next = allocations.upper_bound(begin);
    if (next == allocations.begin()) return false;
    const auto& [start, length] = *std::prev(next);
    return begin + size <= start + length;
}

}  // namespace

void HostDevice::check_device_range(const void* memory, std::size_t size, const char* call) {
    std::unique_lock lock(mutex_);
    const bool inside = contains(device_memory_, memory, size);
    lock.unlock();
    if (!inside) violation(std::string(call) + " outside device memory");
}

void HostDevice::check_pinned_range(const void* memory, std::size_t size, const char* call) {
    std::unique_lock lock(mutex_);
    const bool inside = contains(pinned_memory_, memory, size);
    lock.unlock();
    if (!inside) violation(std::string(call) + " with pageable memory");
}

Result<> HostDevice::outcome() const {
    if (options_.silent_failures) return Error{Code::device, "a kernel of the batch failed"};
    return {};
}

Result<> HostDevice::use_shape(const std::string& shape) {
    if (options_.refused.contains(shape))
        return Error{Code::device, "no kernels in shape " + shape};
    return {};
}

Result<void*> HostDevice::allocate(std::size_t size) {
    DAEL_TRY(attempt("allocate"));
    const std::lock_guard lock(mutex_);
    if (device_used_ + size > options_.memory)
        return Error{Code::out_of_memory, "threads:0: allocate: no memory"};
    device_used_ += size;
    auto* memory = new std::uint8_t[size];
    std::memset(memory, 0xdd, size);
    device_memory_[memory] = size;
    return static_cast<void*>(memory);
}

void HostDevice::release(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = device_memory_.find(static_cast<std::uint8_t*>(memory));
    if (found == device_memory_.end()) {
        violations_.insert("release of unknown device memory");
        return;
    }
    const bool wiped = std::all_of(found->first, found->first + found->second,
                                   [](std::uint8_t byte) { return byte == 0 || byte == 0xdd; });
    if (!wiped && failed_call_.empty()) violations_.insert("device memory released unwiped");
    device_used_ -= found->second;
    delete[] found->first;
    device_memory_.erase(found);
}

Result<void*> HostDevice::allocate_pinned(std::size_t size) {
    DAEL_TRY(attempt("allocate_pinned"));
    const std::lock_guard lock(mutex_);
    if (pinned_used_ + size > options_.pinned)
        return Error{Code::out_of_memory, "threads:0: allocate_pinned: no memory"};
    pinned_used_ += size;
    auto* memory = new std::uint8_t[size]();
    pinned_memory_[memory] = size;
    return static_cast<void*>(memory);
}

void HostDevice::release_pinned(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = pinned_memory_.find(static_cast<std::uint8_t*>(memory));
    if (found == pinned_memory_.end()) {
        violations_.insert("release of unknown page-locked memory");
        return;
    }
    if (!std::all_of(found->first, found->first + found->second,
                     [](std::uint8_t byte) { return byte == 0; }))
        violations_.insert("page-locked memory released unwiped");
    pinned_used_ -= found->second;
    delete[] found->first;
    pinned_memory_.erase(found);
}

Result<std::uint64_t> HostDevice::free_memory() {
    DAEL_TRY(attempt("free_memory"));
    const std::lock_guard lock(mutex_);
    return options_.memory - device_used_;
}

bool HostDevice::is_pinned(const void* host_memory) {
    const std::lock_guard lock(mutex_);
    return contains(pinned_memory_, host_memory, 1);
}

bool HostDevice::owns(const void* device_memory) {
    const std::lock_guard lock(mutex_);
    return contains(device_memory_, device_memory, 1);
}

Result<Stream> HostDevice::create_stream() {
    DAEL_TRY(attempt("create_stream"));
    auto* queue = new Queue;
    queue->thread = std::thread([queue] { queue->serve(); });
    const std::lock_guard lock(mutex_);
    streams_.insert(queue);
    return Stream{queue};
}

void HostDevice::destroy_stream(Stream stream) noexcept {
    auto* queue = static_cast<Queue*>(stream.handle);
    {
        const std::lock_guard lock(queue->mutex);
        queue->closing = true;
    }
    queue->changed.notify_all();
    queue->thread.join();
    {
        const std::lock_guard lock(mutex_);
        streams_.erase(queue);
    }
    delete queue;
}

void HostDevice::enqueue(Stream stream, std::function<void()> work) {
    auto* queue = static_cast<Queue*>(stream.handle);
    {
        const std::lock_guard lock(queue->mutex);
        queue->work.push_back([this, work = std::move(work)] {
            const int now = ++at_once_;
            for (int most = most_at_once_;
                 most < now && !most_at_once_.compare_exchange_weak(most, now);) {
            }
            if (options_.delay.count() != 0) std::this_thread::sleep_for(options_.delay);
            work();
            --at_once_;
        });
    }
    queue->changed.notify_all();
}

Result<> HostDevice::wait(Stream stream) {
    auto* queue = static_cast<Queue*>(stream.handle);
    std::unique_lock lock(queue->mutex);
    queue->changed.wait(lock, [&] { return queue->work.empty() && !queue->busy; });
    return attempt("wait for stream");  // a device that fails has stopped, too
}

Result<core::Event> HostDevice::create_event() {
    DAEL_TRY(attempt("create_event"));
    auto* mark = new Mark;
    const std::lock_guard lock(mutex_);
    events_.insert(mark);
    return core::Event{mark};
}

void HostDevice::destroy_event(core::Event event) noexcept {
    auto* mark = static_cast<Mark*>(event.handle);
    const std::lock_guard lock(mutex_);
    events_.erase(mark);
    delete mark;
}

Result<> HostDevice::record(core::Event event, Stream stream) {
    DAEL_TRY(attempt("record"));
    auto* mark = static_cast<Mark*>(event.handle);
    std::uint64_t which = 0;
    {
        const std::lock_guard lock(mark->mutex);
        which = ++mark->recorded;
    }
    enqueue(stream, [mark, which] {
        const std::lock_guard lock(mark->mutex);
        mark->reached = which;
        mark->when = std::chrono::steady_clock::now();
        mark->passed.notify_all();
    });
    return {};
}

Result<> HostDevice::wait(core::Event event) {
    auto* mark = static_cast<Mark*>(event.handle);
    std::uint64_t which = 0;
    {
        const std::lock_guard lock(mark->mutex);
        which = mark->recorded;
    }
    mark->wait_for(which);
    return attempt("wait for event");
}

Result<> HostDevice::wait(Stream stream, core::Event event) {
    DAEL_TRY(attempt("stream waits for event"));
    auto* mark = static_cast<Mark*>(event.handle);
    std::uint64_t which = 0;
    {
        const std::lock_guard lock(mark->mutex);
        which = mark->recorded;
    }
    enqueue(stream, [mark, which] { mark->wait_for(which); });
    return {};
}

Result<float> HostDevice::elapsed_ms(core::Event from, core::Event to) {
    DAEL_TRY(attempt("elapsed_ms"));
    const auto when = [](core::Event event) {
        auto* mark = static_cast<Mark*>(event.handle);
        const std::lock_guard lock(mark->mutex);
        return mark->when;
    };
    return std::chrono::duration<float, std::milli>(when(to) - when(from)).count();
}

Result<> HostDevice::copy_in(void* device_memory, const void* host_memory, std::size_t size,
                             Stream stream) {
    DAEL_TRY(attempt("copy_in"));
    check_device_range(device_memory, size, "copy_in");
    check_pinned_range(host_memory, size, "copy_in");
    enqueue(stream, [=] { std::memcpy(device_memory, host_memory, size); });
    return {};
}

Result<> HostDevice::copy_out(void* host_memory, const void* device_memory, std::size_t size,
                              Stream stream) {
    DAEL_TRY(attempt("copy_out"));
    check_device_range(device_memory, size, "copy_out");
    check_pinned_range(host_memory, size, "copy_out");
    copied_out_ += size;
    enqueue(stream, [=] { std::memcpy(host_memory, device_memory, size); });
    return {};
}

Result<> HostDevice::copy_within(void* to, const void* from, std::size_t size, Stream stream) {
    DAEL_TRY(attempt("copy_within"));
    check_device_range(to, size, "copy_within");
    check_device_range(from, size, "copy_within");
    enqueue(stream, [=] { std::memmove(to, from, size); });
    return {};
}

Result<> HostDevice::fill(void* device_memory, std::uint8_t value, std::size_t size,
                          Stream stream) {
    DAEL_TRY(attempt("fill"));
    check_device_range(device_memory, size, "fill");
    enqueue(stream, [=] { std::memset(device_memory, value, size); });
    return {};
}

Result<> HostDevice::check_run(const core::Operation& operation, bool batch) {
    DAEL_TRY(attempt(batch ? "run batch" : "run"));
    if (!batch && !parallel_within_message(operation.mode, operation.direction))
        return Error{Code::unsupported, "threads:0: a sequential mode needs a batch"};
    return {};
}

// Both take what they need of the key at the call, as a kernel's parameters do: the caller may drop
// the key as soon as the launch returns.
Result<> HostDevice::run(const core::Operation& operation, const core::Segment& segment,
                         Stream stream) {
    DAEL_TRY(check_run(operation, false));
    check_device_range(segment.in, segment.size, "run");
    check_device_range(segment.out, segment.size, "run");
    auto key = std::make_shared<Key>(*operation.key->duplicate());
    enqueue(stream, [this, key, operation, segment] {
        ++kernels_;
        if (!maths_->run({operation.mode, operation.direction, key.get()}, std::span(&segment, 1)))
            violation("the kernel failed");
    });
    return {};
}

Result<> HostDevice::xts(const core::XtsOperation& operation, const core::Segment& segment,
                         Stream stream) {
    DAEL_TRY(attempt("xts"));
    check_device_range(segment.in, segment.size, "xts");
    check_device_range(segment.out, segment.size, "xts");
    Bytes raw;
    for (const Key* key : {&operation.key->data(), &operation.key->tweak()})
        raw.insert(raw.end(), key->schedule().key().begin(), key->schedule().key().end());
    auto key = std::make_shared<XtsKey>(*XtsKey::import(raw));
    enqueue(stream, [this, key, operation, segment] {
        ++kernels_;
        if (!maths_->xts({operation.direction, key.get(), operation.sector_size}, segment))
            violation("the kernel failed");
    });
    return {};
}

Result<std::unique_ptr<core::PreparedBatch>> HostDevice::prepare(
    Mode, Direction, std::span<const core::Segment> segments) {
    DAEL_TRY(attempt("prepare"));
    for (const auto& segment : segments) {
        check_device_range(segment.in, segment.size, "prepare");
        check_device_range(segment.out, segment.size, "prepare");
    }
    return std::unique_ptr<core::PreparedBatch>(std::make_unique<Prepared>(batches_, segments));
}

Result<> HostDevice::run(const core::Operation& operation, const core::PreparedBatch& batch,
                         Stream stream) {
    DAEL_TRY(check_run(operation, true));
    auto key = std::make_shared<Key>(*operation.key->duplicate());
    const auto* prepared = static_cast<const Prepared*>(&batch);
    enqueue(
        stream, [this, key, operation, prepared] {  // use after free is AddressSanitizer's to find
            ++kernels_;
            if (!maths_->run({operation.mode, operation.direction, key.get()}, prepared->segments))
                violation("the kernel failed");
        });
    return {};
}

}  // namespace dael::test
