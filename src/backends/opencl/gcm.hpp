// SPDX-License-Identifier: Apache-2.0
// Batches in GCM, and in counter mode with a key for each message.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "backends/opencl/device.hpp"
#include "backends/opencl/gcm_work.hpp"
#include "backends/opencl/parts.hpp"

namespace dael::opencl {

// Which steps a batch will go through: encryption alone for counter mode without tags, hashing
// alone for a message in pieces.
enum class GcmSteps { all, encryption, hashing };

// A kernel for each number of rounds: found when the batch is prepared for the keys that there are
// then, and when it runs for others that have been put in their places.
class KernelsByRounds {
  public:
    using Find = std::function<Result<Kernel*>(int rounds)>;
    KernelsByRounds() = default;
    explicit KernelsByRounds(Find find) : find_(std::move(find)) {}
    explicit operator bool() const { return find_ != nullptr; }
    Result<Kernel*> of(int rounds);

  private:
    Find find_;
    std::array<Kernel*, 3> found_{};
};

// Messages between the same buffers: what one launch can reach.
struct GcmPart {
    Buffers buffers{};
    bool keystream = false;  // there is no input
    bool many_keys = false;
    bool table = false;            // GHASH by tables
    std::uint32_t only_key = 0;    // the key of all, where they have but one
    std::vector<GcmItem> items{};  // until they are uploaded

    std::uint32_t count = 0, hash_count = 0, divided_count = 0, ctr_count = 0, log_blocks = 0;
    cl::Buffer list{}, hash_tiles{}, divided{}, ctr_tiles{};
    SecretBuffer sums{};
    Kernel *hash = nullptr, *combine = nullptr;
    KernelsByRounds tags{}, ctr{};
};

class GcmBatch final : public PreparedBatch {
  public:
    // Lists of valid messages. `cipher` is gcm, or for encryption alone gcm_ctr.
    static Result<std::unique_ptr<GcmBatch>> create(OpenClDevice& device, const OpenClKeys& keys,
                                                    const Cipher& cipher,
                                                    std::span<const Message> messages,
                                                    GcmSteps steps);
    ~GcmBatch() override;

    const std::uint32_t* results() const override { return codes_; }
    Result<> launch(const cl::CommandQueue& queue) override;

    // For hashing alone, of one message: into the first of the sums, which is the caller's to read.
    Result<> hash_only(const cl::CommandQueue& queue);
    const cl::Buffer& sums() const { return parts_.front().sums.get(); }

  private:
    using PreparedBatch::PreparedBatch;
    Result<> add(const Message& message, std::uint32_t result, GcmSteps steps);
    Result<> finish(GcmPart& part, GcmSteps steps);
    Result<> believe(const GcmPart& part);
    Result<> find_kernels(GcmPart& part);
    void keep_sums() noexcept;
    Result<> make_results(std::size_t count);
    std::vector<int> rounds_of(const GcmPart& part) const;

    // The steps of a run: GHASH into the part's sums, counter mode, tags made or compared.
    Result<> hash(const GcmPart& part, const cl::CommandQueue& queue);
    Result<> crypt(GcmPart& part, const cl::CommandQueue& queue);
    Result<> tags(GcmPart& part, const cl::CommandQueue& queue);
    bool opens() const { return cipher.direction == Direction::decrypt; }

    std::vector<GcmPart> parts_;
    std::uint32_t* codes_ = nullptr;  // device memory
    std::size_t codes_size_ = 0;      // bytes
    Region codes_region_;
};

}  // namespace dael::opencl
