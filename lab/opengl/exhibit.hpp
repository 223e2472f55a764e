// SPDX-License-Identifier: Apache-2.0
// The backend `opengl`, which the library knows nothing of.
#pragma once

namespace dael::opengl {

// Enters it into the library's list of backends, behind the others. At the start of a program,
// before anything else of the library is called.
void enter_into_list() noexcept;

}  // namespace dael::opengl
