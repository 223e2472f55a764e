// SPDX-License-Identifier: Apache-2.0
// A GCM message of host memory in pieces. What is to be hashed, AAD and then ciphertext, gathers in
// device memory, and is hashed when there is no more room for it, or no more of it.
#include <algorithm>

#include "backends/opencl/gcm_memory.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::opencl {
namespace {

constexpr std::size_t kRoom = std::size_t{4} << 20;  // bytes that gather

}  // namespace

class OpenClDevice::PiecewiseGcm final : public core::GcmStream {
  public:
    PiecewiseGcm(OpenClDevice& device, Direction direction, const GcmKeys& keys, std::uint32_t key)
        : device_(device), keys_(keys), key_(key), opens_(direction == Direction::decrypt) {}
    ~PiecewiseGcm() override {
        wipe(&h_, sizeof h_);
        wipe(&sum_, sizeof sum_);
        for (std::uint8_t* memory : {gathered_, plain_}) {
            if (!memory) continue;
            (void)device_.fill(memory, 0, kSize, stream_);
            (void)device_.wait(stream_);
            device_.release(memory);
        }
        if (stream_.handle) device_.destroy_stream(stream_);
    }

    Result<> start(std::span<const std::uint8_t> iv) {
        auto h = device_.hash_subkey(keys_, key_);
        if (!h) return std::move(h).error();
        h_ = *h;
        wipe(&*h, sizeof *h);
        first_ = modes::initial_counter(h_, iv);
        counter_ = modes::counter_add32(first_, 1);
        for (std::uint8_t** memory : {&gathered_, opens_ ? &plain_ : nullptr}) {
            if (!memory) continue;
            auto made = device_.allocate(kSize);
            if (!made) return std::move(made).error();
            *memory = static_cast<std::uint8_t*>(*made);
        }
        auto stream = device_.create_stream();
        if (!stream) return std::move(stream).error();
        stream_ = *stream;
        return {};
    }

