// SPDX-License-Identifier: Apache-2.0
// Opening a device, and launching kernels on it; which batch takes what.
#include "backends/cuda/device.hpp"

#include <algorithm>

#include "backends/cuda/aegis/batch.hpp"
#include "backends/cuda/derived/batch.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/gcm/batch.hpp"
#include "backends/cuda/keystream/kernel.hpp"
#include "backends/cuda/modes/modes.hpp"
#include "modes/counter.hpp"

namespace dael::cuda {
namespace {

// "driver API 13.0, runtime 13.0"
std::string driver_versions() {
    int driver = 0, runtime = 0;
    forget_failure(cudaDriverGetVersion(&driver));
    forget_failure(cudaRuntimeGetVersion(&runtime));
    const auto text = [](int v) {
        return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
    };
    return "driver API " + text(driver) + ", runtime " + text(runtime);
}

// Measured on an H200 by PCIe 5 (core::Device::reach).
constexpr std::size_t kReach = std::size_t{8} << 20;

// Whether messages of the host's are under different keys.
bool many_keys(const Messages& messages) {
    const std::span<const Message> list(messages.list, messages.count);
    return std::ranges::any_of(list, [&](const Message& m) { return m.key != list.front().key; });
}

// What kernels read beside a list: on the host it would end every stream of the process.
Result<> check_places(CudaMemory& memory, const DeviceInfo& info, const Messages& messages) {
    struct Place {
        const char* name;
        const void* at;
        std::size_t alignment;
    };
    for (const auto& [name, at, alignment] :
         {Place{"list of messages", messages.list, alignof(Message)},
          {"number", messages.number, 4},
          {"nonces", messages.nonces, 8}}) {
        if (!at) continue;
        if (reinterpret_cast<std::uintptr_t>(at) % alignment != 0)
            return Error{Code::invalid_argument, "cuda: the " + std::string(name) +
                                                     " does not lie at a multiple of " +
                                                     std::to_string(alignment) + " bytes"};
        if (!memory.owns(at))
            return Error{Code::invalid_argument, "cuda: the " + std::string(name) +
                                                     " is not in the memory of '" + info.name +
                                                     "'; allocate it there"};
    }
    return {};
}

bool wraps32(const Message& message) {
    return message.skip + message.size > modes::blocks_before_wrap32(message.start) * kBlockSize;
}

template <class Made>
Result<std::unique_ptr<core::Prepared>> as_prepared(Result<std::unique_ptr<Made>> made) {
    if (!made) return std::move(made).error();
    return std::unique_ptr<core::Prepared>(std::move(*made));
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(int index, int tables, Hashing hashing,
                                                     bool later) {
    cudaDeviceProp properties{};
    DAEL_TRY(checked(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties"));
    const Layout layout = layout_for(properties.sharedMemPerBlockOptin, tables ? tables : 4);
    if (tables && layout.forward != tables)
        return Error{Code::invalid_argument,
                     "cuda: tables=" + std::to_string(tables) + " takes " +
                         std::to_string(tables * 32) + " KiB of shared memory, and " +
                         properties.name + " has " +
                         std::to_string(properties.sharedMemPerBlockOptin / 1024) +
                         "; leave it out for all tables that fit"};
    DeviceInfo info;
    info.name = properties.name;
    info.architecture = "sm_" + std::to_string(properties.major * 10 + properties.minor);
    info.memory = properties.totalGlobalMem;
    info.multiprocessors = properties.multiProcessorCount;
    info.driver = driver_versions();
    info.layout = std::to_string(layout.forward * 32) + " KiB";
    // All page-locked memory by the host's own addresses, whoever locked it.
    int same_address = 0;
    DAEL_TRY(checked(
        cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, index),
        "cudaDeviceGetAttribute"));
    const bool reaches = properties.unifiedAddressing != 0 && same_address != 0;
    std::unique_ptr<CudaDevice> device(
        new CudaDevice(index, layout, std::move(info), reaches ? kReach : 0,
                       properties.cooperativeLaunch != 0, properties.major >= 9, hashing));
    DAEL_TRY(device->usable());
    if (!later) {
        DAEL_TRY(device->load(ctr_kernel(10, layout.forward)));
        DAEL_TRY(device->believe(Kind::ctr_small, 10));
    }
    return device;
}

Result<> CudaDevice::load(const Kernel& kernel) {
    const std::lock_guard lock(mutex_);
    if (loaded_.contains(kernel.function)) return {};
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    const BesideCaptures beside;
    cudaFuncAttributes attributes{};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel.function);
    switch (status) {
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorInvalidDeviceFunction:
        case cudaErrorInvalidKernelImage:
        case cudaErrorUnsupportedPtxVersion:
            (void)cudaGetLastError();
            return Error{Code::backend_absent,
                         "cuda: this build has no code for " + info_.name + ", " +
                             info_.architecture + " (" + cudaGetErrorName(status) +
                             "); it takes a GPU from Turing (sm_75) on, and a build for it: "
                             "DAELSTROM_CUDA_ARCHITECTURES"};
        default:
            DAEL_TRY(checked(status, "cudaFuncGetAttributes"));
    }
    DAEL_TRY(
        checked(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(kernel.shape.dynamic)),
                "cudaFuncSetAttribute"));
    loaded_.insert(kernel.function);
    return {};
}

Result<CudaDevice::Made> CudaDevice::made(const Kernel& kernel) const {
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    cudaFuncAttributes attributes{};
    DAEL_TRY(checked(cudaFuncGetAttributes(&attributes, kernel.function), "cudaFuncGetAttributes"));
    return Made{attributes.sharedSizeBytes, attributes.maxThreadsPerBlock};
}

unsigned CudaDevice::grid_for(std::uint64_t units) const {
    // Few units are spread over many multiprocessors, down to four warps on each.
    const std::uint64_t wanted = std::max<std::uint64_t>(1, (units + 3) / 4);
    return static_cast<unsigned>(std::min<std::uint64_t>(wanted, info_.multiprocessors));
}

Result<> CudaDevice::launch(const Kernel& kernel, unsigned grid, bool cooperative, void** arguments,
                            Stream stream) {
    if (cooperative && !cooperative_)
        return Error{Code::unsupported,
                     "cuda: this GPU cannot decrypt CBC or CFB in place; pass another "
                     "buffer for the output"};
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    DAEL_TRY(load(kernel));
    if (failing_.load(std::memory_order_relaxed) == kernel.function && failures_.fetch_sub(1) > 0)
        return cuda_failure(cudaErrorMemoryAllocation, "cudaLaunchKernelExC");
    cudaLaunchAttribute attribute{};
    if (cooperative) {
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
    } else {
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(grid);
    config.blockDim = dim3(kernel.shape.threads);
    config.dynamicSmemBytes = kernel.shape.dynamic;
    config.stream = static_cast<cudaStream_t>(stream.handle);
    config.attrs = &attribute;
    config.numAttrs = cooperative || (kernel.overlaps && overlaps_) ? 1 : 0;
    return checked(cudaLaunchKernelExC(&config, kernel.function, arguments), "cudaLaunchKernelExC");
}

Result<std::unique_ptr<core::Prepared>> CudaDevice::prepare(const Cipher& cipher,
                                                            const core::KeyList& keys,
                                                            const Messages& messages) {
    const bool listed_here = messages.place == Place::device;
    if (listed_here) DAEL_TRY(check_places(memory_, info_, messages));
    if (cipher.mode == Mode::gcm || cipher.mode == Mode::gcm_ctr)
        return as_prepared(GcmPrepared::make(*this, cipher, keys, messages));
    if (is_aegis(cipher.mode)) return as_prepared(prepare_aegis(*this, cipher, keys, messages));
    if (derives_keys(cipher.mode))
        return as_prepared(prepare_derived(*this, cipher, keys, messages));
    const bool many = !listed_here && messages.count != 0 && many_keys(messages);
    if (cipher.mode == Mode::cbc && cipher.direction == Direction::encrypt && (listed_here || many))
        return as_prepared(prepare_keyed(*this, cipher, keys, messages));
    if (listed_here)
        return Error{
            Code::unsupported,
            "cuda: lists in device memory are for modes that authenticate, gcm_ctr and cbc "
            "encryption; give this one in host memory"};
    if (!many) return as_prepared(prepare_plain(*this, cipher, keys, messages));
    // Under many keys CTR is GCM's counter mode, as long as the counters stay in its 32 bits.
    const std::span<const Message> list(messages.list, messages.count);
    if (cipher.mode != Mode::ctr || std::ranges::any_of(list, wraps32))
        return Error{Code::unsupported, "cuda: a batch of " + std::string(name(cipher.mode)) +
                                            " is under one key; divide it by keys"};
    return as_prepared(GcmPrepared::make(*this, cipher, keys, messages));
}

Result<> CudaDevice::run(core::Prepared& prepared, Stream stream) {
    auto* const batch = dynamic_cast<PreparedBatch*>(&prepared);
    if (!batch || !batch->is_on(*this)) return core::made_for_another("cuda", "batch");
    return batch->run(stream);
}

Result<std::unique_ptr<core::KeyTables>> CudaDevice::tables(std::span<const Key> keys) {
    DAEL_LET(made, DeviceKeys::make(*this, keys));
    return std::unique_ptr<core::KeyTables>(std::make_unique<CudaKeys>(made));
}

Result<std::unique_ptr<core::KeystreamMaker>> CudaDevice::keystream_maker() {
    return make_keystream_maker(*this);
}

}  // namespace dael::cuda
