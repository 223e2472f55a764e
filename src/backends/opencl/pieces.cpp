// SPDX-License-Identifier: Apache-2.0
// What is to be hashed, AAD and then ciphertext, gathers in device memory, and is hashed when there
// is no more room for it, or no more of it.
#include "backends/opencl/pieces.hpp"

#include <algorithm>

#include "backends/opencl/gcm.hpp"
#include "backends/opencl/kept.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::opencl {
namespace {

constexpr std::size_t kRoom = std::size_t{4} << 20;  // bytes that gather

class GcmPieces final : public core::Pieces {
  public:
    GcmPieces(OpenClDevice& device, Direction direction, const OpenClKeys& keys,
              std::uint32_t index, Key key)
        : device_(device),
          memory_(device.memory()),
          keys_(keys),
          index_(index),
          key_(std::move(key)),
          opens_(direction == Direction::decrypt) {}
    ~GcmPieces() override {
        wipe(&h_, sizeof h_);
        wipe(&sum_, sizeof sum_);
        for (std::uint8_t* memory : {gathered_, plain_}) {
            if (!memory) continue;
            (void)memory_.fill(memory, 0, kSize, stream_);
            if (device_.order().wait(stream_) || keep_until_over(memory)) memory_.release(memory);
        }
        if (stream_.handle) device_.order().destroy_stream(stream_);
    }

    // Once, before anything else.
    Result<> allocate() {
        h_ = modes::hash_subkey(key_.schedule());
        for (std::uint8_t** memory : {&gathered_, opens_ ? &plain_ : nullptr}) {
            if (!memory) continue;
            DAEL_LET(made, memory_.allocate(kSize));
            *memory = static_cast<std::uint8_t*>(made);
        }
        DAEL_LET(stream, device_.order().create_stream());
        stream_ = stream;
        return {};
    }

    Result<> restart(const Start& start) override {
        first_ = start.first;
        counter_ = modes::counter_add32(first_, 1);
        wipe(&sum_, sizeof sum_);
        used_ = 0;
        aad_size_ = size_ = 0;
        return {};
    }

    Result<std::unique_ptr<core::Pieces>> clone() const override {
        DAEL_LET(key, key_.duplicate());
        auto copy =
            std::make_unique<GcmPieces>(device_, opens_ ? Direction::decrypt : Direction::encrypt,
                                        keys_, index_, std::move(key));
        DAEL_TRY(copy->allocate());
        DAEL_TRY(
            memory_.copy_within(copy->gathered_, gathered_, kBlockSize + used_, copy->stream_));
        DAEL_TRY(device_.order().wait(copy->stream_));
        copy->sum_ = sum_;
        copy->first_ = first_;
        copy->counter_ = counter_;
        copy->used_ = used_;
        copy->aad_size_ = aad_size_;
        copy->size_ = size_;
        return std::unique_ptr<core::Pieces>(std::move(copy));
    }

    Result<> aad(HostIn bytes) override {
        aad_size_ += bytes.size();
        return in_pieces(bytes.size(), [&](std::size_t at, std::size_t size) -> Result<> {
            DAEL_TRY(memory_.copy_in(end(), bytes.data() + at, size, stream_));
            return device_.order().wait(stream_);  // the caller's memory may be page-locked
        });
    }

    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t bytes) override {
        if (size_ == 0) DAEL_TRY(pad());  // the AAD's last block
        return in_pieces(bytes, [&](std::size_t at, std::size_t size) -> Result<> {
            DAEL_TRY(memory_.copy_in(end(), in + at, size, stream_));
            // The ciphertext stays, to be hashed.
            std::uint8_t* const made = opens_ ? plain_ + (end() - gathered_) : end();
            DAEL_TRY(crypt(end(), made, size));
            DAEL_TRY(memory_.copy_out(out + at, made, size, stream_));
            return device_.order().wait(stream_);
        });
    }

    Result<core::Tag> finish() override {
        DAEL_TRY(pad());
        DAEL_TRY(absorb());
        const Block lengths = modes::lengths_block(aad_size_, size_);
        sum_ = modes::multiply(
            modes::add(modes::multiply(sum_, h_), modes::load_element(lengths.data())), h_);
        Block tag;  // the hash under the counter before the data's
        modes::store_element(tag.data(), sum_);
        const auto copied = memory_.copy_in(gathered_, tag.data(), tag.size(), stream_);
        wipe(tag.data(), tag.size());  // H can be computed from the hash
        DAEL_TRY(copied);
        DAEL_TRY(run_ctr(gathered_, gathered_, tag.size(), first_, 0));
        DAEL_TRY(memory_.copy_out(tag.data(), gathered_, tag.size(), stream_));
        DAEL_TRY(device_.order().wait(stream_));
        return core::Tag(tag);
    }

