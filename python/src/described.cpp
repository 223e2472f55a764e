// SPDX-License-Identifier: Apache-2.0
#include "described.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace daelpy {
namespace {

constexpr Described kAll[] = {
#include "described.inc"
};

}  // namespace

const Described& described(const char* name) {
    for (const Described& one : kAll)
        if (std::strcmp(one.name, name) == 0) return one;
    throw std::logic_error(std::string("_core.pyi says nothing of ") + name);
}

}  // namespace daelpy
