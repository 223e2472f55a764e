// SPDX-License-Identifier: Apache-2.0
// Batches whose messages one kernel takes from their nonces to their tags: AEGIS, XAES-256-GCM,
// AES-GCM-SIV.
#pragma once

#include <array>
#include <vector>

#include "backends/opencl/device.hpp"
#include "backends/opencl/parts.hpp"

namespace dael::opencl {

// The twin of kernels/aead.cl's: places are bytes from the beginning of their buffers.
struct AeadItem {
    std::uint64_t in, out, aad, tag;
    std::uint64_t size, aad_size;
    Uint4 start, rest;
    std::uint32_t key, result, in_place, unused;
};
static_assert(sizeof(AeadItem) == 96);

class AeadBatch final : public PreparedBatch {
  public:
    // Lists of valid messages.
    static Result<std::unique_ptr<AeadBatch>> create(OpenClDevice& device, const OpenClKeys& keys,
                                                     const Cipher& cipher,
                                                     std::span<const Message> messages);
    ~AeadBatch() override;

    const std::uint32_t* results() const override { return codes_; }
    Result<> launch(const cl::CommandQueue& queue) override;

  private:
    // By what a message is done: an item to each of AEGIS's states, a team, or a work-group.
    enum Width { narrow, wide };
    struct List {
        std::vector<AeadItem> items;  // until they are uploaded
        cl::Buffer buffer;
        std::uint32_t count = 0;
    };
    // Messages between the same buffers.
    struct Part {
        Buffers buffers;
        bool many_keys = false;
        std::uint32_t only_key = 0;  // the key of all, where they have but one
        std::vector<AeadItem> items{};
        std::array<List, 2> lists{};
    };
    using PreparedBatch::PreparedBatch;
    Result<> add(const Message& message, std::uint32_t result);
    Result<> finish(Part& part);
    std::size_t count_wide(const Part& part) const;
    Result<> find_kernels(const Part& part);
    Result<> make_results(std::size_t count);
    std::vector<int> rounds_of(const Part& part) const;
    Tuning shape() const;
    Result<Kernel*> kernel(int rounds, Width width);
    unsigned groups(std::uint32_t messages, Width width) const;

    std::vector<Part> parts_;
    std::uint32_t* codes_ = nullptr;  // device memory
    std::size_t codes_size_ = 0;      // bytes
    Region codes_region_;
};

}  // namespace dael::opencl
