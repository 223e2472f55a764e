// SPDX-License-Identifier: Apache-2.0
// Opens a sealed file straight into GPU memory, where a kernel sums its bytes up. On its way the
// plaintext is never in host memory.
#include <cuda_runtime.h>
#include <daelstrom/sealed.hpp>

#include <cstdio>
#include <random>
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

using Sum = unsigned long long;

// Each byte times its place modulo 251, so that bytes in the wrong place show.
__global__ void add_up(const unsigned char* bytes, std::size_t size, Sum* sum) {
    Sum mine = 0;
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < size;
         i += std::size_t{gridDim.x} * blockDim.x)
        mine += bytes[i] * (i % 251 + 1);
    atomicAdd(sum, mine);
}

}  // namespace

int main() {
    auto engine = dael::Engine::open({.backend = "cuda"});
    if (!engine) return report(engine.error());
    auto host = dael::Engine::open({.backend = "openssl"});
    if (!host) return report(host.error());

    // A sealed file, made on the host.
    std::mt19937_64 numbers(1);
    std::vector<std::uint8_t> content(100'000'000);
    Sum expected = 0;
    for (std::size_t i = 0; i < content.size(); ++i) {
        content[i] = static_cast<std::uint8_t>(numbers());
        expected += content[i] * Sum{i % 251 + 1};
    }
    const std::array<std::uint8_t, 32> bytes{};  // an example: never use a key of zeros
    auto keys = dael::sealed::Keys::from_key(bytes);
    if (!keys) return report(keys.error());
    auto sealed_size = dael::sealed::sealed_size(*keys, content.size());
    if (!sealed_size) return report(sealed_size.error());
    std::vector<std::uint8_t> sealed(*sealed_size);
    if (auto done = dael::sealed::seal(*host, *keys, {}, content, sealed); !done)
        return report(done.error());
    std::FILE* disk = std::tmpfile();
    if (!disk || std::fwrite(sealed.data(), 1, sealed.size(), disk) != sealed.size()) return 1;

    auto file = dael::sealed::File::open(
        *engine, *keys, {},
        [&](std::uint64_t at, dael::HostOut out) -> dael::Result<> {
            if (std::fseek(disk, static_cast<long>(at), SEEK_SET) == 0 &&
                std::fread(out.data(), 1, out.size(), disk) == out.size())
                return {};
            return dael::Error{dael::Code::io, "the file cannot be read"};
        },
        *sealed_size);
    if (!file) return report(file.error());

    void* data = nullptr;
    void* sum = nullptr;
    cudaStream_t stream = nullptr;
    if (!fine(cudaMalloc(&data, file->size())) || !fine(cudaMalloc(&sum, sizeof(Sum))) ||
        !fine(cudaMemset(sum, 0, sizeof(Sum))) || !fine(cudaStreamCreate(&stream)))
        return 1;
    auto ran = file->read_all(dael::DeviceOut{data, file->size()}, dael::Stream{stream});
    if (!ran) return report(ran.error());

    add_up<<<256, 256, 0, stream>>>(static_cast<const unsigned char*>(data), file->size(),
                                    static_cast<Sum*>(sum));
    Sum got = 0;
    if (!fine(cudaGetLastError()) ||
        !fine(cudaMemcpyAsync(&got, sum, sizeof got, cudaMemcpyDefault, stream)) ||
        !fine(cudaStreamSynchronize(stream)))
        return 1;
    std::printf("%s: %llu bytes, %s\n", ran->backend.data(),
                static_cast<unsigned long long>(file->size()),
                got == expected ? "as on the host" : "WRONG");

    cudaStreamDestroy(stream);
    cudaFree(sum);
    cudaFree(data);
    std::fclose(disk);
    return got == expected ? 0 : 1;
}
