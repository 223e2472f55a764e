// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>

namespace dael::fuzz {

using Bytes = std::vector<std::uint8_t>;

// Ends the run as a finding, with the reason.
inline void require(bool holds, const std::string& what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what.c_str());
    std::abort();
}

template <class T>
T value(Result<T> result, const std::string& what) {
    if (!result) require(false, what + ": " + result.error().message);
    return std::move(*result);
}

// Bytes from the input, filled up with a pattern where it ends.
inline Bytes bytes(FuzzedDataProvider& data, std::size_t size) {
    Bytes out = data.ConsumeBytes<std::uint8_t>(size);
    for (std::size_t i = out.size(); i < size; ++i)
        out.push_back(static_cast<std::uint8_t>(i % 251));
    return out;
}

inline Block block(FuzzedDataProvider& data) {
    Block out;
    for (auto& byte : out) byte = data.ConsumeIntegral<std::uint8_t>();
    return out;
}

inline Mode mode(FuzzedDataProvider& data) {
    return kModes[data.ConsumeIntegralInRange<std::size_t>(0, kModes.size() - 1)];
}

inline Direction direction(FuzzedDataProvider& data) {
    return data.ConsumeBool() ? Direction::encrypt : Direction::decrypt;
}

inline Key key(FuzzedDataProvider& data, bool xts = false) {
    if (xts) {
        Bytes halves = bytes(data, data.ConsumeBool() ? 64 : 32);
        halves.back() = static_cast<std::uint8_t>(halves[halves.size() / 2 - 1] + 1);  // not equal
        return value(Key::import_xts(halves), "an XTS key of the right size");
    }
    const auto size = 8 * data.ConsumeIntegralInRange<std::size_t>(2, 4);
    return value(Key::import(bytes(data, size)), "a key of the right size");
}

// A key that the mode takes.
inline Key key_for(FuzzedDataProvider& data, Mode mode) {
    switch (mode) {
        case Mode::aegis128l:
        case Mode::aegis128x2:
        case Mode::aegis128x4:
            return value(Key::import(bytes(data, 16)), "a key of the right size");
        case Mode::aegis256:
        case Mode::xaes256gcm:
            return value(Key::import(bytes(data, 32)), "a key of the right size");
        case Mode::gcm_siv:
            return value(Key::import(bytes(data, data.ConsumeBool() ? 32 : 16)),
                         "a key of the right size");
        default:
            return key(data, mode == Mode::xts);
    }
}

// A start that the mode takes: zeros behind a nonce that fills no whole block.
inline void start_for(FuzzedDataProvider& data, Mode mode, Message& message) {
    message.start = block(data);
    if (mode == Mode::xts) message.start.back() &= 0x7f;
    if (mode == Mode::gcm_siv)
        for (std::size_t i = 12; i < 16; ++i) message.start[i] = 0;
    if (!has_start_rest(mode)) return;
    message.start_rest = block(data);
    if (mode == Mode::xaes256gcm)
        for (std::size_t i = 8; i < 16; ++i) message.start_rest[i] = 0;
}
inline std::uint8_t tag_for(FuzzedDataProvider& data, Mode mode) {
    constexpr std::uint8_t kTags[] = {4, 8, 12, 13, 14, 15, 16};
    if (mode == Mode::gcm) return data.PickValueInArray(kTags);
    return is_aegis(mode) && data.ConsumeBool() ? 32 : 16;
}

}  // namespace dael::fuzz
