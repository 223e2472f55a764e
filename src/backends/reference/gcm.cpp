// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/gcm.hpp"

#include <algorithm>
#include <deque>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "modes/gcm.hpp"

namespace dael::reference {
namespace {

struct Keys final : core::PreparedKeys {
    std::deque<ExpandedKey> expanded;  // which stay where they are
};

// A block as one number, its first byte uppermost: u_0 of 6.3 is the highest bit.
using Bits = unsigned __int128;

Bits to_bits(const Block& block) noexcept {
    Bits bits = 0;
    for (const std::uint8_t byte : block) bits = bits << 8 | byte;
    return bits;
}
Block to_block(Bits bits) noexcept {
    Block block;
    for (std::size_t i = kBlockSize; i-- > 0; bits >>= 8)
        block[i] = static_cast<std::uint8_t>(bits);
    return block;
}

// 6.3, algorithm 1: X * Y.
Bits product(Bits x, Bits y) noexcept {
    constexpr Bits kR = Bits{0xe1} << 120;
    Bits z = 0, v = y;
    for (int i = 0; i < 128; ++i) {
        const Bits x_i = x >> (127 - i) & 1, lsb_1 = v & 1;
        z ^= v & (0 - x_i);
        v = (v >> 1) ^ (kR & (0 - lsb_1));
    }
    return z;
}

// 6.4, algorithm 2, fed with any number of bytes at a time.
class Ghash {
  public:
    explicit Ghash(Bits h) noexcept : h_(h) {}
    ~Ghash() { wipe(this, sizeof *this); }
    void add(std::uint8_t byte) noexcept {
        block_[used_++] = byte;
        if (used_ == kBlockSize) end_block();
    }
    void add(std::span<const std::uint8_t> bytes) noexcept {
        for (const std::uint8_t byte : bytes) add(byte);
    }
    // Zeros up to the next whole block.
    void pad() noexcept {
        if (used_ != 0) end_block();
    }
    Bits value() const noexcept { return y_; }

  private:
    void end_block() noexcept {
        y_ = product(y_ ^ to_bits(block_), h_);
        block_.fill(0);
        used_ = 0;
    }
    Bits h_, y_ = 0;
    Block block_{};
    std::size_t used_ = 0;
};

Block lengths(std::uint64_t first, std::uint64_t second) noexcept {
    return to_block(Bits{8 * first} << 64 | 8 * second);
}

// 6.2: the standard incrementing function, s = 32.
Bits inc_32(Bits x) noexcept {
    const Bits low = (x + 1) & 0xffffffff;
    return (x >> 32 << 32) | low;
}

// 7.1, step 2.
Bits pre_counter(Bits h, std::span<const std::uint8_t> iv) noexcept {
    if (iv.size() == 12) {
        Block j0{};
        std::ranges::copy(iv, j0.begin());
        j0[15] = 1;
        return to_bits(j0);
    }
    Ghash ghash(h);
    ghash.add(iv);
    ghash.pad();
    ghash.add(lengths(0, iv.size()));
    return ghash.value();
}

// 7.1 and 7.2, which differ in what goes into GHASH: always the ciphertext.
class Gcm final : public core::GcmStream {
  public:
    Gcm(Direction direction, const ExpandedKey& w, std::span<const std::uint8_t> iv) noexcept
        : direction_(direction),
          w_(w),
          h_(to_bits(cipher(Block{}, w))),
          j0_(pre_counter(h_, iv)),
          counter_(j0_),
          ghash_(h_) {}
    ~Gcm() override {
        for (Bits* bits : {&h_, &j0_, &counter_}) wipe(bits, sizeof *bits);
        wipe(keystream_.data(), keystream_.size());
    }

    Result<> aad(std::span<const std::uint8_t> bytes) override {
        ghash_.add(bytes);
        aad_size_ += bytes.size();
        return {};
    }

