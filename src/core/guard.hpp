// SPDX-License-Identifier: Apache-2.0
// The line that exceptions do not cross. The standard library throws when memory runs out, and a
// caller's callback may throw anything; the library's outer calls run inside guarded(), which turns
// that into an Error.
//
// One thing must pass: pthread_cancel() and pthread_exit() unwind a thread's stack by something
// that only looks like an exception, and whoever swallows it has the process aborted. So guarded()
// lets it through, and neither it nor what calls it on the way from a callback may be noexcept.
#pragma once

#include <cxxabi.h>
#include <pthread.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include <daelstrom/error.hpp>

namespace dael::core {

// What is said of an exception that is known by its words, which need memory of their own.
inline Error unexpected(const char* what) noexcept {
    try {
        return {Code::internal, std::string("unexpected exception: ") + what};
    } catch (const std::bad_alloc&) {
        return {Code::internal, "an exception"};  // as short as below
    }
}

// Calls `work`, which returns a Result of some kind, and returns what it returns.
template <class Work>
auto guarded(Work&& work) -> decltype(work()) {
    try {
        return std::forward<Work>(work)();
    } catch (const std::bad_alloc&) {
        // So short that the string needs no memory of its own.
        return Error{Code::out_of_memory, "no host memory"};
    } catch (const std::length_error&) {  // more than any memory holds
        return Error{Code::out_of_memory, "no host memory"};
    } catch (const std::exception& fault) {
        return unexpected(fault.what());
    }
#ifdef __GLIBCXX__
    catch (const abi::__forced_unwind&) {  // a thread that is cancelled
        throw;
    }
#endif
    catch (...) {
        return unexpected("one of a type of its own");
    }
}

// While this lives, its thread cannot be cancelled: where others work on its stack, and around what
// is not made to be left by the way, such as destructors.
class Uncancelled {
  public:
    Uncancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    Uncancelled(const Uncancelled&) = delete;
    Uncancelled& operator=(const Uncancelled&) = delete;
    ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }

  private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

// Whether what a device does has come to its end, which `wait` waits for, returning a Result. One
// failure may be that of work that came before, so it is asked twice. False: nobody knows, and what
// the device may read or write is neither wiped nor freed nor used again.
template <class Wait>
bool waited(const Wait& wait) noexcept {
    const Uncancelled whole;
    return guarded(wait) || guarded(wait);
}

}  // namespace dael::core
