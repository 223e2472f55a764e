// SPDX-License-Identifier: Apache-2.0
#include "lab/opengl/exhibit.hpp"

#include <cassert>

#include "core/registry.hpp"
#include "lab/opengl/entry.hpp"

namespace dael::opengl {

void enter_into_list() noexcept {
    [[maybe_unused]] const bool entered = core::add_backend(kEntry);
    assert(entered);
}

}  // namespace dael::opengl
