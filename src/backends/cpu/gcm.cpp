// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gcm.hpp"

#include <algorithm>
#include <cstring>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "core/secure_memory.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu {
namespace {

// Longer messages go piece by piece, far from where 32-bit arithmetic might hide, and so short that
// tests go past it. A multiple of 16, so that no piece but the last ends inside a block.
constexpr std::size_t kPiece = std::size_t{16} << 20;

// The library's functions for one key size.
struct Calls {
    aes_gcm_enc_dec_t seal, open;
    aes_gcm_init_var_iv_t begin;
    aes_gcm_enc_dec_update_t encrypt, decrypt;
    aes_gcm_enc_dec_finalize_t end_encrypt, end_decrypt;
    aes_gmac_init_t begin_aad;
    aes_gmac_update_t more_aad;
};

std::array<Calls, 3> calls_of(const IMB_MGR& m) noexcept {
    return {{{m.gcm128_enc, m.gcm128_dec, m.gcm128_init_var_iv, m.gcm128_enc_update,
              m.gcm128_dec_update, m.gcm128_enc_finalize, m.gcm128_dec_finalize, m.gmac128_init,
              m.gmac128_update},
             {m.gcm192_enc, m.gcm192_dec, m.gcm192_init_var_iv, m.gcm192_enc_update,
              m.gcm192_dec_update, m.gcm192_enc_finalize, m.gcm192_dec_finalize, m.gmac192_init,
              m.gmac192_update},
             {m.gcm256_enc, m.gcm256_dec, m.gcm256_init_var_iv, m.gcm256_enc_update,
              m.gcm256_dec_update, m.gcm256_enc_finalize, m.gcm256_dec_finalize, m.gmac256_init,
              m.gmac256_update}}};
}

// The header asks for this alignment in its Windows build only.
struct alignas(64) PreparedKey {
    gcm_key_data data;
    const Calls* calls;
};

class Keys final : public core::PreparedKeys {
  public:
    Keys(const IMB_MGR& manager, void* memory, std::size_t count) noexcept
        : calls_(calls_of(manager)), keys_(static_cast<PreparedKey*>(memory)), count_(count) {}
    ~Keys() override { core::secure_release(keys_, count_ * sizeof(PreparedKey)); }
    const PreparedKey& operator[](std::size_t i) const noexcept { return keys_[i]; }

    void set(std::size_t i, const IMB_MGR& manager, const core::KeySchedule& key) noexcept {
        const aes_gcm_pre_t expand[] = {manager.gcm128_pre, manager.gcm192_pre, manager.gcm256_pre};
        const auto which = static_cast<std::size_t>(key.key_bytes / 8 - 2);
        expand[which](key.raw.data(), &keys_[i].data);
        keys_[i].calls = &calls_[which];
    }

  private:
    const std::array<Calls, 3> calls_;
    PreparedKey* const keys_;
    const std::size_t count_;
};

// The library's state of a message, in which keystream remains.
struct Context : gcm_context_data {
    Context() noexcept {}  // the library fills it
    ~Context() { wipe(this, sizeof *this); }
};

// A message in pieces: any IV, any length.
void piece_by_piece(Direction direction, const PreparedKey& key, Context& context,
                    const core::GcmSegment& s, std::uint8_t* tag) noexcept {
    const Calls& calls = *key.calls;
    const bool encrypt = direction == Direction::encrypt;
    const auto update = encrypt ? calls.encrypt : calls.decrypt;
    calls.begin(&key.data, &context, s.iv, s.iv_size, s.aad, s.aad_size);
    for (std::size_t done = 0; done < s.size; done += kPiece)
        update(&key.data, &context, s.out + done, s.in + done, std::min(kPiece, s.size - done));
    (encrypt ? calls.end_encrypt : calls.end_decrypt)(&key.data, &context, tag, kTagSize);
}

// Writes the whole tag. Decrypts without looking at it.
inline void transform(Direction direction, const PreparedKey& key, Context& context,
                      const core::GcmSegment& s, std::uint8_t* tag) noexcept {
    if (s.iv_size != kNonceSize || s.size > kPiece)
        return piece_by_piece(direction, key, context, s, tag);
    const auto call = direction == Direction::encrypt ? key.calls->seal : key.calls->open;
    call(&key.data, &context, s.out, s.in, s.size, s.iv, s.aad, s.aad_size, tag, kTagSize);
}

class Stream final : public core::GcmStream {
  public:
    Stream(Direction direction, const PreparedKey& key, std::span<const std::uint8_t> iv) noexcept
        : direction_(direction), key_(key) {
        key.calls->begin_aad(&key.data, &context_, iv.data(), iv.size());
    }
    ~Stream() override { wipe(tail_.data(), tail_.size()); }

