// SPDX-License-Identifier: Apache-2.0
// The line that exceptions do not cross. The standard library throws when memory runs out; the
// pipeline's outer calls run inside guarded(), which turns that into an Error.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <utility>

#include <daelstrom/error.hpp>

namespace dael::pipeline {

// Calls `work`, which returns a Result of some kind, and returns what it returns.
template <class Work>
auto guarded(Work&& work) noexcept -> decltype(work()) {
    try {
        return std::forward<Work>(work)();
    } catch (const std::bad_alloc&) {
        // So short that the string needs no memory of its own.
        return Error{Code::out_of_memory, "no host memory"};
    } catch (const std::exception& fault) {
        return Error{Code::internal, std::string("unexpected exception: ") + fault.what()};
    }
}

}  // namespace dael::pipeline
