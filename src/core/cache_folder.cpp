// SPDX-License-Identifier: Apache-2.0
#include "core/cache_folder.hpp"

#include <stdlib.h>

namespace dael::core {

std::string cache_folder() {
    // secure_getenv: a program with more rights than its caller does not go where that one says.
    const auto set = [](const char* variable) -> std::string {
        const char* value = secure_getenv(variable);
        return value && *value == '/' ? value : "";  // XDG: relative paths are to be ignored
    };
    if (const std::string cache = set("XDG_CACHE_HOME"); !cache.empty())
        return cache + "/daelstrom";
    if (const std::string home = set("HOME"); !home.empty()) return home + "/.cache/daelstrom";
    return {};
}

}  // namespace dael::core
