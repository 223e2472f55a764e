// SPDX-License-Identifier: Apache-2.0
// What one message and batches of them have in common, in the modes that do not authenticate.
#pragma once

#include <string>

#include "backends/opencl/device.hpp"

namespace dael::opencl {

inline bool serial_mode(const Cipher& cipher) {
    return !parallel_within_message(cipher.mode, cipher.direction);
}
inline bool inverse_cipher(const Cipher& cipher) {
    return cipher.direction == Direction::decrypt &&
           (cipher.mode == Mode::ecb || cipher.mode == Mode::cbc || cipher.mode == Mode::xts);
}
inline bool chained(const Cipher& cipher) {
    return cipher.mode == Mode::cbc || cipher.mode == Mode::cfb;
}

// DAEL_MODE of blocks.cl and serial.cl.
inline std::string mode_macro(const Cipher& cipher) {
    const bool serial = serial_mode(cipher);
    const char* number = "";
    switch (cipher.mode) {
        case Mode::ecb:
            number = "0";
            break;
        case Mode::ctr:
            number = "1";
            break;
        case Mode::cbc:
            number = serial ? "4" : "2";
            break;
        case Mode::cfb:
            number = serial ? "5" : "3";
            break;
        case Mode::ofb:
            number = "6";
            break;
        default:
            break;
    }
    return std::string(" -DDAEL_MODE=") + number;
}

// Where a message's bytes lie. Without input its place is the output's, and nothing is read there.
struct InAndOut {
    Region in, out;
};
inline Result<InAndOut> find_both(const OpenClMemory& memory, const Message& message) {
    DAEL_LET(out, memory.find(message.out, message.size));
    if (!message.in) return InAndOut{out, out};
    DAEL_LET(in, memory.find(message.in, message.size));
    return InAndOut{in, out};
}

inline Segment kernel_segment(const Message& message, const Region& in, const Region& out) {
    return {in.offset,    out.offset,  message.size,
            message.skip, message.key, to_uint4(message.start)};
}

}  // namespace dael::opencl
