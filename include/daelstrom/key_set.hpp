// SPDX-License-Identifier: Apache-2.0
// Keys made ready on an engine: expanded, with what GHASH needs of each, on every backend that they
// are used on, from the first use there. Messages name them by index. Wiped when it goes, which
// must be after the work. Keeps what it needs of the engine alive.
//
// Threads: any number may use it at once. replace() is for one thread at a time, and excludes calls
// on host memory with the set; launches in device memory may go on beside it. Closing: no call with
// the set may run while it is destroyed; batches of it may stay. fork(): a child may use its copy
// on the host, unless another thread was replacing a key of it when the process forked; on devices
// Code::device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/memory.hpp>

namespace dael {

class DAEL_API KeySet {
  public:
    KeySet(KeySet&&) noexcept;
    KeySet& operator=(KeySet&&) noexcept;
    ~KeySet();
    std::size_t size() const noexcept;  // keys
    int bits(std::uint32_t index) const noexcept;

    // Puts another key, of any size but of the same kind, in the place of key `index`. On the
    // device that the stream belongs to in the stream's order, without waiting: what was launched
    // there before has the old key, what is launched later the new one, prepared batches too. On
    // the host at once: a call on host memory that goes through the device waits for it. After an
    // error every key is as it was, on the host and on the device, and the message says so; but
    // where the device took a part of the replacement and then failed, the set is used up: every
    // call with it is Code::device, and only another set will do. Errors: invalid_argument, device,
    // out_of_memory; unsupported for a set that has been used on several devices, whose streams
    // know nothing of each other, on a stream that is being captured, and for a set under which any
    // launch was captured (cuda): a graph keeps the key that it has.
    Result<> replace(std::uint32_t index, const Key& key, Stream stream = {});

    struct DAEL_HIDDEN State;  // src/pipeline/key_set.hpp
    State& state() const noexcept { return *state_; }
    explicit KeySet(std::shared_ptr<State> state) noexcept;

  private:
    std::shared_ptr<State> state_;
};

}  // namespace dael
