// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/context.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <daelstrom/key.hpp>

#include "backends/cuda/error.hpp"

namespace dael::cuda {
namespace {

// The driver's calls under the names that the header's versions of them have (cuCtxPushCurrent_v2).
#define DAEL_NAME(function) #function
#define DAEL_DRIVER_CALL(member, function)                              \
    decltype(&function) member = reinterpret_cast<decltype(&function)>( \
        library ? dlsym(library, DAEL_NAME(function)) : nullptr)

struct Driver {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    DAEL_DRIVER_CALL(init, cuInit);
    DAEL_DRIVER_CALL(count, cuDeviceGetCount);
    DAEL_DRIVER_CALL(current, cuCtxGetCurrent);
    DAEL_DRIVER_CALL(current_device, cuCtxGetDevice);
    DAEL_DRIVER_CALL(push, cuCtxPushCurrent);
    DAEL_DRIVER_CALL(pop, cuCtxPopCurrent);
    DAEL_DRIVER_CALL(retain_primary, cuDevicePrimaryCtxRetain);
    DAEL_DRIVER_CALL(primary_state, cuDevicePrimaryCtxGetState);
    DAEL_DRIVER_CALL(pointer_attributes, cuPointerGetAttributes);
    DAEL_DRIVER_CALL(error_name, cuGetErrorName);
    DAEL_DRIVER_CALL(error_text, cuGetErrorString);

