// SPDX-License-Identifier: Apache-2.0
#include "core/cache_folder.hpp"

#include <cstdlib>

namespace dael::core {

std::string cache_folder() {
    const auto set = [](const char* variable) -> std::string {
        const char* value = std::getenv(variable);
        return value && *value == '/' ? value : "";  // XDG: relative paths are to be ignored
    };
    if (const std::string cache = set("XDG_CACHE_HOME"); !cache.empty())
        return cache + "/daelstrom";
    if (const std::string home = set("HOME"); !home.empty()) return home + "/.cache/daelstrom";
    return {};
}

}  // namespace dael::core
