// SPDX-License-Identifier: Apache-2.0
// The cuda backend: one GPU. All of its work goes through the Device; data in host memory is the
// pipeline's to bring here.
#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/cuda_error.hpp"

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

namespace {

class CudaBackend final : public core::Backend {
  public:
    CudaBackend(int index, std::unique_ptr<CudaDevice> device)
        : name_("cuda:" + std::to_string(index)), device_(std::move(device)) {}

    std::string_view name() const override { return name_; }
    std::string description() const override {
        const core::DeviceInfo& info = device_->info();
        const auto tenths = info.memory * 10 >> 30;
        return info.name + ", " + info.architecture + ", " + std::to_string(info.multiprocessors) +
               " SMs, " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
               " GiB, " + info.layout + " tables";
    }
    bool supports(Mode mode, Direction direction, std::size_t segments) const override {
        return parallel_within_message(mode, direction) || segments > 1;
    }
    Result<> run(const core::Operation&, std::span<const core::Segment>) override {
        return Error{Code::unsupported, "cuda: data in host memory goes through the pipeline"};
    }
    // A GCM message in pieces; whole ones in host memory go through the pipeline.
    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) override {
        return device_->prepare_keys(keys);
    }
    Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                        const core::PreparedKeys& keys,
                                                        std::uint32_t key,
                                                        std::span<const std::uint8_t> iv) override {
        return device_->gcm_stream(direction, keys, key, iv);
    }
    core::Device* device() override { return device_.get(); }

  private:
    std::string name_;
    std::unique_ptr<CudaDevice> device_;
};

}  // namespace

Result<std::unique_ptr<core::Backend>> open_cuda_backend(const core::BackendOptions& options) {
    if (options.isa.empty()) return open_cuda_backend(options.index);
    for (const int tables : {4, 2, 1})
        if (options.isa == "tables=" + std::to_string(tables))
            return open_cuda_backend(options.index, tables);
    return Error{Code::invalid_argument, "cuda: '" + options.isa +
                                             "' is no layout of its kernels' tables; there are "
                                             "tables=4, tables=2 and tables=1"};
}

Result<std::unique_ptr<core::Backend>> open_cuda_backend(int index, int tables,
                                                         bool use_tensor_cores) {
    auto device = CudaDevice::open(index, tables, use_tensor_cores);
    if (!device) return std::move(device).error();
    return std::unique_ptr<core::Backend>(std::make_unique<CudaBackend>(index, std::move(*device)));
}

}  // namespace dael::cuda

namespace dael::backends {

extern const core::BackendEntry cuda;
const core::BackendEntry cuda{
    "cuda", "NVIDIA GPUs: data in GPU memory, or host memory through the GPU",
    [](std::string* why) { return dael::cuda::count_devices(why); },
    [](const core::BackendOptions& options) { return dael::cuda::open_cuda_backend(options); },
    [](int index) { return dael::cuda::device_name(index); }};

}  // namespace dael::backends
