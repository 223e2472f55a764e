// SPDX-License-Identifier: Apache-2.0
#include "modes/gcm.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace dael::modes {
namespace {

// Whether two runs of bytes share one.
bool overlap(const std::uint8_t* a, std::uint64_t a_size, const std::uint8_t* b,
             std::uint64_t b_size) noexcept {
    const auto from_a = reinterpret_cast<std::uintptr_t>(a);
    const auto from_b = reinterpret_cast<std::uintptr_t>(b);
    if (a_size == 0 || b_size == 0) return false;
    return from_a <= from_b ? from_b - from_a < a_size : from_a - from_b < b_size;
}

Error null_with_size(const char* what, std::uint64_t size) {
    return {Code::invalid_argument,
            std::string(what) + " is null, but its size is " + std::to_string(size) + " bytes"};
}

}  // namespace

Error no_such_key(std::size_t key, std::size_t keys) {
    return {Code::invalid_argument,
            "no key " + std::to_string(key) + "; the set has " + std::to_string(keys)};
}

Result<> check_tag_size(std::size_t size) {
    if (valid_tag_size(size)) return {};
    return Error{Code::invalid_argument,
                 "a tag of " + std::to_string(size) + " bytes; GCM has 4, 8, and 12 to 16"};
}

Result<> check_iv_size(std::size_t size) {
    if (size != 0) return {};
    return Error{Code::iv_size, "the IV is empty; GCM takes 1 byte or more, usually 12"};
}

Result<> check_data_size(std::uint64_t size) {
    if (size <= kGcmMostData) return {};
    return Error{Code::limit, std::to_string(size) +
                                  " bytes under one IV; GCM's limit is 2^36 - 32: cut the data "
                                  "into messages with an IV each"};
}

Result<> check_aad_size(std::uint64_t size) {
    if (size <= kGcmMostAad) return {};
    return Error{Code::limit,
                 std::to_string(size) + " bytes of additional data; GCM's limit is 2^61 - 1"};
}

Result<> check_data(const std::uint8_t* in, const std::uint8_t* out, std::size_t size) {
    if (size != 0 && (!in || !out)) return null_with_size(in ? "the output" : "the input", size);
    if (in != out && overlap(in, size, out, size))
        return Error{
            Code::overlap,
            "input and output overlap; pass the same buffer to work in place, or two apart"};
    return {};
}

bool takes(const core::GcmSegment& segment, std::size_t keys) noexcept {
    const core::GcmSegment& s = segment;
    return valid_tag_size(s.tag_size) && s.iv_size != 0 && s.key < keys && s.size <= kGcmMostData &&
           s.aad_size <= kGcmMostAad && s.iv && s.tag && (s.aad || s.aad_size == 0) &&
           ((s.in && s.out) || s.size == 0) &&
           (s.in == s.out || !overlap(s.in, s.size, s.out, s.size)) &&
           !overlap(s.tag, s.tag_size, s.out, s.size) && !overlap(s.aad, s.aad_size, s.out, s.size);
}

Result<> check(const core::GcmSegment& segment, std::size_t keys) {
    if (takes(segment, keys)) return {};
    DAEL_TRY(check_tag_size(segment.tag_size));
    DAEL_TRY(check_iv_size(segment.iv_size));
    if (segment.key >= keys) return no_such_key(segment.key, keys);
    DAEL_TRY(check_data_size(segment.size));
    DAEL_TRY(check_aad_size(segment.aad_size));
    if (!segment.iv) return null_with_size("the IV", segment.iv_size);
    if (!segment.tag) return null_with_size("the tag", segment.tag_size);
    if (!segment.aad && segment.aad_size != 0)
        return null_with_size("the additional data", segment.aad_size);
    DAEL_TRY(check_data(segment.in, segment.out, segment.size));
    if (overlap(segment.tag, segment.tag_size, segment.out, segment.size))
        return Error{Code::overlap,
                     "the tag overlaps the output; keep it outside, before or after"};
    return Error{Code::overlap, "the additional data overlaps the output; keep them apart"};
}

bool takes_ctr(const core::GcmSegment& segment, std::size_t keys) noexcept {
    const core::GcmSegment& s = segment;
    return s.key < keys && s.aad_size == 0 && s.size <= kGcmCtrMostData &&
           ((s.in && s.out) || s.size == 0) &&
           (s.in == s.out || !overlap(s.in, s.size, s.out, s.size));
}

Result<> check_ctr(const core::GcmSegment& segment, std::size_t keys) {
    if (takes_ctr(segment, keys)) return {};
    if (segment.key >= keys) return no_such_key(segment.key, keys);
    if (segment.aad_size != 0)
        return Error{Code::invalid_argument,
                     "AAD without a tag; give a tag size, or leave the AAD out"};
    if (segment.size > kGcmCtrMostData)
        return Error{Code::limit, std::to_string(segment.size) +
                                      " bytes under one nonce; a 32-bit counter from 1 lasts for "
                                      "2^36 - 16: cut the data into messages with a nonce each"};
    return check_data(segment.in, segment.out, segment.size);
}

Block lengths_block(std::uint64_t aad_size, std::uint64_t size) noexcept {
    Block block;
    core::store_element(block.data(), {8 * aad_size, 8 * size});
    return block;
}

Block initial_counter(core::FieldElement h, std::span<const std::uint8_t> iv) noexcept {
    Block j0{};
    if (iv.size() == kNonceSize) {
        std::ranges::copy(iv, j0.begin());
        j0.back() = 1;
        return j0;
    }
    core::FieldElement y = core::ghash(h, {}, iv.data(), iv.size());
    y = core::ghash(h, y, lengths_block(0, iv.size()).data(), kBlockSize);
    core::store_element(j0.data(), y);
    return j0;
}

// J0 = ((IV * H) + lengths) * H, read backwards.
Block iv_for_counter(core::FieldElement h, const Block& j0) noexcept {
    const core::FieldElement reciprocal = core::inverse(h);
    core::FieldElement y = core::multiply(core::load_element(j0.data()), reciprocal);
    y = y ^ core::load_element(lengths_block(0, kBlockSize).data());
    Block iv;
    core::store_element(iv.data(), core::multiply(y, reciprocal));
    return iv;
}

bool equal_tags(const std::uint8_t* a, const std::uint8_t* b, std::size_t size) noexcept {
    std::uint64_t differs = 0;
    for (; size >= sizeof differs; size -= sizeof differs) {
        std::uint64_t from_a, from_b;
        std::memcpy(&from_a, a, sizeof from_a);
        std::memcpy(&from_b, b, sizeof from_b);
        differs |= from_a ^ from_b;
        a += sizeof differs;
        b += sizeof differs;
    }
    for (; size != 0; --size) differs |= static_cast<std::uint64_t>(*a++ ^ *b++);
    // The compiler must not know what is in there, so that it cannot stop at the first difference.
    __asm__ volatile("" : "+r"(differs));
    return differs == 0;
}

}  // namespace dael::modes
