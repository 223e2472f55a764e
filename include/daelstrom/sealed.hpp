// SPDX-License-Identifier: Apache-2.0
// Sealed data: a stream of any size, encrypted and authenticated segment by segment, so that it can
// be opened in constant memory, in parallel, and from anywhere. The format is Tink's streaming AEAD
// AES-GCM-HKDF, byte for byte; docs/format.md describes it.
//
// Safety: whoever opens gets verified plaintext only, segment by segment in order. That a stream is
// whole is known once its last segment is verified: what was handed out before is authentic, but
// may be only the beginning. A stream holds at most 2^32 segments. Associated data is not stored;
// opening takes the same. A sealed stream tells its size and nothing else about its plaintext.
//
// Calls block until done. One Engine and one Keys serve any number of threads at once; a File is
// for one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael::sealed {

// Bytes of a ciphertext segment with its tag, in Tink's templates ..._4KB and ..._1MB.
inline constexpr std::uint32_t kSmallSegment = 4096;
inline constexpr std::uint32_t kLargeSegment = 1 << 20;

// What seals and what may open: the first key seals, and opening tries every one. In locked memory
// that wipes itself.
class Keys {
  public:
    struct State;

    // 16 or 32 bytes: Tink's AES128_GCM_HKDF_... and AES256_GCM_HKDF_..., with SHA-256. Seals with
    // segments of this size and opens both sizes. Errors: key_size, invalid_argument.
    static Result<Keys> from_key(HostIn bytes, std::uint32_t segment = kLargeSegment);
    // A keyset as Tink writes it in JSON, not encrypted: the primary key seals, every enabled one
    // opens. Errors: bad_format, unsupported. Nothing of the text is kept; wiping it is up to the
    // caller.
    static Result<Keys> from_keyset(HostIn json);

    Keys(Keys&&) noexcept;
    Keys& operator=(Keys&&) noexcept;
    ~Keys();
    std::uint32_t segment() const noexcept;  // bytes, of what is sealed with these keys

    explicit Keys(std::unique_ptr<State> state) noexcept;  // src/formats
    const State& state() const noexcept { return *state_; }

  private:
    std::unique_ptr<State> state_;
};

// Where a stream comes from: fills `out` unless the data ends first; returns how much came.
using Read = std::function<Result<std::size_t>(HostOut out)>;
// Any `out.size()` bytes of a stream, from byte `at` on.
using ReadAt = std::function<Result<>(std::uint64_t at, HostOut out)>;
// Where a stream goes.
using Write = std::function<Result<>(HostIn bytes)>;

struct Done {
    std::uint64_t size = 0;  // bytes that came out
    Ran ran;
};

// Bytes that sealing makes of `plain` bytes. Errors: limit.
Result<std::uint64_t> sealed_size(const Keys& keys, std::uint64_t plain);

// From memory to memory. sealed.size() must be sealed_size(). Errors: as Engine::seal_batch, limit.
Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, HostIn plain, HostOut sealed);
// plain.size() may be anything from the plaintext's size on; sealed.size() is always enough. On
// failure all of `plain` is wiped. Errors: authentication, naming the segment; bad_format for what
// is too short to be sealed data; invalid_argument.
Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, HostIn sealed, HostOut plain);

// From a stream to a stream, in constant memory. When opening, verified plaintext goes out before
// the end is known to be authentic: throw it away if the call fails. Errors: those of the callbacks
// too.
Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, const Read& plain,
                  const Write& sealed);
Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, const Read& sealed,
                  const Write& plain);

// A sealed stream that can be read from anywhere: reads what a range touches, and nothing else.
class File {
  public:
    // `size`: bytes of the whole stream behind `read`. Errors: bad_format, authentication.
    static Result<File> open(Engine& engine, const Keys& keys, HostIn aad, ReadAt read,
                             std::uint64_t size);
    File(File&&) noexcept;
    File& operator=(File&&) noexcept;
    ~File();

    // Bytes of plaintext, as the stream's size tells. That nothing was cut off or added is known
    // once the last segment is verified: by check_size(), or by a read that reaches the end.
    std::uint64_t size() const noexcept;
    Result<> check_size();

    // Plaintext from byte `at` on. On failure all of `out` is wiped. Errors: authentication, naming
    // the segment; invalid_argument for a range that passes the end.
    Result<Ran> read(std::uint64_t at, HostOut out);

    // All of the plaintext straight into device memory, with an engine for "auto" or a device:
    // ciphertext is read into page-locked memory, chunk after chunk, while the device opens the
    // chunks before. No plaintext is ever in host memory; not in File::open either, which tries
    // keys without decrypting. out.size must be size(). Runs on `stream`, after what it holds
    // already; done when it returns, and then the whole stream is verified. On failure all of `out`
    // is wiped, but what is refused up front (invalid_argument, unsupported, backend_absent)
    // touches nothing. Errors: authentication, naming the segment; the callback's; device,
    // out_of_memory.
    Result<Ran> read_all(DeviceOut out, Stream stream);

  private:
    struct State;
    explicit File(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

// A passphrase in the key's place: a Lock stands in front of the sealed stream and holds the
// stream's own random key, encrypted under scrypt (RFC 7914) of the passphrase. docs/format.md has
// its bytes.
inline constexpr std::size_t kLockSize = 108;
using Lock = std::array<std::uint8_t, kLockSize>;

// What guessing costs: N = 2^log2_n and r take 128 N r bytes of memory, at most 1 GiB here; N r p
// steps at most 2^25. A lock that asks for more is refused before anything is computed.
struct Cost {
    int log2_n = 17, r = 8, p = 1;  // 128 MiB
};

struct Locked {
    Lock lock;
    Keys keys;  // for this one stream
};

// Whether a stream begins as a Lock does; 8 bytes tell.
bool is_lock(HostIn start) noexcept;
// A new random key, and its lock. Errors: invalid_argument for a cost or a segment that cannot be.
Result<Locked> make_lock(Engine& engine, HostIn passphrase, std::uint32_t segment = kLargeSegment,
                         Cost cost = {});
// Errors: authentication for another passphrase or an altered lock; bad_format; limit for its cost.
Result<Keys> unlock(Engine& engine, HostIn passphrase, const Lock& lock);
// The same key under another passphrase: what stands behind the lock stays as it is. Whoever has
// the old lock and the old passphrase can still open it.
Result<Lock> relock(Engine& engine, HostIn old_passphrase, HostIn new_passphrase, const Lock& lock,
                    Cost cost = {});

}  // namespace dael::sealed
