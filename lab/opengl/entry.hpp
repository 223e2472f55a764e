// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/backend.hpp"

namespace dael::opengl {

extern const core::BackendEntry kEntry;  // in opengl.cpp, or absent.cpp

}  // namespace dael::opengl
