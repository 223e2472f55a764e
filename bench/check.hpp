// SPDX-License-Identifier: Apache-2.0
// A figure counts only if the bytes are right: samples of the output are compared with what OpenSSL
// makes of the same input, and of modes that it lacks all of it with what other backends make.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/libraries.hpp"
#include "measure/memory.hpp"

namespace dael::bench {

using measure::Fetch;

// A stretch of one message's output.
struct Window {
    std::uint64_t message, begin, size;
};

// The head, the tail and some random places of the first, the last and some random messages. Whole
// messages where the mode is sequential within one, or authenticates.
std::vector<Window> sample_windows(const Work& work);

// What output is set to before the run, so that bytes left alone are noticed.
inline constexpr std::uint8_t kPoison = 0xa5;

// `in` is the input, in host memory, of the messages as lay_out() lays them out; `tags` is for
// what is sealed. Errors: Code::internal when a byte or a tag differs, naming the work and the
// place; what fetching or OpenSSL says.
Result<> check_output(const Work& work, const std::uint8_t* in, const Fetch& out,
                      const Fetch& tags = {});
// What was opened: the same messages against the plaintext that was sealed.
Result<> check_opened(const Work& work, const std::uint8_t* plaintext, const Fetch& out);
// The error of a figure that counts for nothing: `message` of the work `what`, "has ...".
Error worthless(const Work& work, std::uint64_t message, const std::string& what);
// That no message failed.
Result<> check_codes(const Work& work, std::span<const Code> codes);

}  // namespace dael::bench
