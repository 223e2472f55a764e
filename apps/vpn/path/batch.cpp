// SPDX-License-Identifier: Apache-2.0
#include "vpn/path/batch.hpp"

#include <openssl/crypto.h>

#include <algorithm>

namespace dael::vpn::path {

Batch::Batch(const WireFormat& wire, Limits limits)
    : wire_(wire),
      limits_{limits.bytes, std::max<std::size_t>(limits.segments, 1)},
      capacity_(std::max(limits.bytes, wire.size(kMostInner))),
      buffer_(std::make_unique_for_overwrite<std::uint8_t[]>(capacity_)),
      packets_(limits_.segments) {}

Batch::~Batch() {
    OPENSSL_cleanse(buffer_.get(), touched_);
}

std::uint8_t* Batch::place(std::size_t size, std::uint8_t tos, std::uint8_t next_header) noexcept {
    if (size > kMostInner) return nullptr;
    const std::size_t wire = wire_.size(size);
    if (used_ == 0) {
        first_ = wire, tos_ = tos;
    } else if (closed_ || wire > first_ || tos != tos_ || used_ == packets_.size() ||
               bytes_ + wire > limits_.bytes) {
        return nullptr;
    }
    closed_ = wire < first_;
    esp::Packet& packet = packets_[used_++];
    packet = {};
    packet.buffer = buffer_.get() + bytes_;
    packet.capacity = static_cast<std::uint32_t>(wire);
    packet.offset = wire_.head;
    packet.size = static_cast<std::uint32_t>(size);
    packet.next_header = next_header;
    bytes_ += wire;
    payload_ += size;
    touched_ = std::max(touched_, bytes_);
    return packet.buffer + packet.offset;
}

void Batch::clear() noexcept {
    used_ = bytes_ = payload_ = 0;
    closed_ = false;
}

}  // namespace dael::vpn::path
