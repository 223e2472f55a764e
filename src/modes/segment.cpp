// SPDX-License-Identifier: Apache-2.0
#include "modes/segment.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include <daelstrom/key.hpp>

#include "modes/counter.hpp"
#include "modes/gcm.hpp"

namespace dael::modes {
namespace {

bool partly_overlap(const std::uint8_t* in, const std::uint8_t* out, std::size_t size) {
    if (in == out || size == 0) return false;
    const auto a = reinterpret_cast<std::uintptr_t>(in), b = reinterpret_cast<std::uintptr_t>(out);
    return a < b ? b - a < size : a - b < size;
}

// Whole counter blocks used up by `bytes` bytes after `skip`.
std::uint64_t blocks_touched(std::uint64_t skip, std::uint64_t bytes) {
    return (skip + bytes) / kBlockSize;
}

}  // namespace

Result<> check(Mode mode, const Message& message) {
    if (message.size != 0 && (!message.in || !message.out))
        return Error{Code::invalid_argument, "input or output is null, but its size is " +
                                                 std::to_string(message.size) + " bytes"};
    if (whole_blocks_only(mode) && message.size % kBlockSize != 0)
        return Error{Code::ragged_length,
                     "length " + std::to_string(message.size) + " is not a multiple of 16; " +
                         std::string(name(mode)) + " takes whole blocks: pad the data, or use ctr"};
    if (partly_overlap(message.in, message.out, message.size))
        return Error{
            Code::overlap,
            "input and output overlap; pass the same buffer to work in place, or two apart"};
    if (message.offset != 0 && mode != Mode::ctr)
        return Error{Code::invalid_argument,
                     "an offset is for ctr only, not for " + std::string(name(mode))};
    if (message.size > std::numeric_limits<std::uint64_t>::max() - message.offset)
        return Error{Code::limit, "offset plus length passes 2^64 bytes"};
    return {};
}

Result<> check(Mode mode, const KeyedMessage& message, std::size_t keys) {
    if (message.key >= keys) return no_such_key(message.key, keys);
    return check(mode, {message.in, message.out, message.size, message.iv, 0});
}

Error sizes_differ(std::size_t in, std::size_t out) {
    return {Code::invalid_argument, "output is " + std::to_string(out) + " bytes; the input is " +
                                        std::to_string(in) + "; they must be the same"};
}

core::Segment to_segment(const Message& message) noexcept {
    core::Segment segment{message.in, message.out, message.size, message.iv, 0};
    if (message.offset != 0) {
        segment.iv = counter_add(message.iv, message.offset / kBlockSize);
        segment.skip = static_cast<std::uint8_t>(message.offset % kBlockSize);
    }
    return segment;
}

core::Segment slice(Mode mode, const core::Segment& segment, std::size_t begin, std::size_t size) {
    core::Segment part{segment.in + begin, segment.out + begin, size, segment.iv, segment.skip};
    if (begin == 0) return part;
    part.skip = 0;
    if (mode == Mode::ctr)
        part.iv = counter_add(segment.iv, blocks_touched(segment.skip, begin));
    else if (mode != Mode::ecb)
        std::memcpy(part.iv.data(), part.in - kBlockSize, kBlockSize);
    return part;
}

std::vector<core::Segment> split(Mode mode, const core::Segment& segment, std::size_t piece) {
    std::vector<core::Segment> pieces;
    pieces.reserve(segment.size / piece + 2);
    for (std::size_t begin = 0; begin < segment.size || begin == 0;) {
        const std::size_t whole = begin == 0 ? piece - segment.skip : piece;
        const std::size_t size = std::min(whole, segment.size - begin);
        pieces.push_back(slice(mode, segment, begin, size));
        begin += size;
        if (size == 0) break;
    }
    return pieces;
}

Chain::Chain(Mode mode, Direction direction, const Block& iv, std::uint64_t offset) noexcept
    : mode_(mode), direction_(direction) {
    current_.iv = mode == Mode::ctr ? counter_add(iv, offset / kBlockSize) : iv;
    current_.skip = static_cast<std::uint8_t>(mode == Mode::ctr ? offset % kBlockSize : 0);
}

core::Segment Chain::begin(const std::uint8_t* in, std::uint8_t* out, std::size_t size) noexcept {
    current_.in = in;
    current_.out = out;
    current_.size = size;
    const std::size_t whole = size / kBlockSize * kBlockSize;
    const bool decrypts_chained =
        (mode_ == Mode::cbc || mode_ == Mode::cfb) && direction_ == Direction::decrypt;
    if (whole != 0 && (decrypts_chained || mode_ == Mode::ofb))
        std::memcpy(last_input_.data(), in + whole - kBlockSize, kBlockSize);
    return current_;
}

Chain::~Chain() {
    wipe(last_input_.data(), last_input_.size());
    wipe(current_.iv.data(), current_.iv.size());
}

void Chain::end() noexcept {
    if (mode_ == Mode::ctr) {
        current_.iv = counter_add(current_.iv, blocks_touched(current_.skip, current_.size));
        current_.skip = static_cast<std::uint8_t>((current_.skip + current_.size) % kBlockSize);
        return;
    }
    const std::size_t whole = current_.size / kBlockSize * kBlockSize;
    if (whole == 0 || mode_ == Mode::ecb) return;
    const std::uint8_t* last_output = current_.out + whole - kBlockSize;
    if (mode_ == Mode::ofb) {  // the keystream block itself, whose two ends are at hand
        for (std::size_t i = 0; i < kBlockSize; ++i)
            current_.iv[i] = static_cast<std::uint8_t>(last_input_[i] ^ last_output[i]);
    } else if (direction_ == Direction::encrypt) {
        std::memcpy(current_.iv.data(), last_output, kBlockSize);
    } else {
        current_.iv = last_input_;
    }
    wipe(last_input_.data(), last_input_.size());
}

}  // namespace dael::modes
