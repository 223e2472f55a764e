// SPDX-License-Identifier: Apache-2.0
// The functions of OpenCL that this backend calls, each forwarded to the driver that made the
// object it is called with: the first thing in each object of a driver is a pointer to the driver's
// own table of functions (extension cl_khr_icd). So the same program runs where there is no OpenCL,
// and drivers are loaded when they are needed (drivers.hpp). The functions are hidden, so that they
// stand in nobody's way who links OpenCL himself.
#include <type_traits>

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#pragma GCC visibility push(hidden)
#include <CL/cl_icd.h>
#pragma GCC visibility pop

#include "backends/opencl/cl.hpp"

namespace dael::opencl {
namespace {

// The functions of an object's driver; null of no object, and of every object after a fork.
const cl_icd_dispatch* functions_of(const void* object) noexcept {
    if (!object || after_fork()) return nullptr;
    return *static_cast<const cl_icd_dispatch* const*>(object);
}

// What a call returns that cannot be forwarded: the driver lacks the function (which is of version
// 2.0), there is no object, or this is after a fork.
template <class T>
T missing(cl_int* status = nullptr) noexcept {
    if (status) *status = CL_INVALID_OPERATION;
    if constexpr (std::is_same_v<T, cl_int>) return CL_INVALID_OPERATION;
    if constexpr (std::is_pointer_v<T>) return nullptr;
}

}  // namespace
}  // namespace dael::opencl

// Of those that make something, the last argument is where they put their status.
#define FORWARD_BY(object, result, function, parameters, arguments, ...)                        \
    extern "C" result CL_API_CALL function parameters {                                         \
        const auto* const functions = ::dael::opencl::functions_of(object);                     \
        return functions && functions->function ? functions->function arguments                 \
                                                : ::dael::opencl::missing<result>(__VA_ARGS__); \
    }
// Most are called with an object first.
#define FORWARD(...) FORWARD_BY(a, __VA_ARGS__)

FORWARD(cl_int, clGetPlatformInfo,
        (cl_platform_id a, cl_platform_info b, size_t c, void* d, size_t* e), (a, b, c, d, e))
FORWARD(cl_int, clGetDeviceIDs,
        (cl_platform_id a, cl_device_type b, cl_uint c, cl_device_id* d, cl_uint* e),
        (a, b, c, d, e))
FORWARD(cl_int, clGetDeviceInfo, (cl_device_id a, cl_device_info b, size_t c, void* d, size_t* e),
        (a, b, c, d, e))
FORWARD(cl_int, clRetainDevice, (cl_device_id a), (a))
FORWARD(cl_int, clReleaseDevice, (cl_device_id a), (a))

using ContextNotify = void(CL_CALLBACK*)(const char*, const void*, size_t, void*);
FORWARD_BY(c ? *c : nullptr, cl_context, clCreateContext,
           (const cl_context_properties* a, cl_uint b, const cl_device_id* c, ContextNotify d,
            void* e, cl_int* f),
           (a, b, c, d, e, f), f)
FORWARD(cl_int, clRetainContext, (cl_context a), (a))
FORWARD(cl_int, clReleaseContext, (cl_context a), (a))
FORWARD(cl_int, clGetContextInfo, (cl_context a, cl_context_info b, size_t c, void* d, size_t* e),
        (a, b, c, d, e))

FORWARD(cl_command_queue, clCreateCommandQueue,
        (cl_context a, cl_device_id b, cl_command_queue_properties c, cl_int* d), (a, b, c, d), d)
FORWARD(cl_int, clRetainCommandQueue, (cl_command_queue a), (a))
FORWARD(cl_int, clReleaseCommandQueue, (cl_command_queue a), (a))
FORWARD(cl_int, clGetCommandQueueInfo,
        (cl_command_queue a, cl_command_queue_info b, size_t c, void* d, size_t* e),
        (a, b, c, d, e))
FORWARD(cl_int, clFlush, (cl_command_queue a), (a))
FORWARD(cl_int, clFinish, (cl_command_queue a), (a))

FORWARD(cl_mem, clCreateBuffer, (cl_context a, cl_mem_flags b, size_t c, void* d, cl_int* e),
        (a, b, c, d, e), e)
FORWARD(cl_int, clRetainMemObject, (cl_mem a), (a))
FORWARD(cl_int, clReleaseMemObject, (cl_mem a), (a))
FORWARD(cl_int, clGetMemObjectInfo, (cl_mem a, cl_mem_info b, size_t c, void* d, size_t* e),
        (a, b, c, d, e))

FORWARD(cl_program, clCreateProgramWithSource,
        (cl_context a, cl_uint b, const char** c, const size_t* d, cl_int* e), (a, b, c, d, e), e)
FORWARD(cl_program, clCreateProgramWithBinary,
        (cl_context a, cl_uint b, const cl_device_id* c, const size_t* d, const unsigned char** e,
         cl_int* f, cl_int* g),
        (a, b, c, d, e, f, g), g)
