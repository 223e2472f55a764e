// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <daelstrom/error.hpp>

namespace dael {
namespace {

constexpr std::array<std::string_view, kCodeCount> kDescriptions{
    "success",
    "invalid argument",
    "wrong key size",
    "wrong IV size",
    "length is not a multiple of the block size",
    "wrong padding",
    "input and output overlap",
    "a limit of the mode would be passed",
    "no such backend",
    "backend is not available on this machine",
    "not supported by this backend",
    "out of memory",
    "the device failed",
    "input or output failed",
    "malformed input",
    "internal error",
    "authentication failed",
};

}  // namespace

std::string_view describe(Code code) noexcept {
    const auto index = static_cast<std::size_t>(code);
    return index < kDescriptions.size() ? kDescriptions[index] : "unknown error";
}

}  // namespace dael
