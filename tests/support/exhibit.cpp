// SPDX-License-Identifier: Apache-2.0
// Linked into a program of tests, it enters the lab's backend into the library's list before main()
// begins: every suite over backends has that one too.
#include "lab/opengl/exhibit.hpp"

namespace {

[[maybe_unused]] const bool entered = [] {
    dael::opengl::enter_into_list();
    return true;
}();

}  // namespace
