// SPDX-License-Identifier: Apache-2.0
// Errors of the library as Python's exceptions, which daelstrom/exceptions.py defines.
#pragma once

#include <daelstrom/daelstrom.h>
#include <nanobind/nanobind.h>

#include <string>

namespace daelpy {

namespace nb = nanobind;

// An exception by its name in daelstrom.exceptions.
[[noreturn]] void raise(const char* name, const std::string& message);
[[noreturn]] void value_error(const std::string& message);
[[noreturn]] void type_error(const std::string& message);

// What the library answered, and what its last error says of it.
[[noreturn]] void raise(dael_status status);
inline void check(dael_status status) {
    if (status != DAEL_OK) [[unlikely]]
        raise(status);
}
// That a child of fork() asked for its parent's devices.
[[noreturn]] void raise_forked();
// What became of one message of a batch.
[[noreturn]] void raise_code(std::int32_t code);

// While it lives, other threads of Python run.
class Released {
  public:
    explicit Released(bool really = true) : state_(really ? PyEval_SaveThread() : nullptr) {}
    ~Released() {
        if (state_) PyEval_RestoreThread(state_);
    }
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;

  private:
    PyThreadState* state_;
};
// Work on fewer bytes than these takes about as long as letting other threads run.
inline constexpr std::size_t kWorthReleasing = 2048;

}  // namespace daelpy
