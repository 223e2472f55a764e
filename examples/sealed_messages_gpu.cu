// SPDX-License-Identifier: Apache-2.0
// Seals thousands of records where they lie, in GPU memory: a kernel makes the list of messages,
// one launch numbers and seals them all. The host then opens them with OpenSSL, and a forged one is
// refused.
#include <cuda_runtime.h>
#include <daelstrom/gcm.hpp>

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

// Fills the records, and says where each lies.
__global__ void make_records(dael::Message* list, unsigned char* data, unsigned char* tags) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kRecords) return;
    unsigned char* record = data + std::size_t{i} * kSize;
    for (std::uint32_t k = 0; k < kSize; ++k) record[k] = static_cast<unsigned char>(i + k);
    dael::Message message{};
    message.in = message.out = record;  // in place
    message.size = kSize;
    message.tag = tags + i * dael::gcm::kTagSize;
    list[i] = message;
}

}  // namespace

int main() {
    auto engine = dael::Engine::open({.backend = "cuda"});
    if (!engine) return report(engine.error());
    const std::array<std::uint8_t, 16> bytes{7};  // an example: make yours of random bytes
    std::vector<dael::Key> key;
    key.push_back(std::move(*dael::Key::import(bytes)));

    dael::Message* list = nullptr;
    dael::DeviceNonces* nonces = nullptr;
    unsigned char *data = nullptr, *tags = nullptr;
    cudaStream_t stream = nullptr;
    const dael::DeviceNonces from_zero{.fixed = {'g', 'p', 'u', '0'}};  // for a new key
    if (!fine(cudaMalloc(&list, kRecords * sizeof *list)) ||
        !fine(cudaMalloc(&nonces, sizeof *nonces)) ||
        !fine(cudaMemcpy(nonces, &from_zero, sizeof *nonces, cudaMemcpyDefault)) ||
        !fine(cudaMalloc(&data, std::size_t{kRecords} * kSize)) ||
        !fine(cudaMalloc(&tags, kRecords * dael::gcm::kTagSize)) ||
        !fine(cudaStreamCreate(&stream)))
        return 1;

    auto keys = engine->keys(key);
    if (!keys) return report(keys.error());
    dael::Messages records{.list = list, .count = kRecords, .place = dael::Place::device};
    records.nonces = nonces;  // counts on: each launch seals under nonces of its own
    auto batch = engine->prepare(dael::gcm::sealing(), *keys, records);
    if (!batch) return report(batch.error());
    make_records<<<(kRecords + 255) / 256, 256, 0, stream>>>(list, data, tags);
    auto sealed = engine->launch(*batch, dael::Stream{stream});  // reads the list, and returns
    if (!sealed) return report(sealed.error());

    std::vector<dael::Message> messages(kRecords);
    std::vector<std::uint8_t> secret(std::size_t{kRecords} * kSize),
        all_tags(kRecords * dael::gcm::kTagSize);
    if (!fine(cudaMemcpyAsync(messages.data(), list, kRecords * sizeof *list, cudaMemcpyDefault,
                              stream)) ||
        !fine(cudaMemcpyAsync(secret.data(), data, secret.size(), cudaMemcpyDefault, stream)) ||
        !fine(cudaMemcpyAsync(all_tags.data(), tags, all_tags.size(), cudaMemcpyDefault, stream)) ||
        !fine(cudaStreamSynchronize(stream)))
        return 1;

    auto host = dael::Engine::open({.backend = "openssl"});
    if (!host) return report(host.error());
    auto host_keys = host->keys(key);
    if (!host_keys) return report(host_keys.error());
    for (std::uint32_t i = 0; i < kRecords; ++i) {  // the same records, in host memory
        messages[i].in = messages[i].out = &secret[std::size_t{i} * kSize];
        messages[i].tag = &all_tags[i * dael::gcm::kTagSize];
    }
    secret[5 * kSize] ^= 1;  // a forgery
    std::vector<dael::Code> codes(kRecords);
    if (auto opened = host->run(dael::gcm::opening(), *host_keys, messages, codes); !opened)
        return report(opened.error());
    bool right = codes[5] == dael::Code::authentication;
    for (std::uint32_t i = 0; i < kRecords; ++i) {
        if (i == 5) continue;
        right = right && codes[i] == dael::Code::ok;
        for (std::uint32_t k = 0; k < kSize; ++k)
            right = right && messages[i].out[k] == static_cast<std::uint8_t>(i + k);
    }
    std::printf("%u records sealed on %s: %s\n", kRecords, sealed->backend.data(),
                right ? "opened on the host, the forged one refused" : "WRONG");
    cudaStreamDestroy(stream);
    cudaFree(list);
    cudaFree(nonces);
    cudaFree(data);
    cudaFree(tags);
    return right ? 0 : 1;
}
