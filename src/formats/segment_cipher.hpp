// SPDX-License-Identifier: Apache-2.0
// The segments of one sealed stream: its derived key and its nonces, over any engine.
#pragma once

#include <array>
#include <vector>

#include <daelstrom/engine.hpp>

#include "formats/keys.hpp"

namespace dael::formats {

// Segments one after another. Their plaintext lies packed, apart from their ciphertext and tags; or
// in place: each where its ciphertext is, with gaps where the tags are.
struct Run {
    std::uint64_t first = 0;  // the first segment's number
    std::uint64_t size = 0;   // bytes of plaintext: whole segments, but for a last one
    bool last = false;        // whether the stream ends with them
    bool in_place = false;
};

// For one thread at a time.
class SegmentCipher {
  public:
    // A new stream, with random salt and nonce prefix. Errors: those of the engine.
    static Result<SegmentCipher> start(Engine& engine, const StreamKey& key, HostIn aad);
    // The stream that `header` begins, which is as long as the key's layout says.
    static Result<SegmentCipher> resume(Engine& engine, const StreamKey& key, HostIn aad,
                                        HostIn header);

    const Layout& layout() const noexcept { return layout_; }
    HostIn header() const noexcept { return HostIn(header_).first(layout_.header); }

    // Errors: limit, and those of the engine.
    Result<Ran> seal(const Run& run, const std::uint8_t* plain, std::uint8_t* sealed) {
        return work(Direction::encrypt, run, plain, sealed);
    }
    // Errors too: authentication, naming the first segment that fails. Then no plaintext of the
    // run may be handed out.
    Result<Ran> open(const Run& run, const std::uint8_t* sealed, std::uint8_t* plain) {
        return work(Direction::decrypt, run, sealed, plain);
    }

    // The whole stream, of `sealed` bytes behind `read`, into device memory of its plaintext's size
    // (device_file.cpp). On failure all of `plain` is wiped, unless it is refused before anything
    // was touched: see Engine::State::open_into.
    Result<Ran> open(const sealed::ReadAt& read, std::uint64_t sealed, DeviceOut plain,
                     Stream stream);

  private:
    SegmentCipher(Engine& engine, const Layout& layout, KeySet keys)
        : engine_(&engine), layout_(layout), keys_(std::move(keys)) {}
    Result<Ran> work(Direction direction, const Run& run, const std::uint8_t* from,
                     std::uint8_t* to);
    void list(Direction direction, const Run& run, const std::uint8_t* from, std::uint8_t* to);

    Engine* engine_;
    Layout layout_;
    KeySet keys_;
    std::array<std::uint8_t, kMostHeader> header_{};
    Prefix prefix_{};
    std::vector<GcmMessage> messages_;  // kept from run to run, for their memory
    std::vector<Code> results_;
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
