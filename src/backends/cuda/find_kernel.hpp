// SPDX-License-Identifier: Apache-2.0
// From run-time rounds and tables to the template that was compiled for them.
#pragma once

#include <type_traits>

#include "backends/cuda/work.hpp"

namespace dael::cuda {

// `make(rounds, tables)` gets both as integral constants.
template <class Make>
Kernel find_kernel(int rounds, int tables, Make make) {
    const auto with_rounds = [&](auto r) {
        switch (tables) {
            case 4:
                return make(r, std::integral_constant<int, 4>{});
            case 2:
                return make(r, std::integral_constant<int, 2>{});
            default:
                return make(r, std::integral_constant<int, 1>{});
        }
    };
    switch (rounds) {
        case 10:
            return with_rounds(std::integral_constant<int, 10>{});
        case 12:
            return with_rounds(std::integral_constant<int, 12>{});
        default:
            return with_rounds(std::integral_constant<int, 14>{});
    }
}

}  // namespace dael::cuda
