// SPDX-License-Identifier: Apache-2.0
#include "pipeline/gcm_parts.hpp"

#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"
#include "modes/traits.hpp"

namespace dael::pipeline {

using modes::Element;

GcmParts::GcmParts(const Cipher& cipher, const Message& message)
    : cipher_(cipher), message_(message) {}

GcmParts::~GcmParts() {
    wipe(tags_.data(), tags_.size() * kBlockSize);
    wipe(masks_.data(), masks_.size() * kBlockSize);
}

void GcmParts::add(const std::uint8_t* in, std::uint8_t* out, std::uint64_t size) {
    Message part;
    if (modes::encrypts(cipher_)) {
        part = {in, out, size};
    } else {
        part.aad = in;
        part.aad_size = size;
    }
    part.start =
        modes::counter_add32(message_.start, static_cast<std::uint32_t>(size_ / kBlockSize));
    part.key = message_.key;
    parts_.push_back(part);
    size_ += size;
    data_parts_ = parts_.size();
}

std::span<Message> GcmParts::parts() {
    if (message_.aad_size != 0 && parts_.size() == data_parts_) {
        Message part;
        part.aad = message_.aad;
        part.aad_size = message_.aad_size;
        part.start = message_.start;
        part.start[0] ^= 0x80;  // unlike all others; what it masks stays here
        part.key = message_.key;
        parts_.push_back(part);
    }
    tags_.resize(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) parts_[i].tag = tags_[i].data();
    return parts_;
}

Message GcmParts::blocks() {
    masks_.resize(parts_.size() + 2);
    for (std::size_t i = 0; i < parts_.size(); ++i) masks_[i] = parts_[i].start;
    masks_[parts_.size()] = message_.start;  // and behind it a block of zeros, for H
    Message blocks{masks_[0].data(), masks_[0].data(), masks_.size() * kBlockSize};
    blocks.key = message_.key;
    return blocks;
}

// One after the other: the sum so far moves on by each part's blocks. Most parts are of one size,
// and what depends on it alone is worked out once.
Block GcmParts::tag_of_all() const noexcept {
    Element h = modes::load_element(masks_.back().data());
    const core::WipeAtEnd no_h(h);
    Element lengths{}, moved{}, y{};
    const core::WipeAtEnd no_lengths(lengths), no_moved(moved), no_y(y);
    const auto times_h = [&](std::uint64_t aad_size, std::uint64_t size) {
        return modes::multiply(modes::load_element(modes::lengths_block(aad_size, size).data()), h);
    };
    const auto y_of = [&](std::size_t i) {
        const Element tag = modes::load_element(tags_[i].data());
        return modes::add(modes::add(tag, modes::load_element(masks_[i].data())), lengths);
    };
    if (data_parts_ != parts_.size()) {
        lengths = times_h(message_.aad_size, 0);
        y = y_of(data_parts_);
    }
    std::uint64_t known = 0;
    for (std::size_t i = 0; i < data_parts_; ++i) {
        const Message& part = parts_[i];
        const std::uint64_t size = part.size + part.aad_size;
        if (i == 0 || size != known) {
            known = size;
            lengths = times_h(part.aad_size, part.size);
            moved = modes::power(h, (size + kBlockSize - 1) / kBlockSize);
        }
        y = modes::add(modes::multiply(y, moved), y_of(i));
    }
    y = modes::add(modes::add(y, times_h(message_.aad_size, size_)),
                   modes::load_element(masks_[parts_.size()].data()));
    Block tag;
    modes::store_element(tag.data(), y);
    return tag;
}

}  // namespace dael::pipeline
