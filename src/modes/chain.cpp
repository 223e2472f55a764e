// SPDX-License-Identifier: Apache-2.0
#include "modes/chain.hpp"

#include <cstring>

#include <daelstrom/key.hpp>

#include "modes/traits.hpp"

namespace dael::modes {

Chain::Chain(const Cipher& cipher, const Block& start, std::uint8_t skip) noexcept
    : cipher_(cipher) {
    current_.start = start;
    current_.skip = skip;
}

Chain::~Chain() {
    wipe(last_input_.data(), last_input_.size());
    wipe(current_.start.data(), current_.start.size());
}

Message Chain::next(const std::uint8_t* in, std::uint8_t* out, std::uint64_t size) noexcept {
    current_.in = in;
    current_.out = out;
    current_.size = size;
    const std::uint64_t whole = size / kBlockSize * kBlockSize;
    const bool chained = cipher_.mode == Mode::cbc || cipher_.mode == Mode::cfb;
    if (whole != 0 && ((chained && !encrypts(cipher_)) || cipher_.mode == Mode::ofb))
        std::memcpy(last_input_.data(), in + whole - kBlockSize, kBlockSize);
    return current_;
}

void Chain::done() noexcept {
    const std::uint64_t whole = current_.size / kBlockSize * kBlockSize;
    switch (cipher_.mode) {
        case Mode::ecb:
        default:  // modes that authenticate, which are not carried by a Chain
            return;
        case Mode::ctr:
        case Mode::gcm_ctr: {
            const std::uint64_t end = current_.skip + current_.size;
            current_.start = traits(cipher_.mode).start_at(cipher_, current_, current_.size);
            current_.skip = static_cast<std::uint8_t>(end % kBlockSize);
            return;
        }
        case Mode::xts:
            current_.start = traits(cipher_.mode).start_at(cipher_, current_, current_.size);
            return;
        case Mode::ofb:  // the keystream block itself, whose two ends are at hand
            if (whole == 0) return;
            for (std::size_t i = 0; i < kBlockSize; ++i)
                current_.start[i] = static_cast<std::uint8_t>(last_input_[i] ^
                                                              current_.out[whole - kBlockSize + i]);
            break;
        case Mode::cbc:
        case Mode::cfb:
            if (whole == 0) return;
            if (encrypts(cipher_))
                std::memcpy(current_.start.data(), current_.out + whole - kBlockSize, kBlockSize);
            else
                current_.start = last_input_;
            break;
    }
    wipe(last_input_.data(), last_input_.size());
}

}  // namespace dael::modes
