// SPDX-License-Identifier: Apache-2.0
#include "core/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace dael::core {

Result<> fill_random(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
        if (got > 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(got));
        } else if (errno != EINTR) {
            return Error{Code::internal,
                         "no random bytes: getrandom: " + std::system_category().message(errno)};
        }
    }
    return {};
}

}  // namespace dael::core
