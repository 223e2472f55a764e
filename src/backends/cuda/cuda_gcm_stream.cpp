// SPDX-License-Identifier: Apache-2.0
// A GCM message of host memory in pieces, through device memory: each piece is copied in, encrypted
// or decrypted, hashed and copied back. What does not fill a block waits for the next piece.
#include <algorithm>
#include <cstring>

#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/gcm_kernels.hpp"
#include "backends/cuda/gcm_memory.hpp"
#include "modes/gcm.hpp"

namespace dael::cuda {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;  // bytes on the device at once

}  // namespace

class CudaGcmStream final : public core::GcmStream {
  public:
    CudaGcmStream(CudaDevice& device, Direction direction, const GcmKeys& keys, std::uint32_t key)
        : device_(device),
          keys_(keys),
          host_key_(keys.keys->host[key]),
          key_(key),
          direction_(direction),
          buffer_(device.index_) {}
    ~CudaGcmStream() override {
        wipe(waiting_.data(), waiting_.size());
        if (!stream_.handle) return;
        (void)device_.wait(stream_);  // after an error, work may still be under way
        device_.destroy_stream(stream_);
    }

    Result<> start(std::span<const std::uint8_t> iv) {
        core::GcmSegment segment;
        segment.iv = iv.data();
        segment.iv_size = iv.size();
        segment.key = key_;
        auto batch = device_.prepare_gcm(keys_, std::span(&segment, 1));
        if (!batch) return std::move(batch).error();
        batch_.reset(static_cast<PreparedGcmBatch*>(batch->release()));
        const SetUp set_up(device_.index_);
        DAEL_TRY(set_up.result());
        DAEL_TRY(buffer_.allocate(kHash + sizeof(Words4), true));
        auto stream = device_.create_stream();
        if (!stream) return std::move(stream).error();
        stream_ = *stream;
        if (iv.size() == kNonceSize) {
            std::ranges::copy(iv, nonce_.begin());
            std::ranges::copy(iv, counter_.begin());
            counter_[15] = 1;
        } else {
            DAEL_TRY(device_.copy_out(counter_.data(), batch_->batch.counters, counter_.size(),
                                      stream_));
        }
        DAEL_TRY(device_.fill(hash(), 0, sizeof(Words4), stream_));
        DAEL_TRY(device_.wait(stream_));
        counter_ = modes::counter_add32(counter_, 1);
        return {};
    }

