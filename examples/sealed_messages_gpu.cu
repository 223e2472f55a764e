// SPDX-License-Identifier: Apache-2.0
// Seals thousands of records where they lie, in GPU memory: a kernel makes the list of messages,
// one call seals them all. The host then opens them with OpenSSL, and a forged one is refused.
#include <cuda_runtime.h>
#include <daelstrom/engine.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr int kSkipped = 77;  // CTest shows a test that exits so as skipped
constexpr std::uint32_t kRecords = 10000, kSize = 1500;

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return error.code == dael::Code::backend_absent ? kSkipped : 1;
}

bool fine(cudaError_t status) {
    if (status != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    return status == cudaSuccess;
}

// Fills the records, and says where each lies. Nonces count: none may come again under this key.
__global__ void make_records(dael::GcmMessage* list, unsigned char* data, unsigned char* tags,
                             std::uint64_t first_nonce) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kRecords) return;
    unsigned char* record = data + std::size_t{i} * kSize;
    for (std::uint32_t k = 0; k < kSize; ++k) record[k] = static_cast<unsigned char>(i + k);
    dael::GcmMessage message{};
    message.in = message.out = record;  // in place
    message.size = kSize;
    message.tag = tags + i * dael::kTagSize;
    auto* nonce = reinterpret_cast<unsigned char*>(&message.nonce);
    for (int k = 0; k < 8; ++k) nonce[k] = static_cast<unsigned char>((first_nonce + i) >> (8 * k));
    list[i] = message;
}

}  // namespace

int main() {
    auto engine = dael::Engine::open({.backend = "cuda"});
    if (!engine) return report(engine.error());
    const std::array<std::uint8_t, 16> bytes{7};  // an example: make yours of random bytes
    std::vector<dael::Key> key;
    key.push_back(std::move(*dael::Key::import(bytes)));

    dael::GcmMessage* list = nullptr;
    unsigned char *data = nullptr, *tags = nullptr;
    cudaStream_t stream = nullptr;
    if (!fine(cudaMalloc(&list, kRecords * sizeof *list)) ||
        !fine(cudaMalloc(&data, std::size_t{kRecords} * kSize)) ||
        !fine(cudaMalloc(&tags, kRecords * dael::kTagSize)) || !fine(cudaStreamCreate(&stream)))
        return 1;

    auto keys = engine->prepare_keys(key);
    if (!keys) return report(keys.error());
    auto batch = engine->prepare_gcm(*keys, list, kRecords);  // the list is read when it runs
    if (!batch) return report(batch.error());
    make_records<<<(kRecords + 255) / 256, 256, 0, stream>>>(list, data, tags, 1);
    auto sealed = engine->seal(*batch, dael::Stream{stream});  // launches and returns
    if (!sealed) return report(sealed.error());

    std::vector<dael::GcmMessage> records(kRecords);
    std::vector<std::uint8_t> secret(std::size_t{kRecords} * kSize),
        all_tags(kRecords * dael::kTagSize);
    if (!fine(cudaMemcpyAsync(records.data(), list, kRecords * sizeof *list, cudaMemcpyDefault,
                              stream)) ||
        !fine(cudaMemcpyAsync(secret.data(), data, secret.size(), cudaMemcpyDefault, stream)) ||
        !fine(cudaMemcpyAsync(all_tags.data(), tags, all_tags.size(), cudaMemcpyDefault, stream)) ||
        !fine(cudaStreamSynchronize(stream)))
        return 1;

    auto host = dael::Engine::open({.backend = "openssl"});
    if (!host) return report(host.error());
    auto host_keys = host->prepare_keys(key);
    if (!host_keys) return report(host_keys.error());
    for (std::uint32_t i = 0; i < kRecords; ++i) {  // the same records, in host memory
        records[i].in = records[i].out = &secret[std::size_t{i} * kSize];
        records[i].tag = &all_tags[i * dael::kTagSize];
    }
    secret[5 * kSize] ^= 1;  // a forgery
    std::vector<dael::Code> results(kRecords);
    if (auto opened = host->open_batch(*host_keys, records, results); !opened)
        return report(opened.error());
    bool right = results[5] == dael::Code::authentication;
    for (std::uint32_t i = 0; i < kRecords; ++i) {
        if (i == 5) continue;
        right = right && results[i] == dael::Code::ok;
        for (std::uint32_t k = 0; k < kSize; ++k)
            right = right && records[i].out[k] == static_cast<std::uint8_t>(i + k);
    }
    std::printf("%u records sealed on %s: %s\n", kRecords, sealed->backend.c_str(),
                right ? "opened on the host, the forged one refused" : "WRONG");
    cudaStreamDestroy(stream);
    cudaFree(list);
    cudaFree(data);
    cudaFree(tags);
    return right ? 0 : 1;
}
