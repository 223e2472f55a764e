// SPDX-License-Identifier: Apache-2.0
#include "bench/subject.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

namespace dael::bench {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

Result<TestKey> TestKey::make(int bits) {
    std::array<std::uint8_t, 64> raw;
    for (std::size_t i = 0; i < raw.size(); ++i)
        raw[i] = static_cast<std::uint8_t>(0x9d * i + 0x35);
    auto key = Key::import(std::span(raw).first(static_cast<std::size_t>(bits / 8)));
    if (!key) return std::move(key).error();
    TestKey made{raw, std::move(*key), std::nullopt};
    if (bits == 192) return made;
    auto xts = XtsKey::import(made.xts_bytes());
    if (!xts) return std::move(xts).error();
    made.xts = std::move(*xts);
    return made;
}

Result<HostBuffer> HostBuffer::allocate(std::size_t size) {
    HostBuffer buffer;
    const std::size_t whole = (size + kPage - 1) / kPage * kPage;
    buffer.data_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kPage, whole)));
    if (!buffer.data_)
        return Error{Code::out_of_memory,
                     "no memory for a buffer of " + std::to_string(size) + " bytes"};
    std::memset(buffer.data_.get(), 0, whole);
    buffer.size_ = size;
    return buffer;
}

void HostBuffer::Free::operator()(std::uint8_t* data) const noexcept {
    std::free(data);
}

Block message_iv(std::uint64_t index) noexcept {
    Block iv{0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5};
    for (int i = 0; i < 6; ++i) iv[11 - i] = static_cast<std::uint8_t>(index >> 8 * i);
    iv[15] = 0xfd;  // not a multiple of 256: the start that CTR kernels like least
    return iv;
}

std::vector<Message> lay_out(const Work& work, const std::uint8_t* in, std::uint8_t* out) {
    std::vector<Message> messages(work.messages);
    for (std::uint64_t i = 0; i < work.messages; ++i)
        messages[i] = {in + i * work.size, out + i * work.size, work.size, message_iv(i), 0};
    return messages;
}

}  // namespace dael::bench
