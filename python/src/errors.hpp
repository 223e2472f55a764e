// SPDX-License-Identifier: Apache-2.0
// Errors of the library as Python's exceptions, which daelstrom/exceptions.py defines.
#pragma once

#include <cxxabi.h>
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

// A thread that comes back to Python while that ends is ended there, up to 3.13 by pthread_exit():
// by unwinding, which the functions of C++ that are noexcept do not let through; the process would
// abort. Such a thread stops here for good, as it does in Python itself from 3.14 on.
[[noreturn]] void stop_for_good() noexcept;
// A call that may run code of Python's, and come back to it.
template <class Call>
decltype(auto) through_python(Call&& call) {
    try {
        return call();
    } catch (abi::__forced_unwind&) {
        stop_for_good();
    }
}

// While it lives, other threads of Python run.
class Released {
  public:
    explicit Released(bool really = true) : state_(really ? PyEval_SaveThread() : nullptr) {}
    ~Released() {
        if (state_) through_python([&] { PyEval_RestoreThread(state_); });
    }
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;

  private:
    PyThreadState* state_;
};
// Work on fewer bytes than these takes about as long as letting other threads run.
inline constexpr std::size_t kWorthReleasing = 2048;

}  // namespace daelpy
