// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/aes.hpp"

#include <algorithm>

#include <daelstrom/device/detail/aes_math.hpp>
#include <daelstrom/key.hpp>

namespace dael::reference {
namespace {

using Word = std::array<std::uint8_t, 4>;

// Applies a function of eight bytes, two columns, to both halves of the state.
template <class Function>
void each_half(State& state, Function function) noexcept {
    for (std::size_t half = 0; half < 16; half += 8) {
        std::uint8_t* bytes = state.data() + half;
        core::store_le(bytes, function(core::load_le<std::uint64_t>(bytes)));
    }
}

Word sub_word(const Word& word) noexcept {
    Word substituted;
    core::store_le(substituted.data(), core::sub_each(core::load_le<std::uint32_t>(word.data())));
    return substituted;
}

Word rot_word(const Word& word) noexcept {
    return {word[1], word[2], word[3], word[0]};
}

}  // namespace

// 5.2, figure 11. (Core's own expansion, which the other backends use, packs words into integers;
// this one is apart so that each can be checked against the other.)
ExpandedKey::ExpandedKey(std::span<const std::uint8_t> key) noexcept
    : rounds_(static_cast<int>(key.size() / 4) + 6) {
    const std::size_t nk = key.size() / 4;
    const std::size_t words = 4 * (static_cast<std::size_t>(rounds_) + 1);
    std::array<Word, 60> w{};
    for (std::size_t i = 0; i < nk; ++i)
        w[i] = {key[4 * i], key[4 * i + 1], key[4 * i + 2], key[4 * i + 3]};
    std::uint8_t rcon = 0x01;  // Rcon[i/Nk] = [x^(i/Nk - 1), 0, 0, 0]
    for (std::size_t i = nk; i < words; ++i) {
        Word temp = w[i - 1];
        if (i % nk == 0) {
            temp = sub_word(rot_word(temp));
            temp[0] ^= rcon;
            rcon = core::xtime(rcon);
        } else if (nk > 6 && i % nk == 4) {
            temp = sub_word(temp);
        }
        for (std::size_t b = 0; b < 4; ++b) w[i][b] = w[i - nk][b] ^ temp[b];
    }
    for (std::size_t i = 0; i < words; ++i)
        std::ranges::copy(w[i],
                          round_keys_[i / 4].begin() + static_cast<std::ptrdiff_t>(4 * (i % 4)));
    wipe(w.data(), sizeof w);
}

ExpandedKey::~ExpandedKey() {
    wipe(round_keys_.data(), sizeof round_keys_);
}

void sub_bytes(State& state) noexcept {
    each_half(state, core::sub_each<std::uint64_t>);
}
void inv_sub_bytes(State& state) noexcept {
    each_half(state, core::inv_sub_each<std::uint64_t>);
}

// s'[r][c] = s[r][(c + r) mod 4]
void shift_rows(State& state) noexcept {
    const State s = state;
    for (std::size_t c = 0; c < 4; ++c)
        for (std::size_t r = 0; r < 4; ++r) state[r + 4 * c] = s[r + 4 * ((c + r) % 4)];
}

// s'[r][(c + r) mod 4] = s[r][c]
void inv_shift_rows(State& state) noexcept {
    const State s = state;
    for (std::size_t c = 0; c < 4; ++c)
        for (std::size_t r = 0; r < 4; ++r) state[r + 4 * ((c + r) % 4)] = s[r + 4 * c];
}

void mix_columns(State& state) noexcept {
    each_half(state, core::mix_columns_each);
}
void inv_mix_columns(State& state) noexcept {
    each_half(state, core::inv_mix_columns_each);
}

void add_round_key(State& state, const State& round_key) noexcept {
    for (std::size_t i = 0; i < state.size(); ++i) state[i] ^= round_key[i];
}

Block cipher(const Block& in, const ExpandedKey& w, const Observer& observer) {
    const auto show = [&observer](int round, std::string_view value, const State& shown) {
        if (observer) observer(round, value, shown);
    };
    const int nr = w.rounds();
    State state = in;
    show(0, "input", state);
    show(0, "k_sch", w.round_key(0));
    add_round_key(state, w.round_key(0));
    for (int round = 1; round <= nr; ++round) {
        show(round, "start", state);
        sub_bytes(state);
        show(round, "s_box", state);
        shift_rows(state);
        show(round, "s_row", state);
        if (round < nr) {
            mix_columns(state);
            show(round, "m_col", state);
        }
        show(round, "k_sch", w.round_key(round));
        add_round_key(state, w.round_key(round));
    }
    show(nr, "output", state);
    return state;
}

Block inv_cipher(const Block& in, const ExpandedKey& w, const Observer& observer) {
    const auto show = [&observer](int round, std::string_view value, const State& shown) {
        if (observer) observer(round, value, shown);
    };
    const int nr = w.rounds();
    State state = in;
    show(0, "iinput", state);
    show(0, "ik_sch", w.round_key(nr));
    add_round_key(state, w.round_key(nr));
    for (int round = 1; round <= nr; ++round) {
        show(round, "istart", state);
        inv_shift_rows(state);
        show(round, "is_row", state);
        inv_sub_bytes(state);
        show(round, "is_box", state);
        show(round, "ik_sch", w.round_key(nr - round));
        add_round_key(state, w.round_key(nr - round));
        if (round < nr) {
            show(round, "ik_add", state);
            inv_mix_columns(state);
        }
    }
    show(nr, "ioutput", state);
    return state;
}

}  // namespace dael::reference
