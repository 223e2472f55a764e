// SPDX-License-Identifier: Apache-2.0
// The modes of SP 800-38A, written plainly over the cipher of aes.hpp.
#include <algorithm>

#include <daelstrom/key.hpp>

#include "backends/reference/aes.hpp"
#include "backends/reference/gcm.hpp"
#include "backends/reference/xts.hpp"
#include "core/backend.hpp"
#include "core/key_schedule.hpp"

namespace dael::backends {
namespace {

using core::Operation;
using core::Segment;
using reference::cipher;
using reference::ExpandedKey;
using reference::inv_cipher;

Block operator^(Block a, const Block& b) noexcept {
    for (std::size_t i = 0; i < kBlockSize; ++i) a[i] ^= b[i];
    return a;
}

// The 128-bit big-endian standard incrementing function (SP 800-38A B.1), over all 16 bytes.
// Touches every byte whatever the counter is.
void increment(Block& counter) noexcept {
    unsigned carry = 1;
    for (std::size_t i = kBlockSize; i-- > 0;) {
        carry += counter[i];
        counter[i] = static_cast<std::uint8_t>(carry);
        carry >>= 8;
    }
}

// Walks over a segment: input(p) and output(c) move one block, or what is left of one at the end.
class Blocks {
  public:
    explicit Blocks(const Segment& segment) noexcept : segment_(segment) {}
    bool more() const noexcept { return done_ < segment_.size; }
    // The next block of input; a ragged last one is filled up with zeros.
    Block input() noexcept {
        size_ = std::min(kBlockSize - skip_, segment_.size - done_);
        Block block{};
        std::copy_n(segment_.in + done_, size_, block.begin() + static_cast<std::ptrdiff_t>(skip_));
        return block;
    }
    void output(const Block& block) noexcept {
        std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(skip_), size_,
                    segment_.out + done_);
        done_ += size_;
        skip_ = 0;
    }

  private:
    const Segment& segment_;
    std::size_t done_ = 0, size_ = 0;
    std::size_t skip_ = segment_.skip;  // CTR: bytes of the first block that lie before the segment
};

void ecb_encrypt(const ExpandedKey& w, Blocks blocks, const Block&) {  // 6.1: C_j = CIPH(P_j)
    while (blocks.more()) blocks.output(cipher(blocks.input(), w));
}
void ecb_decrypt(const ExpandedKey& w, Blocks blocks, const Block&) {  // P_j = CIPH^-1(C_j)
    while (blocks.more()) blocks.output(inv_cipher(blocks.input(), w));
}

void cbc_encrypt(const ExpandedKey& w, Blocks blocks,
                 const Block& iv) {  // 6.2: C_j = CIPH(P_j ^ C_j-1)
    for (Block c = iv; blocks.more(); blocks.output(c)) c = cipher(blocks.input() ^ c, w);
}
void cbc_decrypt(const ExpandedKey& w, Blocks blocks,
                 const Block& iv) {  // P_j = CIPH^-1(C_j) ^ C_j-1
    Block previous = iv;
    while (blocks.more()) {
        const Block c = blocks.input();
        blocks.output(inv_cipher(c, w) ^ previous);
        previous = c;
    }
}

void cfb_encrypt(const ExpandedKey& w, Blocks blocks, const Block& iv) {  // 6.3, s = 128:
    for (Block c = iv; blocks.more(); blocks.output(c)) c = blocks.input() ^ cipher(c, w);
}
void cfb_decrypt(const ExpandedKey& w, Blocks blocks, const Block& iv) {
    Block previous = iv;
    while (blocks.more()) {
        const Block c = blocks.input();
        blocks.output(c ^ cipher(previous, w));
        previous = c;
    }
}

void ofb(const ExpandedKey& w, Blocks blocks, const Block& iv) {  // 6.4: O_j = CIPH(O_j-1)
    Block o = iv;
    while (blocks.more()) {
        o = cipher(o, w);
        blocks.output(blocks.input() ^ o);
    }
    wipe(o.data(), o.size());
}

void ctr(const ExpandedKey& w, Blocks blocks, const Block& iv) {  // 6.5: O_j = CIPH(T_j)
    for (Block t = iv; blocks.more(); increment(t)) blocks.output(blocks.input() ^ cipher(t, w));
}

using ModeFunction = void (*)(const ExpandedKey&, Blocks, const Block&);
ModeFunction function_for(Mode mode, Direction direction) noexcept {
    const bool encrypt = direction == Direction::encrypt;
    switch (mode) {
        case Mode::ecb:
            return encrypt ? ecb_encrypt : ecb_decrypt;
        case Mode::cbc:
            return encrypt ? cbc_encrypt : cbc_decrypt;
        case Mode::cfb:
            return encrypt ? cfb_encrypt : cfb_decrypt;
        case Mode::ofb:
            return ofb;
        case Mode::ctr:
            return ctr;
    }
    return nullptr;
}

class Reference final : public core::Backend {
  public:
    std::string_view name() const override { return "reference"; }
    std::string description() const override {
        return "FIPS 197 line by line, constant time, for tests";
    }
    bool supports(Mode, Direction, std::size_t) const override { return true; }

    Result<> run(const Operation& operation, std::span<const Segment> segments) override {
        const ExpandedKey w(operation.key->schedule().key());
        const ModeFunction function = function_for(operation.mode, operation.direction);
        for (const Segment& segment : segments) function(w, Blocks(segment), segment.iv);
        return {};
    }

    bool has_xts() const override { return true; }
    Result<> xts(const core::XtsOperation& operation, const Segment& segment) override {
        reference::xts(operation, segment);
        return {};
    }

    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) override {
        return reference::prepare_gcm_keys(keys);
    }
    Result<> gcm(Direction direction, const core::PreparedKeys& keys,
                 std::span<const core::GcmSegment> segments, std::span<Code> results) override {
        return reference::gcm(direction, keys, segments, results);
    }
    Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                        const core::PreparedKeys& keys,
                                                        std::uint32_t key,
                                                        std::span<const std::uint8_t> iv) override {
        return reference::gcm_stream(direction, keys, key, iv);
    }
};

}  // namespace

extern const core::BackendEntry reference;
const core::BackendEntry reference{
    "reference", "readable and constant-time, for tests: slow", [](std::string*) { return 1; },
    [](const core::BackendOptions&) -> Result<std::unique_ptr<core::Backend>> {
        return std::unique_ptr<core::Backend>(std::make_unique<Reference>());
    }};

}  // namespace dael::backends
