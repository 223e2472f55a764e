// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <daelstrom/xts.hpp>

namespace dael {
namespace {

// Looks at every byte, whatever it finds; only the verdict is known afterwards.
bool equal_in_constant_time(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
    volatile std::uint8_t differing = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        differing = static_cast<std::uint8_t>(differing | (a[i] ^ b[i]));
    return differing == 0;
}

}  // namespace

Result<XtsKey> XtsKey::import(std::span<const std::uint8_t> bytes) {
    if (bytes.size() != 32 && bytes.size() != 64)
        return Error{Code::key_size, "XTS key is " + std::to_string(bytes.size()) +
                                         " bytes; XTS takes two AES keys one after the other: 32 "
                                         "bytes for AES-128, 64 for AES-256, and no AES-192"};
    const auto first = bytes.first(bytes.size() / 2), second = bytes.last(bytes.size() / 2);
    if (equal_in_constant_time(first, second))
        return Error{Code::invalid_argument, "the two halves of the XTS key are equal; draw all " +
                                                 std::to_string(bytes.size()) + " bytes at random"};
    auto data = Key::import(first);
    if (!data) return std::move(data).error();
    auto tweak = Key::import(second);
    if (!tweak) return std::move(tweak).error();
    return XtsKey(std::move(*data), std::move(*tweak));
}

}  // namespace dael
