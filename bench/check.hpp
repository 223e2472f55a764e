// SPDX-License-Identifier: Apache-2.0
// A figure counts only if the bytes are right: after a measurement's first run, samples of its
// output are compared with what OpenSSL makes of the same input.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/libraries.hpp"
#include "bench/subject.hpp"

namespace dael::bench {

// A stretch of one message's output.
struct Window {
    std::uint64_t message, begin, size;
};

// The head, the tail and some random places of the first, the last and some random messages. Whole
// messages where the mode is sequential within one, or authenticates.
std::vector<Window> sample_windows(const Work& work);

// What output is set to before the run, so that bytes left alone are noticed.
inline constexpr std::uint8_t kPoison = 0xa5;

// Reads a stretch of the output: `size` bytes from byte `at` on, into `bytes`.
using Fetch = std::function<Result<>(std::uint64_t at, std::uint8_t* bytes, std::size_t size)>;

// `in` is the input, in host memory, of the messages as lay_out() lays them out. Errors:
// Code::internal when a byte differs, naming the work and the place; what fetching or OpenSSL says.
Result<> check_output(const Work& work, const TestKey& key, const std::uint8_t* in,
                      const Fetch& fetch);

// A stretch of host memory from its beginning on.
Fetch fetch_from(const std::uint8_t* memory);

// The same for output in host memory.
Result<> check_output(const Work& work, const TestKey& key, const std::uint8_t* in,
                      const std::uint8_t* out);

// "cuda:0 cbc-128 decrypt, 1024 x 1 MiB, device", for messages.
std::string describe(const Work& work);

}  // namespace dael::bench
