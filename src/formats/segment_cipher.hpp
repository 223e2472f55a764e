// SPDX-License-Identifier: Apache-2.0
// The segments of one sealed stream: its derived key and its nonces, over any engine.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <daelstrom/engine.hpp>
#include <daelstrom/sealed.hpp>

#include "formats/keys.hpp"

namespace dael::formats {

// Any number of threads may use it at once.
class SegmentCipher {
  public:
    // A new stream, with random salt and nonce prefix. Errors: those of the engine.
    static Result<SegmentCipher> start(Engine& engine, const StreamKey& key, HostIn aad);
    // The stream that `header` begins, which is as long as the key's layout says.
    static Result<SegmentCipher> resume(Engine& engine, const StreamKey& key, HostIn aad,
                                        HostIn header);

    const Layout& layout() const noexcept { return layout_; }
    HostIn header() const noexcept { return HostIn(header_).first(layout_.header); }

    // The segments of a chunk, whose bytes of the stream are at `sealed` and whose plaintext is at
    // `plain`, or in place where that is null. The header is neither read nor written. Errors:
    // those of the engine; authentication, naming the first segment that fails, and then no
    // plaintext of the chunk may be handed out.
    Result<Ran> run(Direction direction, const sealed::Chunk& chunk, std::uint8_t* sealed,
                    std::uint8_t* plain) const;

    // The whole stream, of `sealed` bytes behind `read`, which so many threads call at once, into
    // device memory of its plaintext's size (device_file.cpp). On failure all of `plain` is wiped,
    // unless it is refused before anything was touched: see pipeline::open_into.
    Result<Ran> open(const sealed::ReadAt& read, int readers, std::uint64_t sealed, DeviceOut plain,
                     Stream stream) const;

  private:
    SegmentCipher(Engine& engine, const Layout& layout, KeySet keys)
        : engine_(engine.state()), layout_(layout), keys_(std::move(keys)) {}
    // Messages for segments `from` to `to`, not included, of a chunk.
    void list(Direction direction, const sealed::Chunk& chunk, std::uint64_t from, std::uint64_t to,
              std::uint8_t* sealed, std::uint8_t* plain, std::vector<Message>& messages) const;

    std::shared_ptr<Engine::State> engine_;
    Layout layout_;
    KeySet keys_;
    std::array<std::uint8_t, kMaxHeader> header_{};
    Prefix prefix_{};
};

// What to say of segment i where an engine's result for it is `code`.
Error segment_fault(std::uint64_t i, bool last, Code code);

// How many bytes of a stream's beginning find_key() wants to see, if there are that many.
std::size_t head_size(const sealed::Keys& keys) noexcept;

// The cipher with the key that fits: where there are several, they are tried on segment 0. `whole`:
// the stream ends with `head`. Makes no plaintext. Errors: authentication, bad_format.
Result<SegmentCipher> find_key(Engine& engine, const sealed::Keys& keys, HostIn aad, HostIn head,
                               bool whole);

}  // namespace dael::formats
