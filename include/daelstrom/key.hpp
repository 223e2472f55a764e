// SPDX-License-Identifier: Apache-2.0
// AES keys. A Key lives in locked memory that core dumps leave out, wipes itself when it goes, can
// be moved but not copied by accident, and is never printed. Keys share pages, so there may be
// millions.
//
// Threads: it is immutable after import, and any number may use one Key at once. Closing: not
// during a call that has it. fork(): a child has its parent's keys, but not locked: the kernel
// hands that on to nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael {

namespace core {
struct KeySchedule;
}

class DAEL_API Key {
  public:
    // Takes 16, 24 or 32 bytes (AES-128, -192, -256; FIPS 197 section 5) and expands them.
    // Errors: Code::key_size; Code::out_of_memory. The caller still owns, and should wipe, `bytes`.
    static Result<Key> import(std::span<const std::uint8_t> bytes);

    // For XTS: two AES keys one after the other, the data's and the tweak's, 32 bytes in all
    // (XTS-AES-128) or 64 (XTS-AES-256). Errors: as above; invalid_argument when the halves are
    // equal, which would undo the tweak (FIPS 140-3 IG C.I).
    static Result<Key> import_xts(std::span<const std::uint8_t> bytes);

    Key(Key&&) noexcept;
    Key& operator=(Key&&) noexcept;
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;
    ~Key();

    // A second, independent copy, asked for by name.
    Result<Key> duplicate() const;

    int bits() const noexcept;    // 128, 192 or 256; for XTS of each of the two
    int rounds() const noexcept;  // 10, 12 or 14
    bool is_xts() const noexcept { return xts_; }

    // For backends: the raw key and both expanded schedules (src/core/key_schedule.hpp), and of an
    // XTS key the tweak's.
    const core::KeySchedule& schedule() const noexcept { return *schedule_; }
    const core::KeySchedule& tweak() const noexcept;

  private:
    Key(core::KeySchedule* schedule, bool xts) noexcept : schedule_(schedule), xts_(xts) {}
    core::KeySchedule* schedule_;  // one, or two of an XTS key
    bool xts_ = false;
};

// Overwrites memory in a way that the compiler may not remove.
DAEL_API void wipe(void* memory, std::size_t size) noexcept;

}  // namespace dael

// Keys made ready on an engine: expanded, with what GHASH needs of each, on every backend that they
// are used on, from the first use there. Messages name them by index. Wiped when it goes, which
// must be after the work. Keeps what it needs of the engine alive.
//
// Threads: any number may use it at once. replace() is for one thread at a time, and excludes calls
// on host memory with the set; launches in device memory may go on beside it. Closing: no call with
// the set may run while it is destroyed; batches of it may stay. fork(): a child may use its copy
// on the host, unless another thread was replacing a key of it when the process forked; on devices
// Code::device.

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