    Result<> aad(std::span<const std::uint8_t> bytes) override {
        aad_size_ += bytes.size();
        return in_pieces(bytes.size(), [&](std::size_t at, std::size_t size) -> Result<> {
            DAEL_TRY(device_.copy_in(end(), bytes.data() + at, size, stream_));
            return device_.wait(stream_);  // the caller's memory may be page-locked
        });
    }

    Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out) override {
        if (size_ == 0) DAEL_TRY(pad());  // the AAD's last block
        return in_pieces(in.size(), [&](std::size_t at, std::size_t size) -> Result<> {
            DAEL_TRY(device_.copy_in(end(), in.data() + at, size, stream_));
            // The ciphertext stays, to be hashed.
            std::uint8_t* const made = opens_ ? plain_ + (end() - gathered_) : end();
            DAEL_TRY(crypt(end(), made, size));
            DAEL_TRY(device_.copy_out(out + at, made, size, stream_));
            return device_.wait(stream_);
        });
    }

    Result<Block> finish() override {
        DAEL_TRY(pad());
        DAEL_TRY(absorb());
        const Block lengths = modes::lengths_block(aad_size_, size_);
        sum_ = core::multiply(core::multiply(sum_, h_) ^ core::load_element(lengths.data()), h_);
        Block tag;  // the hash under the counter before the data's
        core::store_element(tag.data(), sum_);
        const auto copied = device_.copy_in(gathered_, tag.data(), tag.size(), stream_);
        wipe(tag.data(), tag.size());  // H can be computed from the hash
        DAEL_TRY(copied);
        DAEL_TRY(run_ctr({gathered_, gathered_, tag.size(), first_}));
        DAEL_TRY(device_.copy_out(tag.data(), gathered_, tag.size(), stream_));
        DAEL_TRY(device_.wait(stream_));
        return tag;
    }

  private:
    // What has been hashed is the first of the blocks to be hashed next (kernels/gcm.cl): a block,
    // then what gathers, the last of it filled up to a block.
    static constexpr std::size_t kSize = kBlockSize + kRoom;
    std::uint8_t* end() const { return gathered_ + kBlockSize + used_; }

    template <class Do>
    Result<> in_pieces(std::size_t size, Do piece) {
        for (std::size_t at = 0; at < size;) {
            if (used_ == kRoom) DAEL_TRY(absorb());
            const std::size_t here = std::min(kRoom - used_, size - at);
            DAEL_TRY(piece(at, here));
            used_ += here;
            at += here;
        }
        return {};
    }

    // Zeros fill what has gathered to a block.
    Result<> pad() {
        const std::size_t zeros = -used_ % kBlockSize;
        DAEL_TRY(device_.fill(end(), 0, zeros, stream_));
        used_ += zeros;
        return {};
    }

    // Hashes what has gathered, whole blocks.
    Result<> absorb() {
        if (used_ == 0) return {};
        Block before;
        core::store_element(before.data(), sum_);
        const auto copied = device_.copy_in(gathered_, before.data(), before.size(), stream_);
        wipe(before.data(), before.size());
        DAEL_TRY(copied);
        core::GcmSegment segment;
        segment.in = segment.out = gathered_;
        segment.size = kBlockSize + used_;
        segment.iv = first_.data();
        segment.iv_size = kNonceSize;  // which hashing does not look at
        segment.tag = gathered_;
        segment.key = key_;
        auto batch = device_.make_gcm(keys_, std::span(&segment, 1), GcmSteps::hashing);
        if (!batch) return std::move(batch).error();
        const GcmPart& part = (*batch)->parts.front();
        const cl::CommandQueue queue = device_.queue_of(stream_);
        DAEL_TRY(device_.hash(**batch, part, true, queue));
        Uint4 sum;
        DAEL_TRY(checked(queue.enqueueReadBuffer(part.sums.get(), CL_TRUE, 0, sizeof sum, &sum),
                         "clEnqueueReadBuffer"));
        const core::WipeAtEnd wiper(sum);
        DAEL_TRY((*batch)->ends.outcome());
        sum_ = to_element(sum);
        used_ = 0;
        return {};
    }

    Result<> run_ctr(const core::Segment& segment) {
        return device_.run({Mode::ctr, Direction::encrypt, &keys_.host[key_]}, segment, stream_);
    }

    Result<> crypt(const std::uint8_t* from, std::uint8_t* to, std::size_t size) {
        return modes::in_stretches(counter_, size_, size,
                                   [&](std::size_t at, std::size_t here, std::uint8_t skip) {
                                       return run_ctr({from + at, to + at, here, counter_, skip});
                                   });
    }

    OpenClDevice& device_;
    const GcmKeys& keys_;
    const std::uint32_t key_;
    const bool opens_;
    core::FieldElement h_, sum_;        // the hash subkey; of what has been hashed
    Block first_{}, counter_{};         // J0; of the block that the next byte is in
    std::uint8_t* gathered_ = nullptr;  // kSize bytes of device memory each
    std::uint8_t* plain_ = nullptr;
    Stream stream_;
    std::size_t used_ = 0;  // of kRoom
    std::uint64_t aad_size_ = 0, size_ = 0;
};

Result<std::unique_ptr<core::GcmStream>> OpenClDevice::gcm_stream(
    Direction direction, const core::PreparedKeys& prepared, std::uint32_t key,
    std::span<const std::uint8_t> iv) {
    const auto* keys = dynamic_cast<const GcmKeys*>(&prepared);
    if (!keys || keys->device != this || key >= keys->host.size())
        return Error{Code::invalid_argument, "opencl: the key was prepared for another device"};
    auto stream = std::make_unique<PiecewiseGcm>(*this, direction, *keys, key);
    DAEL_TRY(stream->start(iv));
    return std::unique_ptr<core::GcmStream>(std::move(stream));
}

}  // namespace dael::opencl
