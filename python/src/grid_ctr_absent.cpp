// SPDX-License-Identifier: Apache-2.0
#include "grid_ctr.hpp"

namespace daelpy {

const char* grid_ctr(const GridCtr&) {
    return "this build has no CUDA";
}

}  // namespace daelpy
