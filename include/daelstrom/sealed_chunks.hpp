// SPDX-License-Identifier: Apache-2.0
// Sealed streams (sealed.hpp) chunk by chunk, without any reading or writing: the caller moves the
// bytes. Everything else that seals and opens streams stands on this.
//
//     stream  = header | segment 0 | segment 1 | ... | the last segment
//     segment = ciphertext | tag of 16 bytes
//
// The header counts to segment 0, so that segment i ends at byte (i + 1) * layout.segment. A chunk
// is some neighbouring whole segments; only the last one of a stream may be shorter.
//
// Plaintext lies packed in memory of its own, which may not overlap the stream's (Code::overlap,
// before anything is touched); or in place, in the chunk's memory, each segment's where its
// ciphertext is: Layout::place() tells.
//
// Safety: a Sealer seals each segment once, in order, so that no nonce repeats. An Opener hands out
// verified plaintext only; that the stream is whole is known once its last segment is verified.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <daelstrom/export.h>
#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/sealed_keys.hpp>

namespace dael::sealed {

struct Range {
    std::uint64_t at = 0, size = 0;  // bytes
};

struct Chunk {
    std::uint64_t first = 0, count = 0;  // number of its first segment, and how many there are
    Range plain;                         // where its bytes lie in the plaintext
    Range sealed;                        // and in the stream, with the header
    bool last = false;                   // the stream ends with it
};

// Where things lie in one stream: arithmetic alone.
struct DAEL_API Layout {
    std::uint64_t segment = 0;  // bytes of a whole segment, with its tag
    std::uint64_t header = 0;   // bytes

    // Bytes of plaintext that segment i has room for, and where they begin.
    std::uint64_t room(std::uint64_t i) const noexcept;
    std::uint64_t plain_at(std::uint64_t i) const noexcept;
    // The segment that holds byte `at` of the plaintext.
    std::uint64_t segment_of(std::uint64_t at) const noexcept;
    // A plaintext's segments: one at least; the last one holds a byte unless it is the only one.
    std::uint64_t segments(std::uint64_t plain) const noexcept;

    // From the size of a plaintext to that of its stream, and back. Errors: limit for more than
    // 2^32 segments; bad_format where no stream ends.
    Result<std::uint64_t> sealed_size(std::uint64_t plain) const;
    Result<std::uint64_t> plain_size(std::uint64_t sealed) const;

    // The smallest chunk that holds `plain`, of a plaintext of `size` bytes; one that reaches the
    // end has the last segment, even where that is empty. Fetch its `sealed` range and open it.
    // Errors: invalid_argument for a range that passes the end.
    Result<Chunk> covering(Range plain, std::uint64_t size) const;
    // The chunk that begins with segment `first` and has so many bytes of plaintext, or of the
    // stream: whole segments, unless it is the last. Errors: invalid_argument, bad_format, limit.
    Result<Chunk> of_plain(std::uint64_t first, std::uint64_t plain, bool last) const;
    Result<Chunk> of_sealed(std::uint64_t first, std::uint64_t sealed, bool last) const;

    // Where in a chunk's memory the plaintext of its i-th segment lies when it is in place.
    Range place(const Chunk& chunk, std::uint64_t i) const noexcept;
};

// Makes one stream, its chunks one after another; keeps no plaintext.
//
// Threads: one at a time. A second one is refused (invalid_argument), since both would use the same
// nonces. Closing during use: destroy it when no call on it is running. Children of fork() cannot
// go on with it.
class DAEL_API Sealer {
  public:
    // With a random salt and nonce prefix. The first of the keys seals. Keeps what it needs of the
    // engine alive. Errors: those of the engine.
    static Result<Sealer> start(Engine& engine, const Keys& keys, HostIn aad);
    Sealer(Sealer&&) noexcept;
    Sealer& operator=(Sealer&&) noexcept;
    ~Sealer();

    const Layout& layout() const noexcept;
    // The chunk that so many bytes of plaintext would make now: it tells how much room they take.
    // Errors: as seal().
    Result<Chunk> next(std::uint64_t plain, bool last) const;

    // Seals the next chunk: whole segments of plaintext, but for the last, which has a byte at
    // least unless it is the first too. The result is what next() said, and the first one begins
    // with the header. `sealed` may be larger; in place, `chunk` holds the plaintext where
    // Layout::place() says. Errors: invalid_argument, overlap (nothing is touched); limit; those of
    // the engine, after which some of the nonces may have been used, so that this stream cannot go
    // on. Neither can it after its last chunk, nor in a child of fork(), where its parent's nonces
    // would repeat (invalid_argument).
    Result<Ran> seal(HostIn plain, HostOut sealed, bool last);
    Result<Ran> seal_in_place(HostOut chunk, std::uint64_t plain, bool last);

    struct DAEL_HIDDEN State;  // src/formats

  private:
    explicit Sealer(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

// Opens one stream, its chunks in any order.
//
// Threads: any number at once. Closing during use: destroy it when no call on it is running.
// Children of fork() may go on with it, with an engine on host backends.
class DAEL_API Opener {
  public:
    // How much of a stream's beginning start() looks at, if there is that much, to find the key.
    static std::size_t head_size(const Keys& keys) noexcept;
    // By a stream's beginning; `whole`: that is all of it. Makes no plaintext. Keeps what it needs
    // of the engine alive. Errors: bad_format; authentication where several keys are tried and none
    // fits; those of the engine.
    static Result<Opener> start(Engine& engine, const Keys& keys, HostIn aad, HostIn head,
                                bool whole);
    Opener(Opener&&) noexcept;
    Opener& operator=(Opener&&) noexcept;
    ~Opener();

    const Layout& layout() const noexcept;

    // `sealed` and `plain` have the chunk's sizes; in place, `bytes` are its bytes of the stream.
    // Errors: authentication, naming the first segment that fails; those of the engine. After them
    // all of `plain`, or of `bytes`, is wiped. invalid_argument, overlap: nothing is touched.
    Result<Ran> open(const Chunk& chunk, HostIn sealed, HostOut plain) const;
    Result<Ran> open_in_place(const Chunk& chunk, HostOut bytes) const;

    struct DAEL_HIDDEN State;  // src/formats
    State& state() const noexcept { return *state_; }

  private:
    explicit Opener(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael::sealed
