// SPDX-License-Identifier: Apache-2.0
// AES as drawing: the data are a texture, a fragment program encrypts a block, and the picture that
// comes out is the ciphertext.
//
// An OpenGl belongs to the thread that opened it, where its context is current, and a thread has
// one at a time. `run` does all of it; upload, draw, finish and download are its steps, apart for
// those who measure.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/message.hpp>

#include "core/known_answers.hpp"

namespace dael::opengl {

enum class Form { integers, floats };
inline constexpr std::array<std::string_view, 2> kFormNames{"gl-int", "gl-float"};

// The size of a picture, in blocks.
struct Extent {
    int width = 0;
    int height = 0;
    std::size_t blocks() const noexcept {
        return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    }
    friend bool operator==(const Extent&, const Extent&) = default;
};

// The picture for so many blocks, at least 1 and at most what fits in `most`: nearly square, since
// processors draw squares of fragments at once, with fewer unused blocks than it has rows.
Extent fit(std::size_t blocks, Extent most) noexcept;

// The programs of gl-int, the first of which gl-float has too: ECB, ECB's inverse, counters.
inline constexpr std::size_t kPrograms = 3;
inline std::size_t program_of(const Cipher& cipher) noexcept {
    if (cipher.mode == Mode::ctr) return 2;
    return cipher.direction == Direction::decrypt ? 1 : 0;
}

// How many devices there are; on 0, `*why` says what is missing.
int count_devices(std::string* why);

struct Options {
    Form form = Form::integers;
    int device = 0;
    std::size_t pass = std::size_t{64} << 20;  // bytes of a picture at most, a multiple of 16,
    std::size_t band = std::size_t{1} << 20;   // and those that the GPU is told to draw at once
};

class OpenGl {
  public:
    // Errors: device, with the driver's own words where it has any.
    static Result<std::unique_ptr<OpenGl>> open(const Options& options);
    ~OpenGl();

    // "gl-int on Mesa llvmpipe, OpenGL ES 3.2, textures to 16384 x 16384"
    std::string description() const;
    bool supports(const Cipher& cipher) const;
    std::size_t pass() const noexcept { return pass_; }  // bytes, as the driver's limits allow

    // The device as known answers have it: "opengl:0 (Mesa llvmpipe)".
    const std::string& name() const noexcept { return name_; }
    // Whether the GPU was reset, after which nothing is drawn here any more.
    bool was_reset() const noexcept;

    // A message in a mode that is supported, in as many passes as it takes. Nothing of key or data
    // is left where OpenGL lets us reach it. A program is asked an answer that is known before its
    // first use with keys of a size: known_answers.cpp. Errors: device, out_of_memory.
    Result<> run(const Cipher& cipher, const Key& key, const Message& message);

    // One pass. The data begin `skip` bytes into their first block; together at most pass() bytes.
    // A span without a pointer stands for zeros.
    Result<> upload(std::span<const std::uint8_t> in, std::size_t skip = 0);
    Result<> draw(const Cipher& cipher, const Key& key, const Block& counter);  // may return before
    Result<> finish();                                                          // it is done
    Result<> download(std::span<std::uint8_t> out, std::size_t skip = 0);
    // Overwrites what the steps left behind.
    void wipe() noexcept;

  private:
    struct State;
    OpenGl(std::unique_ptr<State> state, std::string name, std::size_t pass, std::size_t band);
    Result<> believe(const Cipher& cipher, int bits);
    Result<> run_unasked(const Cipher& cipher, const Key& key, const Message& message);

    std::unique_ptr<State> state_;
    const std::string name_;
    std::size_t pass_, band_;
    std::array<bool, kPrograms * 3> believed_{};  // of a program, for keys of a size
    core::Heard heard_;
};

}  // namespace dael::opengl
