// SPDX-License-Identifier: Apache-2.0
// Stands in for the opengl backend in a build without the headers of EGL and OpenGL ES.
#include "lab/opengl/entry.hpp"

namespace dael::opengl {

const core::BackendEntry kEntry{
    .name = "opengl",
    .summary = "OpenGL ES: AES as drawing, an exhibit",
    .count =
        [](std::string* why) {
            *why = "this build has no OpenGL (libegl-dev and libgles-dev were not there)";
            return 0;
        },
    .open = [](const core::BackendOptions&) -> Result<std::unique_ptr<core::Backend>> {
        return Error{Code::backend_absent, "this build has no OpenGL"};
    }};

}  // namespace dael::opengl