FORWARD(cl_int, clRetainProgram, (cl_program a), (a))
FORWARD(cl_int, clReleaseProgram, (cl_program a), (a))
using ProgramNotify = void(CL_CALLBACK*)(cl_program, void*);
FORWARD(cl_int, clBuildProgram,
        (cl_program a, cl_uint b, const cl_device_id* c, const char* d, ProgramNotify e, void* f),
        (a, b, c, d, e, f))
FORWARD(cl_int, clGetProgramInfo, (cl_program a, cl_program_info b, size_t c, void* d, size_t* e),
        (a, b, c, d, e))
FORWARD(cl_int, clGetProgramBuildInfo,
        (cl_program a, cl_device_id b, cl_program_build_info c, size_t d, void* e, size_t* f),
        (a, b, c, d, e, f))

FORWARD(cl_kernel, clCreateKernel, (cl_program a, const char* b, cl_int* c), (a, b, c), c)
FORWARD(cl_int, clRetainKernel, (cl_kernel a), (a))
FORWARD(cl_int, clReleaseKernel, (cl_kernel a), (a))
FORWARD(cl_int, clSetKernelArg, (cl_kernel a, cl_uint b, size_t c, const void* d), (a, b, c, d))
FORWARD(cl_int, clSetKernelArgSVMPointer, (cl_kernel a, cl_uint b, const void* c), (a, b, c))
FORWARD(cl_int, clEnqueueNDRangeKernel,
        (cl_command_queue a, cl_kernel b, cl_uint c, const size_t* d, const size_t* e,
         const size_t* f, cl_uint g, const cl_event* h, cl_event* i),
        (a, b, c, d, e, f, g, h, i))

FORWARD(cl_int, clEnqueueReadBuffer,
        (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, void* f, cl_uint g,
         const cl_event* h, cl_event* i),
        (a, b, c, d, e, f, g, h, i))
FORWARD(cl_int, clEnqueueWriteBuffer,
        (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, const void* f, cl_uint g,
         const cl_event* h, cl_event* i),
        (a, b, c, d, e, f, g, h, i))
FORWARD(cl_int, clEnqueueCopyBuffer,
        (cl_command_queue a, cl_mem b, cl_mem c, size_t d, size_t e, size_t f, cl_uint g,
         const cl_event* h, cl_event* i),
        (a, b, c, d, e, f, g, h, i))
FORWARD(cl_int, clEnqueueFillBuffer,
        (cl_command_queue a, cl_mem b, const void* c, size_t d, size_t e, size_t f, cl_uint g,
         const cl_event* h, cl_event* i),
        (a, b, c, d, e, f, g, h, i))
FORWARD(void*, clEnqueueMapBuffer,
        (cl_command_queue a, cl_mem b, cl_bool c, cl_map_flags d, size_t e, size_t f, cl_uint g,
         const cl_event* h, cl_event* i, cl_int* j),
        (a, b, c, d, e, f, g, h, i, j), j)
FORWARD(cl_int, clEnqueueUnmapMemObject,
        (cl_command_queue a, cl_mem b, void* c, cl_uint d, const cl_event* e, cl_event* f),
        (a, b, c, d, e, f))
FORWARD(void*, clSVMAlloc, (cl_context a, cl_svm_mem_flags b, size_t c, cl_uint d), (a, b, c, d))
FORWARD(void, clSVMFree, (cl_context a, void* b), (a, b))
FORWARD(cl_int, clEnqueueSVMMemcpy,
        (cl_command_queue a, cl_bool b, void* c, const void* d, size_t e, cl_uint f,
         const cl_event* g, cl_event* h),
        (a, b, c, d, e, f, g, h))
FORWARD(cl_int, clEnqueueSVMMemFill,
        (cl_command_queue a, void* b, const void* c, size_t d, size_t e, cl_uint f,
         const cl_event* g, cl_event* h),
        (a, b, c, d, e, f, g, h))

FORWARD(cl_int, clEnqueueMarkerWithWaitList,
        (cl_command_queue a, cl_uint b, const cl_event* c, cl_event* d), (a, b, c, d))
FORWARD(cl_int, clEnqueueBarrierWithWaitList,
        (cl_command_queue a, cl_uint b, const cl_event* c, cl_event* d), (a, b, c, d))
FORWARD(cl_int, clRetainEvent, (cl_event a), (a))
FORWARD(cl_int, clReleaseEvent, (cl_event a), (a))
FORWARD_BY(b ? *b : nullptr, cl_int, clWaitForEvents, (cl_uint a, const cl_event* b), (a, b))
FORWARD(cl_int, clGetEventInfo, (cl_event a, cl_event_info b, size_t c, void* d, size_t* e),
        (a, b, c, d, e))
FORWARD(cl_int, clGetEventProfilingInfo,
        (cl_event a, cl_profiling_info b, size_t c, void* d, size_t* e), (a, b, c, d, e))