    // GCTR (6.5) from inc_32(J0) on, and GHASH of the ciphertext.
    Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out) override {
        if (!in.empty() && size_ == 0) ghash_.pad();  // the AAD ends here
        for (std::size_t i = 0; i < in.size(); ++i, ++size_) {
            if (size_ % kBlockSize == 0) {
                counter_ = inc_32(counter_);
                keystream_ = cipher(to_block(counter_), w_);
            }
            const std::uint8_t byte = in[i];
            out[i] = byte ^ keystream_[size_ % kBlockSize];
            ghash_.add(direction_ == Direction::encrypt ? out[i] : byte);
        }
        return {};
    }

    // The ciphertext of a message without its plaintext.
    void authenticate(std::span<const std::uint8_t> ciphertext) noexcept {
        ghash_.pad();
        ghash_.add(ciphertext);
        size_ += ciphertext.size();
    }

    Result<Block> finish() override {
        ghash_.pad();
        ghash_.add(lengths(aad_size_, size_));
        return to_block(ghash_.value() ^ to_bits(cipher(to_block(j0_), w_)));
    }

  private:
    const Direction direction_;
    const ExpandedKey& w_;
    Bits h_, j0_, counter_;
    Ghash ghash_;
    Block keystream_{};
    std::uint64_t aad_size_ = 0, size_ = 0;
};

Result<> seal(const ExpandedKey& w, const core::GcmSegment& segment) {
    Gcm gcm(Direction::encrypt, w, {segment.iv, segment.iv_size});
    DAEL_TRY(gcm.aad({segment.aad, segment.aad_size}));
    DAEL_TRY(gcm.update({segment.in, segment.size}, segment.out));
    const auto tag = gcm.finish();
    std::copy_n(tag->begin(), segment.tag_size, segment.tag);
    return {};
}

// The tag first, so that nothing of a forged message is ever decrypted.
Result<Code> open(const ExpandedKey& w, const core::GcmSegment& segment) {
    const std::span iv{segment.iv, segment.iv_size};
    Gcm verifier(Direction::decrypt, w, iv);
    DAEL_TRY(verifier.aad({segment.aad, segment.aad_size}));
    verifier.authenticate({segment.in, segment.size});
    const auto tag = verifier.finish();
    if (!modes::equal_tags(tag->data(), segment.tag, segment.tag_size)) return Code::authentication;
    DAEL_TRY(Gcm(Direction::decrypt, w, iv).update({segment.in, segment.size}, segment.out));
    return Code::ok;
}

}  // namespace

Result<std::unique_ptr<core::PreparedKeys>> prepare_gcm_keys(std::span<const Key> keys) {
    auto prepared = std::make_unique<Keys>();
    for (const Key& key : keys) prepared->expanded.emplace_back(key.schedule().key());
    return std::unique_ptr<core::PreparedKeys>(std::move(prepared));
}

Result<> gcm(Direction direction, const core::PreparedKeys& keys,
             std::span<const core::GcmSegment> segments, std::span<Code> results) {
    const auto& expanded = static_cast<const Keys&>(keys).expanded;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        results[i] = Code::ok;
        if (direction == Direction::encrypt) {
            DAEL_TRY(seal(expanded[segments[i].key], segments[i]));
        } else {
            const auto opened = open(expanded[segments[i].key], segments[i]);
            if (!opened) return opened.error();
            results[i] = *opened;
        }
    }
    return {};
}

Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                    const core::PreparedKeys& keys,
                                                    std::uint32_t key,
                                                    std::span<const std::uint8_t> iv) {
    const auto& expanded = static_cast<const Keys&>(keys).expanded;
    return std::unique_ptr<core::GcmStream>(std::make_unique<Gcm>(direction, expanded[key], iv));
}

Block gmac(const ExpandedKey& w, std::span<const std::uint8_t> iv,
           std::span<const std::uint8_t> aad) {
    Gcm gcm(Direction::encrypt, w, iv);
    (void)gcm.aad(aad);
    return *gcm.finish();
}

}  // namespace dael::reference
