// SPDX-License-Identifier: Apache-2.0
// The cuda backend: finding GPUs, and opening one.
#include "backends/cuda/device.hpp"
#include "backends/cuda/error.hpp"
#include "core/device_backend.hpp"
#include "modes/xaes.hpp"

namespace dael::cuda {

int count_devices(std::string* why) {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return count;
    (void)cudaGetLastError();
    if (why) {
        switch (status) {
            case cudaSuccess:
            case cudaErrorNoDevice:
                *why = "no NVIDIA GPU was found";
                break;
            case cudaErrorInsufficientDriver:
                *why = "no NVIDIA driver, or one too old for CUDA " +
                       std::to_string(CUDART_VERSION / 1000);
                break;
            default:
                *why = std::string("cudaGetDeviceCount: ") + cudaGetErrorString(status);
        }
    }
    return 0;
}

std::string device_name(int index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) == cudaSuccess) return properties.name;
    (void)cudaGetLastError();
    return {};
}

// Of the first device.
std::vector<std::string> forms() {
    std::vector<std::string> forms;
    int limit = 0;
    if (cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) != cudaSuccess) {
        (void)cudaGetLastError();
        return forms;
    }
    for (const int tables : {4, 2, 1})
        if (layout_for(static_cast<std::size_t>(limit), tables).forward == tables)
            forms.push_back("tables=" + std::to_string(tables));
    return forms;
}

Result<std::unique_ptr<core::Backend>> open_cuda_backend(const core::BackendOptions& options) {
    if (options.form.empty())
        return open_cuda_backend(options.index, 0, Hashing::tiles, options.later);
    for (const int tables : {4, 2, 1})
        if (options.form == "tables=" + std::to_string(tables))
            return open_cuda_backend(options.index, tables, Hashing::tiles, options.later);
    return Error{Code::invalid_argument, "cuda: '" + options.form +
                                             "' is no layout of its kernels' tables; there are "
                                             "tables=4, tables=2 and tables=1"};
}

namespace {

class CudaBackend final : public core::DeviceBackend {
  public:
    CudaBackend(std::string name, std::unique_ptr<CudaDevice> device)
        : DeviceBackend(std::move(name), "SMs", std::move(device)),
          cuda_(static_cast<CudaDevice&>(*device_)) {}

    Result<> usable() const override { return cuda_.usable(); }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        if (cipher.mode == Mode::xts && key_bits == 192)
            return {core::Can::no, "XTS has no AES-192; use AES-128 or AES-256"};
        if (!parallel_within_message(cipher.mode, cipher.direction))
            return {core::Can::batches,
                    "it is sequential within a message; pass many messages at once, or use the "
                    "backend 'auto' or 'cpu'"};
        return {};
    }
    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        return cuda_.tables(keys);
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        if (cipher.mode == Mode::xaes256gcm)
            return modes::begin_xaes(*this, cipher, keys.list[key], start);
        return cuda_.begin(cipher, keys, key, start);
    }

  private:
    CudaDevice& cuda_;
};

}  // namespace

Result<std::unique_ptr<core::Backend>> open_cuda_backend(int index, int tables, Hashing hashing,
                                                         bool later) {
    DAEL_LET(device, CudaDevice::open(index, tables, hashing, later));
    return std::unique_ptr<core::Backend>(
        std::make_unique<CudaBackend>("cuda:" + std::to_string(index), std::move(device)));
}

}  // namespace dael::cuda

namespace dael::backends {

extern const core::BackendEntry cuda;
const core::BackendEntry cuda{
    .name = "cuda",
    .summary = "NVIDIA GPUs: data in GPU memory, or host memory through the GPU",
    .count = [](std::string* why) { return dael::cuda::count_devices(why); },
    .open = [](const core::BackendOptions& o) { return dael::cuda::open_cuda_backend(o); },
    .device_name = [](int index) { return dael::cuda::device_name(index); },
    .forms = [] { return dael::cuda::forms(); },
    .in_use = [] { return dael::cuda::device_in_use(); }};

}  // namespace dael::backends
