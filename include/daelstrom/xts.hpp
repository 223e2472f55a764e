// SPDX-License-Identifier: Apache-2.0
// AES-XTS (IEEE 1619, NIST SP 800-38E): encryption of storage sectors, each as long as before.
//
// Safety: XTS does not authenticate. A changed ciphertext block decrypts to a random one, and an
// old sector put back is not noticed. The same data in the same sector encrypts to the same bytes.
// It is for disks and for files read and written in place; where there is room for a tag, use GCM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>

namespace dael {

inline constexpr std::size_t kXtsLeast = 16;  // bytes of the shortest sector: one AES block
inline constexpr std::size_t kXtsMost = std::size_t{16} << 20;  // 2^20 AES blocks (SP 800-38E 4)

// Two AES keys, one for the data and one for the tweak. Lives in locked memory, wipes itself, can
// be moved but not copied. Immutable after import: any number of threads may use one at once.
class XtsKey {
  public:
    // Takes 32 bytes (XTS-AES-128) or 64 (XTS-AES-256): the data key, then the tweak key. Errors:
    // key_size; invalid_argument when the halves are equal, which would undo the tweak (FIPS 140-3
    // IG C.I); out_of_memory. The caller still owns, and should wipe, `bytes`.
    static Result<XtsKey> import(std::span<const std::uint8_t> bytes);

    int bits() const noexcept { return data_.bits(); }  // of each of the two: 128 or 256

    // For backends.
    const Key& data() const noexcept { return data_; }
    const Key& tweak() const noexcept { return tweak_; }

  private:
    XtsKey(Key data, Key tweak) noexcept : data_(std::move(data)), tweak_(std::move(tweak)) {}
    Key data_, tweak_;
};

// Which sectors a call works on: neighbours, numbered one after another from `first` on. The number
// is IEEE 1619's tweak, 128 bits, little-endian: `first_high` has its upper half, which disks leave
// zero.
struct XtsSectors {
    std::uint64_t first = 0;
    std::size_t size = 512;  // bytes of a sector, kXtsLeast to kXtsMost, a multiple of 16 or not
    std::uint64_t first_high = 0;
};

}  // namespace dael
