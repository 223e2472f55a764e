// SPDX-License-Identifier: Apache-2.0
// What the files of the C ABI share: its objects, and how Results become statuses.
#pragma once

#include <daelstrom/daelstrom.h>

#include <new>
#include <string>

#include <daelstrom/engine.hpp>

struct dael_engine {
    dael::Engine engine;
};
struct dael_key {
    dael::Key key;
};

namespace dael::capi {

// Keeps the message for dael_last_error().
dael_status failed(Error error) noexcept;

// Runs `work`, which returns a Result<>, and lets nothing but a status out.
template <class Work>
dael_status call(Work&& work) noexcept {
    try {
        Result<> result = work();
        return result ? DAEL_OK : failed(std::move(result).error());
    } catch (const std::bad_alloc&) {
        return failed({Code::out_of_memory, {}});  // no memory for words
    } catch (...) {
        return failed({Code::internal, {}});
    }
}

inline Error null(const char* what) {
    return {Code::invalid_argument, std::string(what) + " is null"};
}

// Hands `ran`'s value to the caller who asked for it.
Result<> report(Result<Ran> ran, dael_ran* out);

}  // namespace dael::capi
