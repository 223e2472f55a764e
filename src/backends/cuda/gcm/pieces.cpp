// SPDX-License-Identifier: Apache-2.0
// A GCM message of host memory in pieces, through device memory: each piece is copied in, encrypted
// or decrypted, hashed and copied back. What does not fill a block waits for the next piece.
#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cuda/gcm/batch.hpp"
#include "modes/gcm.hpp"

namespace dael::cuda {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;  // bytes on the device at once

class CudaPieces final : public core::Pieces {
  public:
    CudaPieces(CudaDevice& device, const Cipher& cipher, std::shared_ptr<DeviceKeys> keys,
               std::uint32_t key)
        : device_(device),
          memory_(device.memory()),
          cipher_(cipher),
          keys_(std::move(keys)),
          key_(key),
          index_(device.index()),
          held_(std::make_unique<Held>(device.index())),
          buffer_(held_->buffer),
          batch_(held_->batch),
          stream_(held_->stream) {}
    ~CudaPieces() override {
        wipe(waiting_.data(), waiting_.size());
        held_->keys = keys_;
        end_or_keep(index_, std::move(held_));
    }

    Result<> allocate() {
        const Message one{.start = {}, .key = key_};
        const CudaKeys tables(keys_);
        DAEL_LET(batch, GcmPrepared::make(device_, cipher_, core::KeyList{{}, &tables},
                                          {&one, 1, Place::host, nullptr, nullptr}));
        batch_ = std::move(batch);
        const SetUp set_up(device_.index());
        DAEL_TRY(set_up.result());
        DAEL_TRY(buffer_.allocate(kHash + sizeof(Words4), true));
        DAEL_LET(stream, device_.order().create_stream());
        stream_ = stream;
        return {};
    }

    Result<> restart(const Start& start) override {
        start_ = start.first;
        counter_ = modes::counter_add32(start_, 1);
        wipe(waiting_.data(), waiting_.size());
        waiting_size_ = sent_ = 0;
        aad_size_ = size_ = 0;
        DAEL_TRY(memory_.fill(hash(), 0, sizeof(Words4), stream_));
        return device_.order().wait(stream_);
    }

    Result<std::unique_ptr<core::Pieces>> clone() const override {
        auto copy = std::make_unique<CudaPieces>(device_, cipher_, keys_, key_);
        DAEL_TRY(copy->allocate());
        DAEL_TRY(memory_.copy_within(copy->hash(), hash(), sizeof(Words4), copy->stream_));
        DAEL_TRY(device_.order().wait(copy->stream_));
        copy->start_ = start_;
        copy->counter_ = counter_;
        copy->waiting_ = waiting_;
        copy->waiting_size_ = waiting_size_;
        copy->sent_ = sent_;
        copy->aad_size_ = aad_size_;
        copy->size_ = size_;
        return std::unique_ptr<core::Pieces>(std::move(copy));
    }

    Result<> aad(HostIn bytes) override {
        aad_size_ += bytes.size();
        return in_pieces(bytes.size(), [&](std::size_t at, std::size_t size) -> Result<> {
            DAEL_TRY(memory_.copy_in(data(), bytes.data() + at, size, stream_));
            DAEL_TRY(hash_piece(size));
            return device_.order().wait(stream_);
        });
    }

    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        if (size_ == 0) DAEL_TRY(pad());  // the AAD's last block
        return in_pieces(size, [&](std::size_t at, std::size_t here) -> Result<> {
            const bool opens = cipher_.direction == Direction::decrypt;
            DAEL_TRY(memory_.copy_in(data(), in + at, here, stream_));
            if (opens) DAEL_TRY(hash_piece(here));
            DAEL_TRY(crypt(here));
            if (!opens) DAEL_TRY(hash_piece(here));
            DAEL_TRY(memory_.copy_out(out + at, buffer_.data() + sent_, here, stream_));
            return device_.order().wait(stream_);
        });
    }

    Result<core::Tag> finish() override {
        DAEL_TRY(pad());
        Message sizes{.size = size_, .aad_size = aad_size_, .start = start_, .key = key_};
        GcmBatch batch = batch_->batch();
        Words4* sum = hash();
        void* arguments[] = {&batch, &sizes, &sum};
        const int rounds = keys_->with(key_, [](const Key& key) { return key.rounds(); });
        DAEL_TRY(device_.launch(gcm_stream_tag_kernel(rounds), 1, false, arguments, stream_));
        Block tag;
        DAEL_TRY(memory_.copy_out(tag.data(), sum, tag.size(), stream_));
        DAEL_TRY(device_.order().wait(stream_));
        return core::Tag(tag);
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
            DAEL_TRY(memory_.copy_in(buffer_.data(), waiting_.data(), waiting_size_, stream_));
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
        return memory_.copy_out(waiting_.data(), buffer_.data() + whole, waiting_size_, stream_);
    }

