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
// Here are streams in memory, through callbacks and in files. sealed_keys.hpp has the keys,
// sealed_recipients.hpp recipients and passphrases, and sealed_chunks.hpp the parts for those who
// move bytes themselves.
//
// Threads: one Engine, one Keys and one File serve any number at once, where the File's callback
// does. Closing during use: destroy a File when no call on it is running; engine and keys may go
// before it. Children of fork(): may open what the parent has opened, with an engine on host
// backends; a call that was running in the parent does not go on in them.
//
// Calls block until done. What a callback throws becomes an error (internal); a thread that is
// cancelled in one unwinds, with what it leaves wiped as after an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/sealed_chunks.hpp>
#include <daelstrom/sealed_keys.hpp>
#include <daelstrom/sealed_recipients.hpp>

namespace dael::sealed {

// Where a stream comes from: puts some bytes into `out`, which is never empty, and returns how
// many. As few as it likes: it is called until it returns 0, which is the end, and not again. What
// failed must be returned as an error: what ends a stream before its time seals a beginning.
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
DAEL_API Result<std::uint64_t> sealed_size(const Keys& keys, std::uint64_t plain);

// From memory to memory; the two lie apart (Code::overlap, before anything is touched: a stream is
// longer than its plaintext). sealed.size() must be sealed_size(). Errors: as Engine::run,
// limit.
DAEL_API Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, HostIn plain,
                           HostOut sealed);
// plain.size() may be anything from the plaintext's size on; sealed.size() is always enough.
// Errors: authentication, naming the segment, after which all of `plain` is wiped; those of the
// engine, after which what was written is; bad_format for what is too short to be sealed data,
// overlap and invalid_argument, after which nothing is touched.
DAEL_API Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, HostIn sealed,
                           HostOut plain);

// From a stream to a stream, in constant memory. When opening, verified plaintext goes out before
// the end is known to be authentic: throw it away if the call fails. Errors: those of the callbacks
// too.
DAEL_API Result<Done> seal(Engine& engine, const Keys& keys, HostIn aad, const Read& plain,
                           const Write& sealed);
DAEL_API Result<Done> open(Engine& engine, const Keys& keys, HostIn aad, const Read& sealed,
                           const Write& plain);

// A sealed stream that can be read from anywhere: reads what a range touches, and nothing else.
class DAEL_API File {
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

    // Plaintext from byte `at` on. A range of no bytes is verified like others, and at size() the
    // end with it. On failure all of `out` is wiped. Errors: authentication, naming the segment;
    // invalid_argument for a range that passes the end, and then nothing is touched.
    Result<Ran> read(std::uint64_t at, HostOut out);

    // All of the plaintext straight into device memory, with an engine for "auto" or a device:
    // ciphertext is read into page-locked memory, chunk after chunk, while the device opens the
    // chunks before. No plaintext is ever in host memory; not in File::open either, which tries
    // keys without decrypting. out.size must be size(). Runs on `stream`, after what it holds
    // already; done when it returns, and then the whole stream is verified. On failure all of `out`
    // is wiped, but what is refused up front (invalid_argument, unsupported, backend_absent)
    // touches nothing. `readers`: that many of the engine's threads call the File's callback at
    // once, for parts of a chunk, if it may be called so: one core copies from the page cache a
    // fifth of what the bus takes. Errors: authentication, naming the segment; the callback's;
    // device, out_of_memory.
    Result<Ran> read_all(DeviceOut out, Stream stream, int readers = 1);

  private:
    struct DAEL_HIDDEN State;
    explicit File(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael::sealed
