// SPDX-License-Identifier: Apache-2.0
// Errors are values. Every call that can fail returns a Result and does not throw; those that
// return none throw at most std::bad_alloc. Nothing in the library prints or exits. The messages
// name the thing and the mend, and never hold key bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <daelstrom/export.h>

namespace dael {

// What went wrong, in the coarse. The values are the C ABI's `dael_status`; they never change.
enum class Code : int {
    ok = 0,
    invalid_argument = 1,  // a parameter has no meaning (a null pointer with a size)
    key_size = 2,          // a key that is not 16, 24 or 32 bytes
    iv_size = 3,           // an IV of a size that the mode does not take
    ragged_length = 4,     // ECB, CBC or XTS on a length that does not fill the last block
    bad_padding = 5,       // PKCS#7 padding that does not check; one message for every fault
    overlap = 6,           // input and output overlap without being the same buffer
    limit = 7,             // a limit of the mode would be passed (counter reuse, size)
    unknown_backend = 8,   // no backend has that name
    backend_absent = 9,    // the backend exists but this machine or build cannot run it
    unsupported = 10,      // the backend lacks this mode, direction or memory space
    out_of_memory = 11,    // host or device memory ran out
    device = 12,           // a call to the device's driver failed; the message names the call
    io = 13,               // a file, pipe or terminal failed
    bad_format = 14,       // input that is not what it should be (truncated, no magic)
    internal = 15,         // a defect in daelstrom itself
    authentication = 16,   // a tag does not match: a wrong key, nonce or AAD, or altered data
};
inline constexpr int kCodeCount = 17;

// One short sentence for each code, from the only table of them (src/core/error.cpp).
DAEL_API std::string_view describe(Code code) noexcept;

struct Error {
    Code code = Code::internal;
    std::string message;  // names the thing and the mend; one line, no trailing period, no secrets
};

// A value or an Error. `Result<>` carries no value. Test with `if (!r)`, then read `*r` or
// `r.error()`.
template <class T = std::monostate>
class [[nodiscard]] Result {
  public:
    Result() requires std::is_same_v<T, std::monostate> : state_(std::in_place_index<0>) {}
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const noexcept { return state_.index() == 0; }
    T& operator*() & { return std::get<0>(state_); }
    const T& operator*() const& { return std::get<0>(state_); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    const Error& error() const& { return std::get<1>(state_); }
    Error&& error() && { return std::get<1>(std::move(state_)); }
    Code code() const noexcept { return *this ? Code::ok : std::get<1>(state_).code; }

  private:
    std::variant<T, Error> state_;
};

}  // namespace dael

// Hands an Error up to the caller: `DAEL_TRY(device.copy(...));`
#define DAEL_TRY(expression)                                                                \
    do {                                                                                    \
        if (auto dael_try_ = (expression); !dael_try_) return std::move(dael_try_).error(); \
    } while (false)

// The same for a call that has a value, which gets a name: `DAEL_LET(engine, Engine::open());`
#define DAEL_LET(name, expression)                                   \
    auto name##_or_error = (expression);                             \
    if (!name##_or_error) return std::move(name##_or_error).error(); \
    auto& name = *name##_or_error