    // Zeros fill what waits to a block.
    Result<> pad() {
        DAEL_TRY(memory_.copy_in(buffer_.data(), waiting_.data(), waiting_size_, stream_));
        const std::size_t size = std::exchange(waiting_size_, 0);
        return absorb(size);
    }

    Result<> absorb(std::size_t size) {
        if (size == 0) return {};
        const Message piece{.in = buffer_.data(),
                            .out = buffer_.data(),
                            .size = size,
                            .tag = reinterpret_cast<std::uint8_t*>(hash()),  // none is written
                            .key = key_};
        GcmBatch batch = batch_->batch();
        batch.opening = 1;  // hash what is there
        DAEL_TRY(
            memory_.copy_in(const_cast<Message*>(batch.messages), &piece, sizeof piece, stream_));
        Words4* sum = hash();
        if (is_long(piece)) {
            Part part = Part::data;
            void* plan[] = {&batch};  // of one message, by one block
            void* tiles[] = {&batch, &part};
            DAEL_TRY(device_.launch(gcm_plan_kernel(), 1, false, plan, stream_));
            DAEL_TRY(device_.launch(device_.hash_kernel(batch.matrices != nullptr),
                                    static_cast<unsigned>(device_.info().multiprocessors), false,
                                    tiles, stream_));
        }
        void* arguments[] = {&batch, &sum};
        return device_.launch(gcm_absorb_kernel(), 1, false, arguments, stream_);
    }

    // Counter mode over the piece.
    Result<> crypt(std::size_t size) {
        std::uint8_t* const piece = buffer_.data() + sent_;
        return keys_->with(key_, [&](const Key& key) {
            return modes::in_stretches(
                counter_, size_, size, [&](std::size_t at, std::size_t here, std::uint8_t skip) {
                    return device_.run({Mode::ctr}, core::KeyList{std::span(&key, 1)},
                                       Message{.in = piece + at,
                                               .out = piece + at,
                                               .size = here,
                                               .start = counter_,
                                               .skip = skip},
                                       stream_);
                });
        });
    }

    // What a piece that failed may still work on.
    struct Held final : Kept {
        explicit Held(int its_device) : device(its_device), buffer(its_device) {}
        ~Held() override {
            if (stream.handle) CudaOrder(device).destroy_stream(stream);
        }
        Result<> settle(bool waits) override {
            if (!stream.handle) return {};
            const CurrentDevice current(device);
            DAEL_TRY(current.result());
            const BesideCaptures beside;
            const auto handle = static_cast<cudaStream_t>(stream.handle);
            return checked(after_wait([&] {
                               return waits ? cudaStreamSynchronize(handle)
                                            : cudaStreamQuery(handle);
                           }),
                           "cudaStreamSynchronize");
        }

        const int device;
        std::shared_ptr<DeviceKeys> keys;
        DeviceBlock buffer;
        std::unique_ptr<GcmPrepared> batch;
        Stream stream;
    };

    CudaDevice& device_;
    Memory& memory_;
    const Cipher cipher_;
    const std::shared_ptr<DeviceKeys> keys_;
    const std::uint32_t key_;
    const int index_;
    std::unique_ptr<Held> held_;
    DeviceBlock& buffer_;
    std::unique_ptr<GcmPrepared>& batch_;
    Stream& stream_;
    Block start_{}, counter_{};  // J0; the counter of the block that the next byte is in
    Block waiting_{};            // ciphertext, or AAD
    std::size_t waiting_size_ = 0, sent_ = 0;
    std::uint64_t aad_size_ = 0, size_ = 0;
};

}  // namespace

Result<std::unique_ptr<core::Pieces>> CudaDevice::begin(const Cipher& cipher,
                                                        const core::KeyList& keys,
                                                        std::uint32_t key, const Start& start) {
    if (is_aegis(cipher.mode))
        return Error{Code::unsupported, "cuda: a message of " + std::string(name(cipher.mode)) +
                                            " is sequential; in pieces the backends 'cpu' and "
                                            "'auto' have it"};
    if (cipher.mode != Mode::gcm)
        return Error{Code::unsupported, "cuda: " + std::string(name(cipher.mode)) +
                                            " reads a message twice, and has no pieces"};
    DAEL_LET(tables, tables_of(keys, *this));
    DAEL_TRY(tables->keep(key, keys.list[key]));
    DAEL_TRY(believe(Kind::ctr_small, tables->rounds(key)));
    DAEL_TRY(believe(Kind::ctr, tables->rounds(key)));
    DAEL_TRY(believe(Kind::gcm_pieces, tables->rounds(key)));
    auto pieces = std::make_unique<CudaPieces>(*this, cipher, tables, key);
    DAEL_TRY(pieces->allocate());
    DAEL_TRY(pieces->restart(start));
    return std::unique_ptr<core::Pieces>(std::move(pieces));
}

}  // namespace dael::cuda
