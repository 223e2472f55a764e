// SPDX-License-Identifier: Apache-2.0
// The lab's kernels through OpenCL, in the context of an engine. Every object of OpenCL begins with
// a pointer to its driver's functions (extension cl_khr_icd), so no library is linked here either.
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_icd.h>

#include <algorithm>
#include <array>

#include <daelstrom/opencl.hpp>

#include "lab/kernel_device.hpp"
#include "lab/kernel_sources.hpp"

namespace dael::lab {
namespace {

const cl_icd_dispatch& functions_of(const void* object) {
    return **static_cast<const cl_icd_dispatch* const*>(object);
}

Result<> checked(cl_int status, const char* call) {
    if (status == CL_SUCCESS) return {};
    const bool memory = status == CL_OUT_OF_HOST_MEMORY || status == CL_OUT_OF_RESOURCES ||
                        status == CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return Error{memory ? Code::out_of_memory : Code::device,
                 std::string(call) + " failed with " + std::to_string(status)};
}

class OpenClKernels final : public KernelDevice,
                            public std::enable_shared_from_this<OpenClKernels> {
  public:
    OpenClKernels(Engine engine, const DeviceAccess& access, opencl::Native native)
        : engine_(std::move(engine)), access_(access), native_(native) {}

    const DeviceAccess& access() const override { return access_; }
    Engine& engine() override { return engine_; }
    int processors() const override { return std::max(1, access_.info.multiprocessors); }

    bool is_cpu() const override {
        cl_device_type type = 0;
        (void)functions_of(native_.device)
            .clGetDeviceInfo(native_.device, CL_DEVICE_TYPE, sizeof type, &type, nullptr);
        return (type & CL_DEVICE_TYPE_CPU) != 0;
    }

    Result<Storage> allocate(std::size_t size) override {
        cl_int status = CL_SUCCESS;
        cl_mem memory =
            functions_of(native_.context)
                .clCreateBuffer(native_.context, CL_MEM_READ_WRITE, size, nullptr, &status);
        DAEL_TRY(checked(status, "clCreateBuffer"));
        const auto release = [](cl_mem held) { (void)functions_of(held).clReleaseMemObject(held); };
        const std::shared_ptr<_cl_mem> owned(memory, release);
        DAEL_LET(adopted, opencl::adopt(engine_, memory));
        // Forgotten before it is released, and by an engine that is still there.
        const std::shared_ptr<void> held(memory,
                                         [self = shared_from_this(), owned, adopted](void*) {
                                             (void)opencl::forget(self->engine_, adopted);
                                         });
        return Storage{static_cast<std::uint8_t*>(adopted.data), held};
    }

    Result<measure::Launch> prepare(const Shape& shape, const Constants& constants,
                                    const Storage& in, const Storage& out, std::uint32_t blocks,
                                    std::uint32_t grid) override {
        DAEL_TRY(check_room(shape));
        const auto& call = functions_of(native_.context);
        DAEL_LET(program, build(shape));
        cl_int status = CL_SUCCESS;
        const std::shared_ptr<_cl_kernel> kernel(
            call.clCreateKernel(program.get(), "placement", &status), [](cl_kernel held) {
                if (held) (void)functions_of(held).clReleaseKernel(held);
            });
        DAEL_TRY(checked(status, "clCreateKernel"));
        DAEL_LET(constant, allocate_constant(constants));
        cl_mem from = static_cast<cl_mem>(in.held.get()), to = static_cast<cl_mem>(out.held.get());
        cl_mem round_keys = constant.get();
        const std::array<std::pair<std::size_t, const void*>, 4> arguments{
            {{sizeof from, &from},
             {sizeof to, &to},
             {sizeof round_keys, &round_keys},
             {sizeof blocks, &blocks}}};
        for (cl_uint i = 0; i < arguments.size(); ++i)
            DAEL_TRY(checked(
                call.clSetKernelArg(kernel.get(), i, arguments[i].first, arguments[i].second),
                "clSetKernelArg"));
        const auto at_once = static_cast<std::uint32_t>(shape.blocks());
        const std::size_t local = static_cast<std::size_t>(shape.threads);
        const std::size_t global = local * (grid ? grid : (blocks + at_once - 1) / at_once);
        return measure::Launch([self = shared_from_this(), kernel, constant,
                                held = std::pair{in, out}, local, global](Stream stream) {
            const auto queue =
                stream.handle ? static_cast<cl_command_queue>(stream.handle) : self->native_.queue;
            return checked(
                functions_of(queue).clEnqueueNDRangeKernel(queue, kernel.get(), 1, nullptr, &global,
                                                           &local, 0, nullptr, nullptr),
                "clEnqueueNDRangeKernel");
        });
    }

  private:
    Result<> check_room(const Shape& shape) const {
        cl_ulong local = 0;
        std::size_t threads = 0;
        const auto& call = functions_of(native_.device);
        DAEL_TRY(checked(call.clGetDeviceInfo(native_.device, CL_DEVICE_LOCAL_MEM_SIZE,
                                              sizeof local, &local, nullptr),
                         "clGetDeviceInfo"));
        DAEL_TRY(checked(call.clGetDeviceInfo(native_.device, CL_DEVICE_MAX_WORK_GROUP_SIZE,
                                              sizeof threads, &threads, nullptr),
                         "clGetDeviceInfo"));
        if (shape.local_memory() > local)
            return Error{Code::unsupported, "a work-group would need " +
                                                std::to_string(shape.local_memory()) +
                                                " bytes of local memory, and the device gives it " +
                                                std::to_string(local)};
        if (static_cast<std::size_t>(shape.threads) > threads)
            return Error{Code::unsupported,
                         "the device has no work-groups of more than " + std::to_string(threads)};
        return {};
    }

    Result<std::shared_ptr<_cl_program>> build(const Shape& shape) const {
        constexpr std::array kTables{"CONSTANT", "SHARED", "BANKS", "NONE"};
        constexpr std::array kStates{"REGISTERS", "AOS", "SOA"};
        constexpr std::array kForms{"BLOCKS", "SLICED", "COUNTERS", "CACHED"};
        std::string source = "__constant uint lab_table[1024] = {";
        for (const std::uint32_t word : tables()) source += std::to_string(word) + "u,";
        source += "};\n" + std::string(sources::placement);
        const std::string options =
            "-DLAB_GROUP=" + std::to_string(shape.threads) +
            " -DLAB_FORM=" + kForms[static_cast<std::size_t>(shape.form)] +
            " -DLAB_BYTES=" + std::to_string(shape.bytes) +
            " -DLAB_TABLES=" + kTables[static_cast<std::size_t>(shape.tables)] +
            " -DLAB_COUNT=" + std::to_string(shape.count) +
            " -DLAB_KEYS_SHARED=" + (shape.keys_shared ? "1" : "0") +
            " -DLAB_STATE=" + kStates[static_cast<std::size_t>(shape.state)];
        const auto& call = functions_of(native_.context);
        const char* text = source.data();
        const std::size_t size = source.size();
        cl_int status = CL_SUCCESS;
        const std::shared_ptr<_cl_program> program(
            call.clCreateProgramWithSource(native_.context, 1, &text, &size, &status),
            [](cl_program held) {
                if (held) (void)functions_of(held).clReleaseProgram(held);
            });
        DAEL_TRY(checked(status, "clCreateProgramWithSource"));
        cl_device_id device = native_.device;
        status = call.clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
        if (status == CL_SUCCESS) return program;
        std::string log(4096, '\0');
        std::size_t length = 0;
        (void)call.clGetProgramBuildInfo(program.get(), device, CL_PROGRAM_BUILD_LOG, log.size(),
                                         log.data(), &length);
        return Error{Code::device, "clBuildProgram failed with " + std::to_string(status) +
                                       " for " + options + ": " +
                                       log.substr(0, std::min(length, log.size()))};
    }

    Result<std::shared_ptr<_cl_mem>> allocate_constant(const Constants& constants) const {
        cl_int status = CL_SUCCESS;
        Constants copy = constants;
        const std::shared_ptr<_cl_mem> memory(
            functions_of(native_.context)
                .clCreateBuffer(native_.context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                                sizeof copy, &copy, &status),
            [](cl_mem held) {
                if (held) (void)functions_of(held).clReleaseMemObject(held);
            });
        DAEL_TRY(checked(status, "clCreateBuffer"));
        return memory;
    }

    Engine engine_;
    DeviceAccess access_;
    opencl::Native native_;
};

}  // namespace

Result<std::shared_ptr<KernelDevice>> open_opencl_kernels() {
    DAEL_LET(engine, Engine::open({.backend = "opencl"}));
    DAEL_LET(access, device(engine));
    DAEL_LET(native, opencl::native(engine));
    return std::shared_ptr<KernelDevice>(
        std::make_shared<OpenClKernels>(std::move(engine), access, native));
}

}  // namespace dael::lab
