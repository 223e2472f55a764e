// SPDX-License-Identifier: Apache-2.0
// One long message of GCM by several workers: parts that are messages of their own, from later
// counter blocks, and of their tags the one tag of all.
//
// GHASH of a part's blocks is a polynomial in H (SP 800-38D 6.4), so that of two parts, A and then
// B, is X(A) H^(blocks of B) + X(B). A tag is (X + L) H + E(J0), L being the block of lengths. What
// is kept of each part is Y = X H, which its tag gives without a division: Y = tag + E(J0) + L H.
#include <algorithm>
#include <vector>

#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {
namespace {

using modes::Element;

// Parts are of so many bytes, and a message of fewer than twice as many again stays whole.
constexpr std::uint64_t kPart = std::uint64_t{1} << 20, kLongestPart = std::uint64_t{4} << 20;
constexpr std::uint64_t kWhole = std::uint64_t{8} << 20;
constexpr std::uint64_t kMostParts = 4096;  // of the shortest

}  // namespace

Job pipeline::in_parts(Job job) noexcept {
    if (job.cipher.mode != Mode::gcm || job.messages != 1 || job.size < kWhole) return job;
    const std::uint64_t even = job.size / kMostParts / kBlockSize * kBlockSize;
    const std::uint64_t part = std::clamp(even, kPart, kLongestPart);
    job.messages = (job.size + part - 1) / part;
    job.size = ((job.size + job.messages - 1) / job.messages + 15) / 16 * 16;
    return job;
}

bool pipeline::can_be_in_parts(const Cipher& cipher, const Message& message) noexcept {
    // Decryption is GCM's counter mode, in one piece: only of other IVs than nonces could it wrap.
    return modes::encrypts(cipher) || modes::blocks_before_wrap32(modes::counter_add32(
                                          message.start, 1)) > message.size / kBlockSize;
}

// Opening hashes all of the ciphertext first, as additional data, and decrypts nothing before its
// tag is known to be right.
Result<Ran> Engine::State::run_in_parts(const Cipher& cipher, std::span<const Key> keys,
                                        KeySet::State* set, const Message& message,
                                        std::uint64_t even, Code& code) {
    const bool seals = modes::encrypts(cipher);
    code = Code::out_of_memory;  // as long as nothing is touched
    std::vector<Message> parts;
    for (std::uint64_t at = 0; at < message.size; at += even) {
        Message part;
        const std::uint64_t size = std::min(even, message.size - at);
        if (seals) {
            part = {message.in + at, message.out + at, size};
        } else {
            part.aad = message.in + at;
            part.aad_size = size;
        }
        part.start = modes::counter_add32(message.start, static_cast<std::uint32_t>(at / 16));
        part.key = message.key;
        parts.push_back(part);
    }
    const std::size_t data = parts.size();
    if (message.aad_size != 0) {
        Message part;
        part.aad = message.aad;
        part.aad_size = message.aad_size;
        part.start = message.start;
        part.start[0] ^= 0x80;  // unlike all others; what it masks stays here
        part.key = message.key;
        parts.push_back(part);
    }
    std::vector<Block> tags(parts.size()), masks(parts.size() + 2);
    const core::WipeAtEnd no_tags(tags.data(), tags.size() * kBlockSize);
    const core::WipeAtEnd no_masks(masks.data(), masks.size() * kBlockSize);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].tag = tags[i].data();
        masks[i] = parts[i].start;
    }
    masks[parts.size()] = message.start;  // and behind it a block of zeros, for H
    Message blocks{masks[0].data(), masks[0].data(), masks.size() * kBlockSize};
    blocks.key = message.key;
    const auto failed = [&](Result<Ran> ran, bool untouched) {
        code = untouched ? ran.code() : Code::internal;
        return ran;
    };
    {
        Code its = Code::internal;
        auto ran = run({Mode::ecb}, keys, set, {&blocks, 1}, {&its, 1});
        if (!ran) return failed(std::move(ran), true);
    }
    std::vector<Code> codes(parts.size());
    if (seals) code = Code::internal;
    auto ran = run({Mode::gcm}, keys, set, parts, codes);
    if (!ran) {
        const bool untouched =
            !seals || std::ranges::all_of(codes, [&](Code its) { return its == ran.code(); });
        return failed(std::move(ran), untouched);
    }
    // One after the other: the sum so far moves on by each part's blocks.
    Element h = modes::load_element(masks.back().data());
    const core::WipeAtEnd no_h(h);
    const auto times_h = [&](std::uint64_t aad_size, std::uint64_t size) {
        return modes::multiply(modes::load_element(modes::lengths_block(aad_size, size).data()), h);
    };
    const auto y_of = [&](std::size_t i) {
        const Element tag = modes::load_element(tags[i].data());
        return modes::add(modes::add(tag, modes::load_element(masks[i].data())),
                          times_h(parts[i].aad_size, parts[i].size));
    };
    Element y{};
    const core::WipeAtEnd no_y(y);
    if (data != parts.size()) y = y_of(data);
    Element whole = modes::power(h, even / kBlockSize);
    const core::WipeAtEnd no_power(whole);
    for (std::size_t i = 0; i < data; ++i) {
        const std::uint64_t its = (parts[i].size + parts[i].aad_size + 15) / 16;
        y = modes::add(modes::multiply(y, i + 1 < data ? whole : modes::power(h, its)), y_of(i));
    }
    y = modes::add(modes::add(y, times_h(message.aad_size, message.size)),
                   modes::load_element(masks[parts.size()].data()));
    Block tag;
    const core::WipeAtEnd no_tag(tag);
    modes::store_element(tag.data(), y);
    code = Code::ok;
    if (seals) {
        std::copy_n(tag.begin(), cipher.tag, message.tag);
        return ran;
    }
    if (!modes::equal_tags(tag.data(), message.tag, cipher.tag)) {
        code = Code::authentication;
        return ran;
    }
    Message rest = message;
    rest.aad = nullptr;
    rest.aad_size = 0;
    rest.tag = nullptr;
    rest.start = modes::counter_add32(message.start, 1);
    return run({Mode::gcm_ctr, Direction::decrypt}, keys, set, {&rest, 1}, {&code, 1});
}

}  // namespace dael