    Result<> aad(std::span<const std::uint8_t> bytes) override {
        aad_size_ += bytes.size();
        return in_pieces(bytes.size(), [&](std::size_t at, std::size_t size) -> Result<> {
            DAEL_TRY(device_.copy_in(data(), bytes.data() + at, size, stream_));
            DAEL_TRY(hash_piece(size));
            return device_.wait(stream_);
        });
    }

    Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out) override {
        if (size_ == 0) DAEL_TRY(pad());  // the AAD's last block
        return in_pieces(in.size(), [&](std::size_t at, std::size_t size) -> Result<> {
            DAEL_TRY(device_.copy_in(data(), in.data() + at, size, stream_));
            if (direction_ == Direction::decrypt) DAEL_TRY(hash_piece(size));
            DAEL_TRY(crypt(size));
            if (direction_ == Direction::encrypt) DAEL_TRY(hash_piece(size));
            DAEL_TRY(device_.copy_out(out + at, buffer_.data() + sent_, size, stream_));
            return device_.wait(stream_);
        });
    }

    Result<Block> finish() override {
        DAEL_TRY(pad());
        GcmMessage sizes;
        sizes.size = size_;
        sizes.aad_size = aad_size_;
        sizes.key = key_;
        Words4* sum = hash();
        void* arguments[] = {&batch_->batch, &sizes, &sum};
        DAEL_TRY(device_.launch(gcm_stream_tag_kernel(host_key_.rounds()), 1, false, arguments,
                                stream_));
        Block tag;
        DAEL_TRY(device_.copy_out(tag.data(), sum, tag.size(), stream_));
        DAEL_TRY(device_.wait(stream_));
        return tag;
    }

  private:
    // In the buffer: what waits of the last block, then the piece, then the hash.
    static constexpr std::size_t kHash = kPiece + 16;
    std::uint8_t* data() const { return buffer_.data() + waiting_size_; }
    Words4* hash() const { return reinterpret_cast<Words4*>(buffer_.data() + kHash); }

    template <class Do>
    Result<> in_pieces(std::size_t size, Do piece) {
        for (std::size_t at = 0; at < size;) {
            const std::size_t here = std::min(kPiece, size - at);
            DAEL_TRY(device_.copy_in(buffer_.data(), waiting_.data(), waiting_size_, stream_));
            sent_ = waiting_size_;
            DAEL_TRY(piece(at, here));
            at += here;
        }
        return {};
    }

    // Hashes the whole blocks of what waits and the piece; the rest waits.
    Result<> hash_piece(std::size_t size) {
        const std::size_t all = waiting_size_ + size, whole = all / kBlockSize * kBlockSize;
        DAEL_TRY(absorb(whole));
        waiting_size_ = all - whole;
        return device_.copy_out(waiting_.data(), buffer_.data() + whole, waiting_size_, stream_);
    }

    // Zeros fill what waits to a block.
    Result<> pad() {
        DAEL_TRY(device_.copy_in(buffer_.data(), waiting_.data(), waiting_size_, stream_));
        const std::size_t size = std::exchange(waiting_size_, 0);
        return absorb(size);
    }

    Result<> absorb(std::size_t size) {
        if (size == 0) return {};
        GcmMessage piece;
        piece.in = piece.out = buffer_.data();
        piece.size = size;
        piece.key = key_;
        piece.nonce = nonce_;
        GcmBatch batch = batch_->batch;
        batch.opening = 1;  // hash what is there
        DAEL_TRY(device_.copy_in(const_cast<GcmMessage*>(batch.messages), &piece, sizeof piece,
                                 stream_));
        Words4* sum = hash();
        if (is_long(piece)) {
            Part part = Part::data;
            void* plan[] = {&batch};
            void* tiles[] = {&batch, &part};
            DAEL_TRY(device_.launch(gcm_plan_kernel(), 1, false, plan, stream_));
            DAEL_TRY(device_.launch(batch.matrices ? ghash_tiles_kernel() : ghash_rows_kernel(),
                                    static_cast<unsigned>(device_.info_.multiprocessors), false,
                                    tiles, stream_));
        }
        void* arguments[] = {&batch, &sum};
        return device_.launch(gcm_absorb_kernel(), 1, false, arguments, stream_);
    }

    // Counter mode over the piece.
    Result<> crypt(std::size_t size) {
        std::uint8_t* const piece = buffer_.data() + sent_;
        return modes::in_stretches(
            counter_, size_, size, [&](std::size_t at, std::size_t here, std::uint8_t skip) {
                return device_.run({Mode::ctr, Direction::encrypt, &host_key_},
                                   core::Segment{piece + at, piece + at, here, counter_, skip},
                                   stream_);
            });
    }

    CudaDevice& device_;
    const GcmKeys keys_;
    const Key& host_key_;
    std::uint32_t key_;
    Direction direction_;
    DeviceBlock buffer_;
    std::unique_ptr<PreparedGcmBatch> batch_;
    Stream stream_;
    std::array<std::uint8_t, kNonceSize> nonce_{};  // of an IV of 96 bits
    Block counter_{};                               // of the block that the next byte is in
    Block waiting_{};                               // ciphertext, or AAD
    std::size_t waiting_size_ = 0, sent_ = 0;
    std::uint64_t aad_size_ = 0, size_ = 0;
};

Result<std::unique_ptr<core::GcmStream>> CudaDevice::gcm_stream(Direction direction,
                                                                const core::PreparedKeys& prepared,
                                                                std::uint32_t key,
                                                                std::span<const std::uint8_t> iv) {
    const auto* keys = dynamic_cast<const GcmKeys*>(&prepared);
    if (!keys || keys->keys->device != index_ || key >= keys->keys->host.size())
        return Error{Code::invalid_argument, "cuda: the key was prepared for another device"};
    auto stream = std::make_unique<CudaGcmStream>(*this, direction, *keys, key);
    DAEL_TRY(stream->start(iv));
    return std::unique_ptr<core::GcmStream>(std::move(stream));
}

}  // namespace dael::cuda
