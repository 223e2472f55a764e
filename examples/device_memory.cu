// SPDX-License-Identifier: Apache-2.0
// Encrypts a buffer where it lies, in GPU memory, on a CUDA stream, and checks it against the host.
#include <cuda_runtime.h>
#include <daelstrom/ctr.hpp>

#include <cstdio>
#include <vector>

namespace {

constexpr int kSkipped = 77;  // CTest shows a test that exits so as skipped

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return error.code == dael::Code::backend_absent ? kSkipped : 1;
}

bool fine(cudaError_t status) {
    if (status != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    return status == cudaSuccess;
}

}  // namespace

int main() {
    auto engine =
        dael::Engine::open({.backend = "cuda"});  // the first GPU, or an error that says why
    auto host = dael::Engine::open({.backend = "openssl"});
    const std::array<std::uint8_t, 16> bytes{};  // an example: never use a key of zeros
    auto key = dael::Key::import(bytes);
    if (!engine) return report(engine.error());
    if (!host) return report(host.error());
    if (!key) return report(key.error());

    const std::size_t size = 256 << 20;
    const dael::Block counter{};
    std::vector<std::uint8_t> plain(size, 'd'), expected(size), got(size);
    void* data = nullptr;
    cudaStream_t stream = nullptr;
    if (!fine(cudaMalloc(&data, size)) || !fine(cudaStreamCreate(&stream))) return 1;

    if (!fine(cudaMemcpyAsync(data, plain.data(), size, cudaMemcpyDefault, stream))) return 1;
    // In place, in stream order: launches and returns.
    auto ran = dael::ctr::crypt(*engine, *key, counter, dael::DeviceIn{data, size},
                                dael::DeviceOut{data, size}, dael::Stream{stream});
    if (!ran) return report(ran.error());
    if (!fine(cudaMemcpyAsync(got.data(), data, size, cudaMemcpyDefault, stream))) return 1;
    if (!fine(cudaStreamSynchronize(stream))) return 1;

    if (auto checked = dael::ctr::crypt(*host, *key, counter, plain, expected); !checked)
        return report(checked.error());
    std::printf("%s: %s\n", ran->backend.data(), got == expected ? "as on the host" : "WRONG");

    cudaStreamDestroy(stream);
    cudaFree(data);
    return got == expected ? 0 : 1;
}
