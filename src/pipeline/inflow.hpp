// SPDX-License-Identifier: Apache-2.0
// Sealed messages that come in order from somewhere, to be opened into device memory: a chunk is
// read while the device opens those before it.
#pragma once

#include <functional>
#include <vector>

#include <daelstrom/engine.hpp>

namespace dael::pipeline {

// Each message takes `piece` bytes of the source with its tag, but the last, which takes what is
// left.
struct Source {
    std::uint64_t size = 0;  // bytes of all
    std::size_t piece = 0;   // bytes
    // Puts the next bytes into `chunk`, which is all of it or what is left, and lists its messages
    // as they are once the chunk lies at `arrived` in device memory.
    std::function<Result<>(HostOut chunk, const std::uint8_t* arrived,
                           std::vector<Message>& messages)>
        next;
    // What to say of a message that fails, numbered from 0.
    std::function<Error(std::uint64_t message, Code code)> fault;
};

// Into `out`, on the device that holds it. On failure all of `out` is wiped, unless it is refused
// before anything was touched: unsupported, backend_absent, invalid_argument.
Result<Ran> open_into(Engine::State& engine, KeySet::State& keys, const Source& source,
                      DeviceOut out, Stream stream);

}  // namespace dael::pipeline
