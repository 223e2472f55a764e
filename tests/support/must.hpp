// SPDX-License-Identifier: Apache-2.0
// What must go well for a test to mean anything.
#pragma once

#include <stdexcept>
#include <utility>

#include <daelstrom/error.hpp>

namespace dael::test {

// The value; an error, in its words, ends the case.
template <class T>
T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return std::move(*result);
}

}  // namespace dael::test
