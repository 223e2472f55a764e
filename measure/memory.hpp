// SPDX-License-Identifier: Apache-2.0
// Host memory for measurements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <daelstrom/error.hpp>

#include "measure/report.hpp"
#include "measure/team.hpp"

namespace dael::measure {

// On a page boundary, and touched, so that no page fault falls into a measurement.
class HostBuffer {
  public:
    static Result<HostBuffer> allocate(std::size_t size);
    std::uint8_t* data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return size_; }

  private:
    struct Free {
        void operator()(std::uint8_t* data) const noexcept;
    };
    std::unique_ptr<std::uint8_t[], Free> data_;
    std::size_t size_ = 0;
};

// Bytes that no compressor, cache or clock gate could take for a pattern (not for secrets).
void fill_random(Team& team, std::uint8_t* data, std::size_t size, std::uint64_t seed);

std::uint64_t available_memory();  // bytes that can be had without swapping

// The largest size up to `wanted` of which `buffers` fit into three quarters of the memory that is
// available, a multiple of 4096; says so in a line of the report when it is less than wanted.
std::uint64_t fitting(Report& report, std::uint64_t wanted, int buffers);

// Reads a stretch of what was made: `size` bytes from byte `at` on, into `bytes`.
using Fetch = std::function<Result<>(std::uint64_t at, std::uint8_t* bytes, std::size_t size)>;
Fetch fetch_from(const std::uint8_t* host_memory);

}  // namespace dael::measure
