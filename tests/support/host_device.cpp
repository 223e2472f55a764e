// SPDX-License-Identifier: Apache-2.0
#include "support/host_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/registry.hpp"
#include "support/bytes.hpp"
#include "support/host_device_parts.hpp"
#include "support/whole_backend.hpp"

namespace dael::test {
namespace {

// What drivers map on a device at a time: no two devices' memory, nor the host's, is closer.
constexpr std::size_t kStretch = std::size_t{2} << 20;

constexpr std::uint8_t kUnwritten = 0xdd;

// All zeros, or never written to: page by page, since sanitizers look at each byte that is read.
bool wiped(std::span<const std::uint8_t> memory) {
    for (; !memory.empty(); memory = memory.subspan(std::min<std::size_t>(memory.size(), 4096))) {
        const auto page = memory.first(std::min<std::size_t>(memory.size(), 4096));
        if (all_are(page, 0) || all_are(page, kUnwritten)) continue;
        if (!std::ranges::all_of(page,
                                 [](std::uint8_t byte) { return byte == 0 || byte == kUnwritten; }))
            return false;
    }
    return true;
}

}  // namespace

HostDevice::HostDevice(HostDeviceOptions options)
    : options_(std::move(options)),
      maths_(std::make_unique<WholeBackend>()),
      default_stream_(std::make_unique<Queue>()) {
    info_.name = "threads";
    info_.architecture = "host";
    info_.memory = options_.memory;
    info_.multiprocessors = 1;
    info_.reads_lists = options_.reads_lists;
    if (!options_.forms.empty()) form_ = options_.forms.front();
}

// What a device that could not be waited for kept from its user.
HostDevice::~HostDevice() {
    for (Queue* queue : streams_) delete queue;
    default_stream_.reset();
    for (Mark* mark : events_) delete mark;
    for (const auto& [memory, size] : device_memory_) std::free(const_cast<std::uint8_t*>(memory));
    for (const auto& [memory, size] : pinned_memory_) delete[] memory;
}

void HostDevice::fail(int nth, std::string call, int in_a_row) {
    const std::lock_guard lock(mutex_);
    options_.fail_at = nth == 0 ? 0 : calls_ + nth;
    options_.fail_call = std::move(call);
    options_.fail_for = in_a_row;
    failed_call_.clear();
}

Result<> HostDevice::attempt(const char* call) {
    if (options_.at) options_.at(call);
    const std::lock_guard lock(mutex_);
    const std::string_view which = options_.fail_call;
    const bool counts = which.ends_with('*')
                            ? std::string_view(call).starts_with(which.substr(0, which.size() - 1))
                            : which.empty() || which == call;
    if (!counts) return {};
    const int nth = ++calls_ - options_.fail_at;
    if (options_.fail_at == 0 || nth < 0 || nth >= options_.fail_for) return {};
    failed_call_ = call;
    if (throws_) throw std::bad_alloc();
    return Error{Code::device, name() + ": " + call + " failed, as the test asked"};
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

void HostDevice::check_device_range(const void* memory, std::size_t size, const std::string& what) {
    if (size == 0) return;
    std::unique_lock lock(mutex_);
    const bool inside = contains(device_memory_, memory, size);
    lock.unlock();
    if (!inside) violation(what + " outside device memory");
}

void HostDevice::check_pinned_range(const void* memory, std::size_t size, const std::string& what) {
    std::unique_lock lock(mutex_);
    const bool inside = contains(pinned_memory_, memory, size);
    lock.unlock();
    if (!inside) violation(what + " with pageable memory");
}

Result<> HostDevice::use(const std::string& form) {
    if (options_.refused.contains(form)) return Error{Code::device, "no kernels in form " + form};
    form_ = form;
    return {};
}

Result<void*> HostDevice::allocate(std::size_t size) {
    DAEL_TRY(attempt("allocate"));
    const std::lock_guard lock(mutex_);
    if (device_used_ + size > options_.memory)
        return Error{Code::out_of_memory, name() + ": allocate: no memory"};
    auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(
        kStretch, std::max<std::size_t>(1, (size + kStretch - 1) / kStretch) * kStretch));
    std::memset(memory, kUnwritten, size);
    try {
        device_memory_[memory] = size;
    } catch (...) {
        std::free(memory);
        throw;
    }
    device_used_ += size;
    most_memory_ = std::max(most_memory_.load(), device_used_);
    return static_cast<void*>(memory);
}

void HostDevice::release(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = device_memory_.find(static_cast<std::uint8_t*>(memory));
    if (found == device_memory_.end()) {
        violations_.insert("release of unknown device memory");
        return;
    }
    if (in_use(memory, found->second)) {
        violations_.insert("device memory released while a stream uses it");
        return;
    }
    if (failed_call_.empty() && !wiped({found->first, found->second}))
        violations_.insert("device memory released unwiped");
    device_used_ -= found->second;
    std::free(const_cast<std::uint8_t*>(found->first));
    device_memory_.erase(found);
}

Result<void*> HostDevice::allocate_pinned(std::size_t size) {
    DAEL_TRY(attempt("allocate_pinned"));
    const std::lock_guard lock(mutex_);
    if (pinned_used_ + size > options_.pinned)
        return Error{Code::out_of_memory, name() + ": allocate_pinned: no memory"};
    auto memory = std::make_unique<std::uint8_t[]>(size);
    pinned_memory_[memory.get()] = size;
    pinned_used_ += size;
    return static_cast<void*>(memory.release());
}

void HostDevice::release_pinned(void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = pinned_memory_.find(static_cast<std::uint8_t*>(memory));
    if (found == pinned_memory_.end()) {
        violations_.insert("release of unknown page-locked memory");
        return;
    }
    if (in_use(memory, found->second)) {
        violations_.insert("page-locked memory released while a stream uses it");
        return;
    }
    if (!all_are({found->first, found->second}, 0))
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

bool HostDevice::is_pinned(const void* host_memory, std::size_t size) {
    const std::lock_guard lock(mutex_);
    return contains(pinned_memory_, host_memory, size);
}

bool HostDevice::is_codes(const void* device_memory) {
    const std::lock_guard lock(mutex_);
    return codes_.contains(device_memory);
}

bool HostDevice::owns(const void* device_memory) {
    const std::lock_guard lock(mutex_);
    return contains(device_memory_, device_memory, 1);
}

Result<Stream> HostDevice::create_stream() {
    DAEL_TRY(attempt("create_stream"));
    auto queue = std::make_unique<Queue>();
    const std::lock_guard lock(mutex_);
    streams_.insert(queue.get());
    return Stream{queue.release()};
}

void HostDevice::destroy_stream(Stream stream) noexcept {
    auto* queue = static_cast<Queue*>(stream.handle);
    {
        const std::lock_guard lock(mutex_);
        streams_.erase(queue);
    }
    delete queue;
}

bool HostDevice::in_use(const void* memory, std::size_t size) const {
    const auto* const begin = static_cast<const std::uint8_t*>(memory);
    return std::ranges::any_of(uses_, [&](const Use& use) {
        const auto* const at = static_cast<const std::uint8_t*>(use.memory);
        return at < begin + size && begin < at + use.size;
    });
}

void HostDevice::enqueue(Stream stream, Uses uses, std::function<void()> work,
                         std::function<void()> then) {
    Queue& queue = queue_of(stream);
    std::list<Use> its;
    std::vector<std::list<Use>::iterator> places;
    {
        const std::lock_guard lock(mutex_);
        for (Use& use : uses) {
            if (!use.memory || use.size == 0) continue;
            use.queue = &queue;
            const auto* const begin = static_cast<const std::uint8_t*>(use.memory);
            if (use.written && contains(pinned_memory_, begin, use.size))
                for (const Use& other : uses_) {
                    const auto* const at = static_cast<const std::uint8_t*>(other.memory);
                    if (other.written && other.queue != &queue && at < begin + use.size &&
                        begin < at + other.size)
                        violations_.insert("two streams write to the same page-locked memory");
                }
            places.push_back(its.insert(its.end(), use));
        }
    }
    {
        const std::lock_guard lock(queue.mutex);
        queue.work.push_back(
            [this, places = std::move(places), work = std::move(work), then = std::move(then)] {
                const int now = ++at_once_;
                for (int most = most_at_once_;
                     most < now && !most_at_once_.compare_exchange_weak(most, now);) {
                }
                if (options_.delay.count() != 0) std::this_thread::sleep_for(options_.delay);
                hung_.wait(true);
                work();
                {
                    const std::lock_guard its_lock(mutex_);
                    for (const auto place : places) uses_.erase(place);
                }
                if (then) then();
                --at_once_;
            });
        const std::lock_guard its_lock(mutex_);  // whoever takes the work up waits for the queue's
        uses_.splice(uses_.end(), std::move(its));
    }
    queue.changed.notify_all();
}

HostDevice::Queue& HostDevice::queue_of(Stream stream) {
    if (stream.handle) return *static_cast<Queue*>(stream.handle);
    // A child that is the first to use the device has a default stream of its own.
    if (default_stream_->process != core::this_process()) {
        (void)default_stream_.release();
        default_stream_ = std::make_unique<Queue>();
    }
    return *default_stream_;
}

void HostDevice::drain(Queue& queue) {
    std::unique_lock lock(queue.mutex);
    wait_until(queue.changed, lock, [&] { return queue.work.empty() && !queue.busy; });
}

Result<> HostDevice::wait(Stream stream) {
    return waited("wait for stream", [&] { drain(queue_of(stream)); });
}

Result<Event> HostDevice::create_event() {
    DAEL_TRY(attempt("create_event"));
    auto mark = std::make_unique<Mark>();
    const std::lock_guard lock(mutex_);
    events_.insert(mark.get());
    return Event{mark.release()};
}

void HostDevice::destroy_event(Event event) noexcept {
    auto* mark = static_cast<Mark*>(event.handle);
    {
        const std::lock_guard lock(mark->mutex);
        if (!mark->ahead.empty()) return violation("an event destroyed that is still to come");
    }
    const std::lock_guard lock(mutex_);
    events_.erase(mark);
    delete mark;
}

Result<> HostDevice::record(Event event, Stream stream) {
    DAEL_TRY(attempt("record"));
    auto* mark = static_cast<Mark*>(event.handle);
    std::uint64_t which = 0;
    {
        const std::lock_guard lock(mark->mutex);
        which = ++mark->recorded;
        mark->ahead.insert(which);
    }
    try {
        enqueue(stream, {}, [mark, which] {
            const std::lock_guard lock(mark->mutex);
            mark->ahead.erase(which);
            mark->when = std::chrono::steady_clock::now();
            mark->passed.notify_all();
        });
    } catch (...) {  // no memory
        const std::lock_guard lock(mark->mutex);
        mark->ahead.erase(which);
        throw;
    }
    return {};
}

Result<> HostDevice::wait(Event event) {
    auto* mark = static_cast<Mark*>(event.handle);
    std::uint64_t which = 0;
    {
        const std::lock_guard lock(mark->mutex);
        which = mark->recorded;
    }
    return waited("wait for event", [&] { mark->wait_for(which); });
}

Result<> HostDevice::wait(Stream stream, Event event) {
    DAEL_TRY(attempt("stream waits for event"));
    auto* mark = static_cast<Mark*>(event.handle);
    std::uint64_t which = 0;
    {
        const std::lock_guard lock(mark->mutex);
        which = mark->recorded;
    }
    enqueue(stream, {}, [mark, which] { mark->wait_for(which); });
    return {};
}

Result<bool> HostDevice::is_done(Event event) {
    DAEL_TRY(attempt("is_done"));
    auto* mark = static_cast<Mark*>(event.handle);
    const std::lock_guard lock(mark->mutex);
    return !mark->ahead.contains(mark->recorded);
}

Result<float> HostDevice::elapsed_ms(Event from, Event to) {
    DAEL_TRY(attempt("elapsed_ms"));
    const auto when = [](Event event) {
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
    enqueue(stream, {{device_memory, size, true}, {host_memory, size}}, [=] {
        if (size != 0)
            std::memcpy(device_memory, host_memory, size);  // of nothing both may be null
    });
    return {};
}

Result<> HostDevice::copy_out(void* host_memory, const void* device_memory, std::size_t size,
                              Stream stream) {
    DAEL_TRY(attempt("copy_out"));
    check_device_range(device_memory, size, "copy_out");
    const bool waits = !is_pinned(host_memory, size) && is_codes(device_memory);
    if (!waits) check_pinned_range(host_memory, size, "copy_out");
    copied_out_ += size;
    enqueue(stream, {{host_memory, size, true}, {device_memory, size}}, [=] {
        if (size != 0)
            std::memcpy(host_memory, device_memory, size);  // of nothing both may be null
    });
    if (waits) drain(queue_of(stream));
    return {};
}

Result<> HostDevice::copy_within(void* to, const void* from, std::size_t size, Stream stream) {
    DAEL_TRY(attempt("copy_within"));
    check_device_range(to, size, "copy_within");
    check_device_range(from, size, "copy_within");
    enqueue(stream, {{to, size, true}, {from, size}}, [=] { std::memmove(to, from, size); });
    return {};
}

Result<> HostDevice::fill(void* device_memory, std::uint8_t value, std::size_t size,
                          Stream stream) {
    DAEL_TRY(attempt("fill"));
    check_device_range(device_memory, size, "fill");
    enqueue(stream, {{device_memory, size, true}},
            [=] { std::memset(device_memory, value, size); });
    return {};
}

void expect_clean(HostDevice& device) {
    EXPECT_EQ(device.live(), 0u) << device.failed_call();
    for (const auto& violation : device.violations())
        ADD_FAILURE() << device.name() << ": " << violation << ", " << device.failed_call();
}

}  // namespace dael::test
