// SPDX-License-Identifier: Apache-2.0
// Encrypts an OpenCL buffer where it lies, between the commands of your own queue, and checks it
// against the host.
#define CL_TARGET_OPENCL_VERSION 120  // for clCreateCommandQueue
#include <CL/cl.h>
#include <daelstrom/ctr.hpp>
#include <daelstrom/opencl.hpp>

#include <cstdio>
#include <vector>

namespace {

constexpr int kSkipped = 77;  // CTest shows a test that exits so as skipped

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return error.code == dael::Code::backend_absent ? kSkipped : 1;
}

bool fine(cl_int status) {
    if (status != CL_SUCCESS) std::fprintf(stderr, "OpenCL's error %d\n", status);
    return status == CL_SUCCESS;
}

}  // namespace

int main() {
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) {
        std::fprintf(stderr, "no OpenCL device is here\n");
        return kSkipped;
    }
    cl_int status = CL_SUCCESS;
    cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
    if (!fine(status)) return 1;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);  // in-order
    if (!fine(status)) return 1;
    const std::size_t size = 16 << 20;
    cl_mem buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, &status);
    if (!fine(status)) return 1;

    const std::array<std::uint8_t, 16> bytes{};  // an example: never use a key of zeros
    auto key = dael::Key::import(bytes);
    if (!key) return report(key.error());
    const dael::Block counter{};
    std::vector<std::uint8_t> plain(size, 'd'), expected(size), got(size);
    if (!fine(clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, size, plain.data(), 0, nullptr,
                                   nullptr)))
        return 1;

    // An engine on the same context; the buffer gets an address, and the queue is a stream.
    auto engine = dael::opencl::open(context, device);
    if (!engine) return report(engine.error());
    auto data = dael::opencl::adopt(*engine, buffer);
    if (!data) return report(data.error());
    auto stream = dael::opencl::stream(*engine, queue);
    if (!stream) return report(stream.error());
    // In place, in the queue's order: launches and returns.
    auto ran = dael::ctr::crypt(*engine, *key, counter, *data, *data, *stream);
    if (!ran) return report(ran.error());

    if (!fine(
            clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, size, got.data(), 0, nullptr, nullptr)))
        return 1;
    if (auto forgotten = dael::opencl::forget(*engine, *data); !forgotten)
        return report(forgotten.error());

    auto host = dael::Engine::open({.backend = "openssl"});
    if (!host) return report(host.error());
    if (auto checked = dael::ctr::crypt(*host, *key, counter, plain, expected); !checked)
        return report(checked.error());
    std::printf("%s: %s\n", ran->backend.data(), got == expected ? "as on the host" : "WRONG");

    clReleaseMemObject(buffer);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    return got == expected ? 0 : 1;
}