  private:
    // What has been hashed is the first of the blocks to be hashed next (kernels/gcm.cl): a block,
    // then what gathers, the last of it filled up to a block.
    static constexpr std::size_t kSize = kBlockSize + kRoom;
    std::uint8_t* end() const { return gathered_ + kBlockSize + used_; }

    // False: nobody can tell when that is, and it stays.
    bool keep_until_over(const std::uint8_t* memory) const noexcept try {
        cl::Event end;
        Ends ends;
        ends.make_room();
        if (device_.order().queue_of(stream_).enqueueMarkerWithWaitList(nullptr, &end) !=
            CL_SUCCESS)
            return false;
        ends.add(std::move(end));
        const auto found = memory_.find(memory, kSize);
        if (!found) return false;
        std::vector<SecretBuffer> buffers;
        buffers.push_back(SecretBuffer::around(found->buffer, device_.order().setup(), kSize));
        keep({std::move(ends)}, std::move(buffers));
        return true;
    } catch (...) {  // no memory to remember it
        return false;
    }

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
        DAEL_TRY(memory_.fill(end(), 0, zeros, stream_));
        used_ += zeros;
        return {};
    }

    // Hashes what has gathered, whole blocks.
    Result<> absorb() {
        if (used_ == 0) return {};
        Block before;
        modes::store_element(before.data(), sum_);
        const auto copied = memory_.copy_in(gathered_, before.data(), before.size(), stream_);
        wipe(before.data(), before.size());
        DAEL_TRY(copied);
        const Message message{.in = gathered_,
                              .out = gathered_,
                              .size = kBlockSize + used_,
                              .start = first_,  // which hashing does not look at
                              .key = index_};
        // As if it were opened, which hashes what goes in.
        DAEL_LET(batch, GcmBatch::create(device_, keys_, {Mode::gcm, Direction::decrypt},
                                         std::span(&message, 1), GcmSteps::hashing));
        const cl::CommandQueue queue = device_.order().queue_of(stream_);
        DAEL_TRY(batch->hash_only(queue));
        Uint4 sum;
        DAEL_TRY(checked(queue.enqueueReadBuffer(batch->sums(), CL_TRUE, 0, sizeof sum, &sum),
                         "clEnqueueReadBuffer"));
        const core::WipeAtEnd wiper(sum);
        DAEL_TRY(batch->outcome());
        sum_ = to_element(sum);
        used_ = 0;
        return {};
    }

    Result<> run_ctr(const std::uint8_t* from, std::uint8_t* to, std::size_t size,
                     const Block& counter, std::uint8_t skip) {
        return device_.run({Mode::ctr}, {std::span(&key_, 1)},
                           {.in = from, .out = to, .size = size, .start = counter, .skip = skip},
                           stream_);
    }

    Result<> crypt(const std::uint8_t* from, std::uint8_t* to, std::size_t size) {
        return modes::in_stretches(counter_, size_, size,
                                   [&](std::size_t at, std::size_t here, std::uint8_t skip) {
                                       return run_ctr(from + at, to + at, here, counter_, skip);
                                   });
    }

    OpenClDevice& device_;
    OpenClMemory& memory_;
    const OpenClKeys& keys_;
    const std::uint32_t index_;
    const Key key_;
    const bool opens_;
    modes::Element h_{}, sum_{};        // the hash subkey; of what has been hashed
    Block first_{}, counter_{};         // J0; of the block that the next byte is in
    std::uint8_t* gathered_ = nullptr;  // kSize bytes of device memory each
    std::uint8_t* plain_ = nullptr;
    Stream stream_;
    std::size_t used_ = 0;  // of kRoom
    std::uint64_t aad_size_ = 0, size_ = 0;
};

}  // namespace

Result<std::unique_ptr<core::Pieces>> begin_pieces(OpenClDevice& device, Direction direction,
                                                   const OpenClKeys& keys, std::uint32_t index,
                                                   const Key& key, const Block& start) {
    if (after_fork()) return fork_failure();
    DAEL_LET(copy, key.duplicate());
    auto pieces = std::make_unique<GcmPieces>(device, direction, keys, index, std::move(copy));
    DAEL_TRY(pieces->allocate());
    DAEL_TRY(pieces->restart(start));
    return std::unique_ptr<core::Pieces>(std::move(pieces));
}

}  // namespace dael::opencl
