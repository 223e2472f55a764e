// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/pieces.hpp"

#include <algorithm>
#include <utility>

#include <daelstrom/gcm.hpp>

namespace dael::cpu {
namespace {

class GcmPieces final : public core::Pieces {
  public:
    GcmPieces(Direction direction, const GcmKey& key, const Key& raw, const Block& start) noexcept
        : direction_(direction), key_(key), raw_(raw) {
        begin(start);
    }
    ~GcmPieces() override { wipe(tail_.data(), tail_.size()); }

    // GMAC hashes its message as AAD, but remembers a block begun as if it were data's. So it is
    // given whole blocks only, and end_aad() says how long they really were.
    Result<> aad(HostIn bytes) override {
        const std::size_t begun = aad_size_ % kBlockSize;
        aad_size_ += bytes.size();
        if (begun != 0) {
            const std::size_t count = std::min(kBlockSize - begun, bytes.size());
            std::ranges::copy(bytes.first(count),
                              tail_.begin() + static_cast<std::ptrdiff_t>(begun));
            if (begun + count < kBlockSize) return {};
            key_.calls.more_aad(&key_.data, &context_, tail_.data(), kBlockSize);
            bytes = bytes.subspan(count);
        }
        while (bytes.size() >= kBlockSize) {
            const std::size_t whole = std::min(kGcmPiece, bytes.size() / kBlockSize * kBlockSize);
            key_.calls.more_aad(&key_.data, &context_, bytes.data(), whole);
            bytes = bytes.subspan(whole);
        }
        tail_.fill(0);
        std::ranges::copy(bytes, tail_.begin());
        return {};
    }

    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        end_aad();
        const auto update =
            direction_ == Direction::encrypt ? key_.calls.encrypt : key_.calls.decrypt;
        for (std::size_t done = 0; done < size; done += kGcmPiece)
            update(&key_.data, &context_, out + done, in + done, std::min(kGcmPiece, size - done));
        return {};
    }

    Result<core::Tag> finish() override {
        end_aad();
        const bool encrypt = direction_ == Direction::encrypt;
        Block tag;
        (encrypt ? key_.calls.end_encrypt : key_.calls.end_decrypt)(&key_.data, &context_,
                                                                    tag.data(), tag.size());
        return core::Tag(tag);
    }

    Result<std::unique_ptr<core::Pieces>> clone() const override {
        return std::unique_ptr<core::Pieces>(std::make_unique<GcmPieces>(*this));
    }
    Result<> restart(const Start& start) override {
        begin(start.first);
        return {};
    }

  private:
    void begin(const Block& start) noexcept {
        const GcmIv iv(raw_.schedule(), start);
        key_.calls.begin_aad(&key_.data, &context_, iv.data(), iv.size());
        tail_.fill(0);
        aad_size_ = 0;
        aad_ended_ = false;
    }
    void end_aad() noexcept {
        if (std::exchange(aad_ended_, true)) return;
        if (aad_size_ % kBlockSize != 0)
            key_.calls.more_aad(&key_.data, &context_, tail_.data(), kBlockSize);
        context_.aad_length = aad_size_;
    }

    const Direction direction_;
    const GcmKey& key_;
    const Key& raw_;
    GcmContext context_;
    Block tail_{};  // a block of AAD that has begun, zeros after it
    std::uint64_t aad_size_ = 0;
    bool aad_ended_ = false;
};

}  // namespace

std::unique_ptr<core::Pieces> begin(Direction direction, const GcmKey& key, const Key& raw,
                                    const Block& start) {
    return std::make_unique<GcmPieces>(direction, key, raw, start);
}

}  // namespace dael::cpu
