// SPDX-License-Identifier: Apache-2.0
// One file through the cipher: what stands in front of the ciphertext, the key, padding, and the
// stream itself.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <daelstrom/engine.hpp>

#include "engine_options.hpp"
#include "io/input.hpp"
#include "io/output.hpp"
#include "io/progress.hpp"
#include "io/secrets.hpp"

namespace dael::cli {

struct CipherJob {
    Direction direction = Direction::encrypt;
    Mode mode = Mode::ctr;
    std::string input = "-";
    OutputOptions output;
    EngineChoice engine;
    bool padding = true;          // PKCS#7 in ECB and CBC
    std::optional<Block> iv;      // none: made here and stored in front, or read from there
    std::uint64_t offset = 0;     // CTR
    Show show = Show::automatic;  // progress
    bool json = false;            // what was done, on standard output
    // Reads or derives the key. Called after everything else that can be refused has been checked,
    // so that nobody types a password in vain.
    std::function<Result<Secret>()> key;
    // `openssl enc -pbkdf2`: instead of `key` and `iv`.
    struct Salted {
        std::function<Result<Secret>()> password;
        int iterations = 10000;
        int key_bits = 256;
    };
    std::optional<Salted> salted;

    bool encrypts() const { return direction == Direction::encrypt; }
    bool pads() const { return padding && whole_blocks_only(mode); }
};

Result<> run(const CipherJob& job);

}  // namespace dael::cli
