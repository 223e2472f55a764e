// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/context.hpp"

#include "backends/opencl/room.hpp"

namespace dael::opencl {
namespace {

constexpr std::size_t kPage = 4096;

// The contexts in use, by device or by their own handle.
class Known {
  public:
    template <class Make>
    Result<std::shared_ptr<Context>> find(const void* name, Make make) {
        const std::lock_guard lock(mutex_);
        std::erase_if(contexts_, [](const auto& known) { return known.second.expired(); });
        if (const auto known = contexts_.find(name); known != contexts_.end())
            if (auto alive = known->second.lock()) return alive;
        Result<cl::Context> made = make();
        if (!made) return std::move(made).error();
        auto context = std::make_shared<Context>(std::move(*made));
        contexts_[name] = contexts_[(*context)()] = context;
        return context;
    }

  private:
    std::mutex mutex_;
    std::map<const void*, std::weak_ptr<Context>> contexts_;
};

// Never destroyed: static destructors may still open engines.
Known& known() {
    static Known& contexts = *new Known;
    return contexts;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::of(const cl::Device& device) {
    return known().find(device(), [&]() -> Result<cl::Context> {
        cl_int status = CL_SUCCESS;
        const cl::Context context(device, nullptr, nullptr, nullptr, &status);
        DAEL_TRY(checked(status, "clCreateContext"));
        return context;
    });
}

std::shared_ptr<Context> Context::of(const cl::Context& context) {
    return *known().find(context(), [&]() -> Result<cl::Context> { return context; });
}

Result<void*> Context::allocate_pinned(std::size_t size, const cl::CommandQueue& queue) {
    cl_int status = CL_SUCCESS;
    auto room = room_in(pinned_);
    const std::size_t whole = size + kPage;
    const cl::Buffer buffer(handle_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, whole, nullptr,
                            &status);
    DAEL_TRY(checked(status, "clCreateBuffer"));
    void* const mapped = queue.enqueueMapBuffer(buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                whole, nullptr, nullptr, &status);
    DAEL_TRY(checked(status, "clEnqueueMapBuffer"));
    const auto begin = (reinterpret_cast<std::uintptr_t>(mapped) + kPage - 1) / kPage * kPage;
    room.key() = begin;
    room.mapped() = {size, buffer, mapped};
    const std::lock_guard lock(mutex_);
    put(pinned_, std::move(room));
    return reinterpret_cast<void*>(begin);
}

void Context::release_pinned(void* memory, const cl::CommandQueue& queue) noexcept {
    if (after_fork()) return;
    const auto released = [&] {
        const std::lock_guard lock(mutex_);
        return pinned_.extract(reinterpret_cast<std::uintptr_t>(memory));
    }();
    if (released.empty()) return;
    (void)queue.enqueueUnmapMemObject(released.mapped().buffer, released.mapped().mapped);
    (void)queue.finish();  // which may take its time, while others ask is_pinned()
}

bool Context::is_pinned(const void* host_memory, std::size_t size) const {
    if (after_fork()) return false;
    const auto address = reinterpret_cast<std::uintptr_t>(host_memory);
    const std::lock_guard lock(mutex_);
    auto after = pinned_.upper_bound(address);
    if (after == pinned_.begin()) return false;
    --after;
    const std::size_t before = address - after->first;
    return before < after->second.size && size <= after->second.size - before;
}

}  // namespace dael::opencl
