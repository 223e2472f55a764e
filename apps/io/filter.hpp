// SPDX-License-Identifier: Apache-2.0
// Moves data of any size from an Input through a function to an Output in constant memory: one
// thread reads ahead, one writes behind, and the caller's works in between, on a ring of buffers;
// or, for what is short, the caller's does all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <daelstrom/error.hpp>

#include "io/buffers.hpp"
#include "io/input.hpp"
#include "io/output.hpp"
#include "io/progress.hpp"

namespace dael::app {

// A part of the data, to be transformed in place.
struct FilterChunk {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    bool last = false;  // nothing follows; `size` may then be less than a whole chunk, even 0
};

// Where data lies in a chunk's buffer while it is read or written: in pieces that begin `stride`
// bytes apart and leave the last `gap` of them free. The very first piece of all begins `front`
// bytes late. So data that will get something in between needs no moving.
struct Spacing {
    std::size_t stride = 0;  // bytes, of which the chunk is a multiple; 0: all in one
    std::size_t gap = 0, front = 0;
};

struct FilterOptions {
    std::size_t chunk = std::size_t{4} << 20;  // bytes; a multiple of 16
    bool pinned = false;                       // buffers that a device copies from at full speed
    bool ahead = true;  // reads ahead and writes behind; else all in the caller's thread
    Spacing in, out;
};

// `work` transforms every chunk in order and may change its size, to at most 16 bytes more than
// `options.chunk`. All chunks but the last fill their pieces; there is always a last one. Nothing
// of a chunk is written before `work` has agreed to it.
using Work = std::function<Result<>(FilterChunk&)>;
Result<> filter(Input& input, Output& output, Progress& progress, const FilterOptions& options,
                Buffers& buffers, const Work& work);
Result<> filter(Input& input, Output& output, Progress& progress, const FilterOptions& options,
                const Work& work);  // with buffers of its own

}  // namespace dael::app
