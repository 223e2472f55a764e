// SPDX-License-Identifier: Apache-2.0
// AES as FIPS 197 writes it, line by line, under the names it gives (in this house's spelling): the
// yardstick by which the fast backends are judged. Constant time: the S-box is computed, never
// looked up, and nothing branches on data or key. Thread-safe: there is no state.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include <daelstrom/message.hpp>

namespace dael::reference {

// FIPS 197 3.4: byte s[r][c] of the state is state[r + 4*c].
using State = Block;

// Receives the intermediate values of one block, by round and under their names in FIPS 197
// appendix C: "input", "start", "s_box", "s_row", "m_col", "k_sch", "output"; for the inverse
// cipher "iinput", "istart", "is_row", "is_box", "ik_sch", "ik_add", "ioutput".
using Observer = std::function<void(int round, std::string_view value, const State& state)>;

inline Block operator^(Block a, const Block& b) noexcept {
    for (std::size_t i = 0; i < kBlockSize; ++i) a[i] ^= b[i];
    return a;
}

// The key schedule w[0 .. 4*(rounds+1)-1] of FIPS 197 5.2, four words to a round key. Wipes itself.
class ExpandedKey {
  public:
    // KeyExpansion(). `key` is 16, 24 or 32 bytes.
    explicit ExpandedKey(std::span<const std::uint8_t> key) noexcept;
    ExpandedKey(const ExpandedKey&) = delete;
    ExpandedKey& operator=(const ExpandedKey&) = delete;
    ~ExpandedKey();

    int rounds() const noexcept { return rounds_; }
    const State& round_key(int round) const noexcept {
        return round_keys_[static_cast<std::size_t>(round)];
    }

  private:
    std::array<State, 15> round_keys_{};
    int rounds_;
};

// The transformations of the cipher (5.1.1 to 5.1.4) and of the inverse cipher (5.3.1 to 5.3.3).
void sub_bytes(State& state) noexcept;
void shift_rows(State& state) noexcept;
void mix_columns(State& state) noexcept;
void add_round_key(State& state, const State& round_key) noexcept;
void inv_shift_rows(State& state) noexcept;
void inv_sub_bytes(State& state) noexcept;
void inv_mix_columns(State& state) noexcept;

// Cipher() and InvCipher() (figures 5 and 12): one block.
Block cipher(const Block& in, const ExpandedKey& w, const Observer& observer = {});
Block inv_cipher(const Block& in, const ExpandedKey& w, const Observer& observer = {});

}  // namespace dael::reference
