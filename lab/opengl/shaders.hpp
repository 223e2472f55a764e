// SPDX-License-Identifier: Apache-2.0
// The text of the shaders beside this file.
#pragma once

namespace dael::opengl {

extern const char* const kWholeVert;    // whole.vert
extern const char* const kGlIntFrag;    // gl_int.frag
extern const char* const kGlFloatFrag;  // gl_float.frag

}  // namespace dael::opengl
