// SPDX-License-Identifier: Apache-2.0
// The lab's kernels through CUDA, on the device of an engine.
#include <cuda_runtime_api.h>

#include <cstdlib>

#include "lab/kernel_device.hpp"
#include "lab/kernels/placement.hpp"

namespace dael::lab {
namespace {

Result<> checked(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return {};
    (void)cudaGetLastError();  // so that nobody else finds it
    return Error{status == cudaErrorMemoryAllocation ? Code::out_of_memory : Code::device,
                 std::string(call) + ": " + cudaGetErrorString(status)};
}

class CudaKernels final : public KernelDevice, public std::enable_shared_from_this<CudaKernels> {
  public:
    CudaKernels(Engine engine, const DeviceAccess& access)
        : engine_(std::move(engine)),
          access_(access),
          number_(std::atoi(access.backend.c_str() + access.backend.find(':') + 1)) {}

    const DeviceAccess& access() const override { return access_; }
    Engine& engine() override { return engine_; }
    int processors() const override { return access_.info.multiprocessors; }
    bool is_cpu() const override { return false; }

    Result<Storage> allocate(std::size_t size) override {
        DAEL_LET(memory, access_.memory.allocate(size));
        const std::shared_ptr<void> held(
            memory, [self = shared_from_this()](void* all) { self->access_.memory.release(all); });
        return Storage{static_cast<std::uint8_t*>(memory), held};
    }

    Result<measure::Launch> prepare(const Shape& shape, const Constants& constants,
                                    const Storage& in, const Storage& out, std::uint32_t blocks,
                                    std::uint32_t grid) override {
        const void* const kernel = cuda_kernel(shape);
        if (!kernel) return Error{Code::unsupported, "no kernel of this shape was built"};
        const auto shared = static_cast<int>(shape.local_memory());
        DAEL_TRY(check_room(shape, kernel, shared));
        const auto at_once = static_cast<std::uint32_t>(shape.blocks());
        const unsigned all = grid ? grid : (blocks + at_once - 1) / at_once;
        return measure::Launch([self = shared_from_this(), kernel, constants, in, out, blocks, all,
                                shared, threads = static_cast<unsigned>(shape.threads)](Stream s) {
            const std::uint8_t *from = in.data, *to = out.data;
            Constants copy = constants;
            std::uint32_t count = blocks;
            void* arguments[] = {&from, &to, &copy, &count};
            return checked(cudaLaunchKernel(kernel, dim3(all), dim3(threads), arguments,
                                            static_cast<std::size_t>(shared),
                                            static_cast<cudaStream_t>(s.handle)),
                           "cudaLaunchKernel");
        });
    }

  private:
    // That a block fits, and that the driver has been asked for as much.
    Result<> check_room(const Shape& shape, const void* kernel, int shared) const {
        DAEL_TRY(checked(cudaSetDevice(number_), "cudaSetDevice"));
        int most = 0;
        DAEL_TRY(
            checked(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, number_),
                    "cudaDeviceGetAttribute"));
        if (shared > most)
            return Error{Code::unsupported,
                         "a block would need " + std::to_string(shared) +
                             " bytes of shared memory, and the device gives it " +
                             std::to_string(most)};
        cudaFuncAttributes attributes{};
        DAEL_TRY(checked(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes"));
        if (shape.threads > attributes.maxThreadsPerBlock)
            return Error{Code::unsupported, "this kernel has no blocks of more than " +
                                                std::to_string(attributes.maxThreadsPerBlock) +
                                                " threads"};
        return checked(
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
            "cudaFuncSetAttribute");
    }

    Engine engine_;
    DeviceAccess access_;
    int number_;
};

}  // namespace

Result<std::shared_ptr<KernelDevice>> open_cuda_kernels() {
    DAEL_LET(engine, Engine::open({.backend = "cuda"}));
    DAEL_LET(access, device(engine));
    return std::shared_ptr<KernelDevice>(std::make_shared<CudaKernels>(std::move(engine), access));
}

}  // namespace dael::lab