    // GMAC hashes its message as AAD, but remembers a block begun as if it were data's. So it is
    // given whole blocks only, and end_aad() says how long they really were.
    Result<> aad(std::span<const std::uint8_t> bytes) override {
        const std::size_t begun = aad_size_ % kBlockSize;
        aad_size_ += bytes.size();
        if (begun != 0) {
            const std::size_t count = std::min(kBlockSize - begun, bytes.size());
            std::ranges::copy(bytes.first(count),
                              tail_.begin() + static_cast<std::ptrdiff_t>(begun));
            if (begun + count < kBlockSize) return {};
            key_.calls->more_aad(&key_.data, &context_, tail_.data(), kBlockSize);
            bytes = bytes.subspan(count);
        }
        while (bytes.size() >= kBlockSize) {
            const std::size_t whole = std::min(kPiece, bytes.size() / kBlockSize * kBlockSize);
            key_.calls->more_aad(&key_.data, &context_, bytes.data(), whole);
            bytes = bytes.subspan(whole);
        }
        tail_.fill(0);
        std::ranges::copy(bytes, tail_.begin());
        return {};
    }

    Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out) override {
        end_aad();
        const auto update =
            direction_ == Direction::encrypt ? key_.calls->encrypt : key_.calls->decrypt;
        for (std::size_t done = 0; done < in.size(); done += kPiece)
            update(&key_.data, &context_, out + done, in.data() + done,
                   std::min(kPiece, in.size() - done));
        return {};
    }

    Result<Block> finish() override {
        end_aad();
        const bool encrypt = direction_ == Direction::encrypt;
        Block tag;
        (encrypt ? key_.calls->end_encrypt : key_.calls->end_decrypt)(&key_.data, &context_,
                                                                      tag.data(), tag.size());
        return tag;
    }

  private:
    void end_aad() noexcept {
        if (std::exchange(aad_ended_, true)) return;
        if (aad_size_ % kBlockSize != 0)
            key_.calls->more_aad(&key_.data, &context_, tail_.data(), kBlockSize);
        context_.aad_length = aad_size_;
    }

    const Direction direction_;
    const PreparedKey& key_;
    Context context_;
    Block tail_{};  // a block of AAD that has begun, zeros after it
    std::uint64_t aad_size_ = 0;
    bool aad_ended_ = false;
};

}  // namespace

Result<std::unique_ptr<core::PreparedKeys>> prepare_gcm_keys(IMB_MGR* manager,
                                                             std::span<const Key> keys) {
    void* memory =
        core::secure_allocate(std::max<std::size_t>(keys.size(), 1) * sizeof(PreparedKey));
    if (!memory) return Error{Code::out_of_memory, "no memory for the keys' GCM tables"};
    auto prepared = std::make_unique<Keys>(*manager, memory, std::max<std::size_t>(keys.size(), 1));
    for (std::size_t i = 0; i < keys.size(); ++i) prepared->set(i, *manager, keys[i].schedule());
    return std::unique_ptr<core::PreparedKeys>(std::move(prepared));
}

void gcm(Direction direction, const core::PreparedKeys& prepared,
         std::span<const core::GcmSegment> segments, std::span<Code> results) {
    const auto& keys = static_cast<const Keys&>(prepared);
    Context context;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const core::GcmSegment& segment = segments[i];
        const PreparedKey& key = keys[segment.key];
        results[i] = Code::ok;
        Block tag;
        if (direction == Direction::encrypt) {
            const bool whole = segment.tag_size == kTagSize;
            transform(direction, key, context, segment, whole ? segment.tag : tag.data());
            if (!whole) std::copy_n(tag.begin(), segment.tag_size, segment.tag);
        } else {
            transform(direction, key, context, segment, tag.data());
            if (modes::equal_tags(tag.data(), segment.tag, segment.tag_size)) continue;
            // In place, the same keystream once more makes it the ciphertext that it was.
            if (segment.in == segment.out)
                transform(Direction::encrypt, key, context, segment, tag.data());
            else
                wipe(segment.out, segment.size);
            results[i] = Code::authentication;
        }
    }
}

std::unique_ptr<core::GcmStream> gcm_stream(Direction direction, const core::PreparedKeys& keys,
                                            std::uint32_t key, std::span<const std::uint8_t> iv) {
    return std::make_unique<Stream>(direction, static_cast<const Keys&>(keys)[key], iv);
}

}  // namespace dael::cpu
