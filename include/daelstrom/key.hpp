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
