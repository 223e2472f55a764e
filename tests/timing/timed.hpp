// SPDX-License-Identifier: Apache-2.0
// Times a function on fixed and on random inputs, for Welch's t-test.
#pragma once

#include <gtest/gtest.h>

#include <daelstrom/message.hpp>

#include "measure/timed.hpp"

namespace dael::timing {

using namespace measure;

inline Block first_block(const Input& input) {
    Block block;
    std::copy_n(input.begin(), block.size(), block.begin());
    return block;
}

template <class Function>
void expect_constant_time(const char* what, Function function) {
    for (const Input& fixed : fixed_inputs()) {
        const double t =
            smallest_of(kAttempts, [&] { return time(fixed, random_input, function); });
        EXPECT_LT(t, kThreshold) << what << " depends on its input (first byte " << int{fixed[0]}
                                 << ")";
    }
}

}  // namespace dael::timing