    bool complete() const {
        return init && count && current && current_device && push && pop && retain_primary &&
               primary_state && pointer_attributes && error_name && error_text &&
               init(0) == CUDA_SUCCESS;
    }
};

// Null where there is no driver, or none that answers: asked again then, since what it lacked may
// come. Of two threads that ask at once one has asked for nothing.
const Driver* driver() noexcept {
    constinit static std::atomic<const Driver*> known{nullptr};
    if (const Driver* const there = known.load(std::memory_order_acquire)) [[likely]]
        return there;
    std::unique_ptr<const Driver> mine(new (std::nothrow) Driver);
    if (!mine || !mine->complete()) return nullptr;
    const Driver* first = nullptr;
    return known.compare_exchange_strong(first, mine.get()) ? mine.release() : first;
}

// What this process has of a GPU: kept until it ends, as static destructors may still need it.
struct Gpu {
    std::atomic<CUcontext> context = nullptr;
    std::mutex mutex;                  // guards the rest
    std::vector<cudaStream_t> idle;    // set-up streams that nobody uses now
    std::mutex staging_mutex;          // held by its user
    unsigned char* staging = nullptr;  // page-locked
};
struct Gpus {
    int count;
    std::unique_ptr<Gpu[]> of;
};

int count_gpus() noexcept {
    int count = 0;
    return driver() && driver()->count(&count) == CUDA_SUCCESS ? count : 0;
}

// Null: there is no such GPU, or no memory for what there is of it.
Gpu* gpu(int device) noexcept {
    constinit static std::atomic<const Gpus*> known{nullptr};
    const Gpus* all = known.load(std::memory_order_acquire);
    if (!all) [[unlikely]] {
        const int count = count_gpus();
        std::unique_ptr<Gpu[]> each(new (std::nothrow) Gpu[static_cast<std::size_t>(count)]);
        if (count == 0 || !each) return nullptr;
        std::unique_ptr<const Gpus> mine(new (std::nothrow) Gpus{count, std::move(each)});
        if (!mine) return nullptr;
        if (known.compare_exchange_strong(all, mine.get())) all = mine.release();
    }
    return device >= 0 && device < all->count ? &all->of[static_cast<std::size_t>(device)]
                                              : nullptr;
}

CUresult primary_context(int device, CUcontext& context) noexcept {
    Gpu* const its = gpu(device);
    if (!its)
        return device >= 0 && device < count_gpus() ? CUDA_ERROR_OUT_OF_MEMORY
                                                    : CUDA_ERROR_INVALID_DEVICE;
    context = its->context.load(std::memory_order_acquire);
    if (context) return CUDA_SUCCESS;
    const std::lock_guard lock(its->mutex);
    context = its->context.load(std::memory_order_relaxed);
    if (context) return CUDA_SUCCESS;
    const CUresult status = driver()->retain_primary(&context, device);
    if (status == CUDA_SUCCESS) its->context.store(context, std::memory_order_release);
    return status;
}

Error driver_failure(CUresult status, const char* call) {
    const Code code = status == CUDA_ERROR_OUT_OF_MEMORY ? Code::out_of_memory : Code::device;
    const char *text = nullptr, *name = nullptr;
    if (driver()) {
        (void)driver()->error_text(status, &text);
        (void)driver()->error_name(status, &name);
    }
    return {code, std::string("cuda: ") + call + ": " + (text ? text : "no driver") + " (" +
                      (name ? name : "libcuda.so.1") + ")"};
}

}  // namespace

bool has_context(int device) noexcept {
    unsigned flags = 0;
    int active = 0;
    return driver() && driver()->primary_state(device, &flags, &active) == CUDA_SUCCESS && active;
}

int device_in_use() noexcept {
    if (!driver()) return -1;
    CUcontext current = nullptr;
    CUdevice device = -1;
    if (driver()->current(&current) == CUDA_SUCCESS && current &&
        driver()->current_device(&device) == CUDA_SUCCESS)
        return device;
    for (device = 0; gpu(device); ++device)
        if (has_context(device)) return device;
    return -1;
}

Result<Whereabouts> find_memory(const void* address) {
    Whereabouts found;
    if (!driver()) return found;
    const auto at = reinterpret_cast<CUdeviceptr>(address);
    CUmemorytype type{};
    unsigned managed = 0;
    int device = -1;
    CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&type, &managed, &device};
    // Of an address that it does not know the driver answers zeros.
    const CUresult status = driver()->pointer_attributes(3, asked, answers, at);
    if (status == CUDA_ERROR_INVALID_VALUE) return found;
    if (status != CUDA_SUCCESS) return driver_failure(status, "cuPointerGetAttributes");
    found.pinned = type == CU_MEMORYTYPE_HOST && !managed;
    if (type == CU_MEMORYTYPE_DEVICE || managed) found.device = device;
    CUdeviceptr start = 0;
    std::size_t size = 0;
    CUpointer_attribute range[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* ends[] = {&start, &size};
    if (found.pinned && driver()->pointer_attributes(2, range, ends, at) == CUDA_SUCCESS &&
        size != 0)
        found.end = reinterpret_cast<const unsigned char*>(start + size);
    return found;
}

CurrentDevice::CurrentDevice(int device) noexcept {
    CUcontext context = nullptr, before = nullptr;
    CUresult status = primary_context(device, context);
    call_ = "cuDevicePrimaryCtxRetain";
    if (status == CUDA_SUCCESS) {
        call_ = "cuCtxGetCurrent";
        status = driver()->current(&before);
    }
    if (status == CUDA_SUCCESS && before != context) {
        call_ = "cuCtxPushCurrent";
        status = driver()->push(context);
        pushed_ = status == CUDA_SUCCESS;
    }
    status_ = status;
}

CurrentDevice::~CurrentDevice() {
    CUcontext popped = nullptr;
    if (pushed_) (void)driver()->pop(&popped);
}

Result<> CurrentDevice::result() const {
    if (status_ != CUDA_SUCCESS) return driver_failure(static_cast<CUresult>(status_), call_);
    return {};
}

SetUp::SetUp(int device) noexcept : device_(device), current_(device) {
    Gpu* const its = gpu(device);
    if (!its || !current_.works()) return;
    {
        const std::lock_guard lock(its->mutex);
        if (!its->idle.empty()) {
            stream_ = its->idle.back();
            its->idle.pop_back();
            return;
        }
    }
    status_ = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
}

SetUp::~SetUp() {
    if (!stream_) return;
    Gpu* const its = gpu(device_);
    const std::lock_guard lock(its->mutex);
    try {
        its->idle.push_back(stream_);
    } catch (...) {
        forget_failure(cudaStreamDestroy(stream_));
    }
}

Result<> SetUp::result() const {
    DAEL_TRY(current_.result());
    return checked(status_, "cudaStreamCreateWithFlags");
}

Result<> SetUp::upload(void* to, const void* from, std::size_t size) const {
    if (size == 0) return {};
    DAEL_TRY(checked(cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, stream_),
                     "cudaMemcpyAsync"));
    return wait();
}

Result<> SetUp::wait() const {
    return checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

Staging::Staging(int device) noexcept : device_(device) {
    Gpu* const its = gpu(device);
    its->staging_mutex.lock();
    if (its->staging) return;
    void* memory = nullptr;
    status_ = cudaHostAlloc(&memory, kSize, cudaHostAllocPortable);
    its->staging = static_cast<unsigned char*>(memory);
}

Staging::~Staging() {
    Gpu* const its = gpu(device_);
    if (its->staging) wipe(its->staging, kSize);
    its->staging_mutex.unlock();
}

Result<> Staging::result() const {
    return checked(status_, "cudaHostAlloc");
}

unsigned char* Staging::data() const {
    return gpu(device_)->staging;
}

}  // namespace dael::cuda
