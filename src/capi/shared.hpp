// SPDX-License-Identifier: Apache-2.0
// What the files of the C ABI share: its objects, and how Results become statuses.
#pragma once

#include <daelstrom/daelstrom.h>

#include <string>

#include <daelstrom/engine.hpp>

#include "core/guard.hpp"

struct dael_engine {
    dael::Engine engine;
};
struct dael_key {
    dael::Key key;
};

namespace dael::capi {

// Keeps the message for dael_last_error().
dael_status failed(Error error) noexcept;

// Runs `work`, which returns a Result<>, and lets nothing but a status out. Not noexcept: a thread
// that is cancelled in a callback leaves this way.
template <class Work>
dael_status call(Work&& work) {
    Result<> result = core::guarded(std::forward<Work>(work));
    return result ? DAEL_OK : failed(std::move(result).error());
}

inline Error null(const char* what) {
    return {Code::invalid_argument, std::string(what) + " is null"};
}

// Hands `ran`'s value to the caller who asked for it.
Result<> report(Result<Ran> ran, dael_ran* out);

}  // namespace dael::capi
