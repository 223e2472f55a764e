// SPDX-License-Identifier: Apache-2.0
// AES in a kernel of your own: every thread has its own key. It expands it, makes the two children
// of its node of a tree of keys, encrypts a counter into a stream, and hashes under a fixed key.
// The host then checks all of it.
#include <cuda_runtime.h>
#include <daelstrom/device/aes.cuh>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

using namespace dael::device;

constexpr int kSkipped = 77;  // CTest shows a test that exits so as skipped
constexpr unsigned kThreads = 256, kGrid = 16, kNodes = 10000;
constexpr unsigned kStream = 100;  // bytes that each node's key makes

struct Node {
    Block left, right, hash;
    unsigned char stream[112];  // kStream of them used, the rest zero
};

// What one thread does with its node: the same code on the device and on the host.
template <class Cipher>
__host__ __device__ void grow(const Cipher& aes, const EncryptionKey<128>& fixed, const Block& seed,
                              Node& node) {
    const EncryptionKey<128> key = expand_key(aes, seed);
    node.left = aes.encrypt(key, Block{0, 0, 0, 0});
    node.right = aes.encrypt(key, Block{1, 0, 0, 0});
    node.hash = tmmo(aes, fixed, seed, Block{2, 0, 0, 0});
    // Counters from 2^64 on: apart from the two that made the children.
    ctr(aes, key, Block{0, 0x01000000, 0, 0}, 0, node.stream, node.stream, kStream);
}

template <int kTables>
__global__ void __launch_bounds__(kThreads)
    grow_all(const __grid_constant__ EncryptionKey<128> fixed, const Block* seeds, Node* nodes) {
    extern __shared__ __align__(16) unsigned char memory[];
    const SharedTables<kTables> aes(memory);  // once, by all threads of the block
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kNodes;
         i += gridDim.x * blockDim.x)
        grow(aes, fixed, seeds[i], nodes[i]);
}

bool fine(cudaError_t status) {
    if (status != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
    return status == cudaSuccess;
}

template <int kTables>
bool launch(const EncryptionKey<128>& fixed, const Block* seeds, Node* nodes) {
    const std::size_t shared = SharedTables<kTables>::kBytes;
    if (!fine(cudaFuncSetAttribute(grow_all<kTables>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared))))
        return false;
    grow_all<kTables><<<kGrid, kThreads, shared>>>(fixed, seeds, nodes);
    return fine(cudaGetLastError()) && fine(cudaDeviceSynchronize());
}

}  // namespace

int main() {
    int devices = 0, shared_memory = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::fprintf(stderr, "skipped: there is no NVIDIA GPU\n");
        return kSkipped;
    }
    if (!fine(cudaDeviceGetAttribute(&shared_memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0)))
        return 1;

    // Examples, all of them: seeds come from a random generator.
    const unsigned char fixed_bytes[16] = {'e', 'x', 'a', 'm', 'p', 'l', 'e'};
    const EncryptionKey<128> fixed = expand_key<128>(NoTables{}, fixed_bytes);
    std::vector<Block> seeds(kNodes);
    for (unsigned i = 0; i < kNodes; ++i) seeds[i] = {i, 0x9e3779b9u * i, ~i, 7};

    Block* device_seeds = nullptr;
    Node* device_nodes = nullptr;
    const std::size_t size = kNodes * sizeof(Node);
    if (!fine(cudaMalloc(&device_seeds, kNodes * sizeof(Block))) ||
        !fine(cudaMalloc(&device_nodes, size)) ||
        !fine(cudaMemcpy(device_seeds, seeds.data(), kNodes * sizeof(Block), cudaMemcpyDefault)))
        return 1;
    std::vector<Node> nodes(kNodes), expected(kNodes);  // streams of zeros

    bool right = true;
    const auto most = tables_that_fit(static_cast<std::size_t>(shared_memory));
    for (const int tables : {4, 2, 1}) {  // a program would take `most`
        if (tables > most) continue;
        if (!fine(cudaMemset(device_nodes, 0, size))) return 1;
        const bool ran = tables == 4   ? launch<4>(fixed, device_seeds, device_nodes)
                         : tables == 2 ? launch<2>(fixed, device_seeds, device_nodes)
                                       : launch<1>(fixed, device_seeds, device_nodes);
        if (!ran || !fine(cudaMemcpy(nodes.data(), device_nodes, size, cudaMemcpyDefault)))
            return 1;
        for (unsigned i = 0; i < kNodes; ++i) {
            expected[i] = {};
            grow(NoTables{}, fixed, seeds[i], expected[i]);
        }
        const bool same = std::memcmp(nodes.data(), expected.data(), size) == 0;
        std::printf("%d tables: %s\n", tables, same ? "as on the host" : "WRONG");
        right = right && same;
    }
    cudaFree(device_seeds);
    cudaFree(device_nodes);
    return right ? 0 : 1;
}
