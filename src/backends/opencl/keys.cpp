// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/keys.hpp"

#include <algorithm>

#include "backends/opencl/device.hpp"
#include "backends/opencl/kept.hpp"
#include "core/wipe_at_end.hpp"

namespace dael::opencl {
namespace {

std::size_t size_index(const Key& key) {
    return static_cast<std::size_t>(key.rounds() - 10) / 2;
}

RoundKeys round_keys(const core::KeySchedule& schedule, bool inverse) {
    RoundKeys keys;
    std::memcpy(&keys, inverse ? schedule.decrypt.data() : schedule.encrypt.data(), sizeof keys);
    return keys;
}

GcmSchedule gcm_schedule(const Key& key) {
    return {round_keys(key.schedule(), false), static_cast<std::uint32_t>(key.rounds()), {}};
}

}  // namespace

KeyArgument::KeyArgument(const Key& key, bool inverse)
    : data(round_keys(key.schedule(), inverse)),
      tweak(key.is_xts() ? round_keys(key.tweak(), false) : RoundKeys{}),
      rounds(key.rounds()) {}

KeyArgument::~KeyArgument() {
    wipe(&data, sizeof data);
    wipe(&tweak, sizeof tweak);
}

SecretBuffer::~SecretBuffer() {
    if (!buffer_() || size_ == 0) return;
    (void)queue_.enqueueFillBuffer(buffer_, cl_uint{0}, 0, size_);
    (void)queue_.finish();
}

Result<SecretBuffer> SecretBuffer::create(const cl::Context& context, const cl::CommandQueue& queue,
                                          std::size_t size) {
    (void)retry_kept();
    SecretBuffer made;
    cl_int status = CL_SUCCESS;
    made.buffer_ = cl::Buffer(context, CL_MEM_READ_WRITE, size, nullptr, &status);
    DAEL_TRY(checked(status, "clCreateBuffer"));
    made.queue_ = queue;
    made.size_ = size;
    return made;
}

Result<std::unique_ptr<OpenClKeys>> OpenClKeys::create(OpenClDevice& device,
                                                       std::span<const Key> keys) {
    if (keys.empty()) return Error{Code::invalid_argument, "a set of no keys; give one or more"};
    if (keys.size() > 0xffffffffu)
        return Error{Code::limit, "a set takes at most 2^32 - 1 keys; divide it"};
    if (after_fork()) return fork_failure();
    std::unique_ptr<OpenClKeys> made(new OpenClKeys(device));
    made->keys_.reserve(keys.size());
    for (const Key& key : keys) {
        DAEL_LET(copy, key.duplicate());
        made->keys_.push_back(std::move(copy));
        ++made->of_size_[size_index(key)];
    }
    if (!keys.front().is_xts()) DAEL_TRY(made->upload());
    return made;
}

OpenClKeys::~OpenClKeys() {
    const bool over = replaced_.wait();
    if (over && std::ranges::all_of(unfinished_, [](const Ends& ends) { return ends.are_over(); }))
        return;
    try {
        unfinished_.reserve(unfinished_.size() + 1);
        std::vector<SecretBuffer> buffers(2);
        unfinished_.push_back(std::move(replaced_));
        buffers[0] = std::move(schedules_);
        buffers[1] = std::move(powers_);
        keep(std::move(unfinished_), std::move(buffers));
    } catch (...) {
        schedules_.lose();
        powers_.lose();
    }
}

void OpenClKeys::outlive(Ends ends) const noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(unfinished_, [](const Ends& others) { return others.are_over(); });
    try {
        unfinished_.push_back(std::move(ends));
    } catch (...) {  // no room to remember them: nobody will know that they are over
        schedules_.lose();
        powers_.lose();
    }
}

Result<> OpenClKeys::upload() {
    const cl::CommandQueue& setup = device_.order().setup();
    std::vector<GcmSchedule> schedules;
    schedules.reserve(keys_.size());
    const std::size_t bytes = keys_.size() * sizeof(GcmSchedule);
    const core::WipeAtEnd wiper(schedules.data(), bytes);
    for (const Key& key : keys_) schedules.push_back(gcm_schedule(key));
    DAEL_LET(list, SecretBuffer::create(device_.context(), setup, bytes));
    schedules_ = std::move(list);
    DAEL_TRY(
        checked(setup.enqueueWriteBuffer(schedules_.get(), CL_TRUE, 0, bytes, schedules.data()),
                "clEnqueueWriteBuffer"));
    DAEL_LET(powers, SecretBuffer::create(device_.context(), setup,
                                          keys_.size() * kGcmPowers * sizeof(Uint4)));
    powers_ = std::move(powers);
    const auto count = static_cast<std::uint32_t>(keys_.size());
    for (const int rounds : all_rounds()) {
        DAEL_LET(kernel, device_.tag_kernel("gcm_powers", rounds));
        DAEL_TRY(device_.launch(nullptr, *kernel, setup,
                                std::min(count, device_.compute_units() * 8), 1, schedules_.get(),
                                count, powers_.get()));
    }
    return checked(setup.finish(), "clFinish");
}

Result<> OpenClKeys::replace(std::uint32_t index, const Key& key, Stream stream) {
    if (after_fork()) return fork_failure();
    const std::lock_guard lock(mutex_);
    if (index >= keys_.size() || key.is_xts() != keys_.front().is_xts())
        return Error{Code::invalid_argument,
                     "opencl: the set has no such key, or is of another kind (XTS)"};
    DAEL_LET(copy, key.duplicate());
    if (!key.is_xts()) {
        GcmSchedule schedule = gcm_schedule(key);
        const core::WipeAtEnd wiper(schedule);
        DAEL_LET(kernel, device_.tag_kernel("gcm_replace", key.rounds()));
        const cl::CommandQueue queue = device_.order().queue_of(stream);
        DAEL_TRY(replaced_.begin(queue));
        Result<> launched = device_.launch(&replaced_, *kernel, queue, 1, 1, Secret{schedule},
                                           index, schedules_.get(), powers_.get());
        if (!launched && replaced_.any()) whole_ = false;  // it is under way all the same
        DAEL_TRY(std::move(launched));
    }
    --of_size_[size_index(keys_[index])];
    ++of_size_[size_index(key)];
    keys_[index] = std::move(copy);
    return {};
}

KeyArgument OpenClKeys::argument(std::uint32_t index, bool inverse) const {
    const std::lock_guard lock(mutex_);
    return {keys_[index], inverse};
}

int OpenClKeys::rounds(std::uint32_t index) const {
    const std::lock_guard lock(mutex_);
    return keys_[index].rounds();
}

std::vector<int> OpenClKeys::all_rounds() const {
    const std::lock_guard lock(mutex_);
    std::vector<int> rounds;
    for (std::size_t size = 0; size < of_size_.size(); ++size)
        if (of_size_[size] != 0) rounds.push_back(10 + 2 * static_cast<int>(size));
    return rounds;
}

}  // namespace dael::opencl
