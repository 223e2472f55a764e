// SPDX-License-Identifier: Apache-2.0
// Pipelined reading, copying and decryption of sealed data into device memory: messages come in
// order from somewhere, and a chunk is read while the device opens those before it.
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
    // Puts the bytes from `at` on into `out`. So many threads at most call it at once.
    std::function<Result<>(std::uint64_t at, HostOut out)> read;
    int readers = 1;
    // Lists the messages of `size` bytes from `at` on, chunk after chunk, as they are once these
    // lie at `arrived` in device memory.
    std::function<Result<>(std::uint64_t at, std::size_t size, const std::uint8_t* arrived,
                           std::vector<Message>& messages)>
        list;
    // What to say of a message that fails, numbered from 0.
    std::function<Error(std::uint64_t message, Code code)> fault;
};

// Into `out`, on the device that holds it. On failure all of `out` is wiped, unless it is refused
// before anything was touched: unsupported, backend_absent, invalid_argument.
Result<Ran> open_into(Engine::State& engine, KeySet::State& keys, const Source& source,
                      DeviceOut out, Stream stream);

}  // namespace dael::pipeline
