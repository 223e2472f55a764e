// SPDX-License-Identifier: Apache-2.0
#include "modes/gcm.hpp"

#include <algorithm>
#include <cstring>

#include <daelstrom/device/detail/aes_math.hpp>

#include "core/wipe_at_end.hpp"

namespace dael::modes {

// FIPS 197 5.1: two columns to a word of 64 bits, and nothing looked up.
Block encrypt_block(const core::KeySchedule& key, Block s) noexcept {
    const core::WipeAtEnd wipe(s);
    const auto add_round_key = [&](int round) {
        for (std::size_t i = 0; i < kBlockSize; ++i)
            s[i] ^= key.encrypt[16 * static_cast<std::size_t>(round) + i];
    };
    const auto each_half = [&](auto transform) {
        for (std::uint8_t* half : {s.data(), s.data() + 8})
            core::store_le(half, transform(core::load_le<std::uint64_t>(half)));
    };
    add_round_key(0);
    for (int round = 1; round <= key.rounds; ++round) {
        each_half(core::sub_each<std::uint64_t>);
        const Block t = s;  // ShiftRows
        for (std::size_t c = 0; c < 4; ++c)
            for (std::size_t r = 0; r < 4; ++r) s[r + 4 * c] = t[r + 4 * ((c + r) % 4)];
        if (round < key.rounds) each_half(core::mix_columns_each);
        add_round_key(round);
    }
    return s;
}

Element hash_subkey(const core::KeySchedule& key) noexcept {
    Block h = encrypt_block(key, {});
    const core::WipeAtEnd wipe(h);
    return load_element(h.data());
}

Block lengths_block(std::uint64_t aad_size, std::uint64_t size) noexcept {
    Block block;
    for (std::size_t i = 0; i < 8; ++i) {
        block[i] = static_cast<std::uint8_t>(8 * aad_size >> (56 - 8 * i));
        block[8 + i] = static_cast<std::uint8_t>(8 * size >> (56 - 8 * i));
    }
    return block;
}

Block pre_counter(const Element& h, std::span<const std::uint8_t> iv) noexcept {
    Block j0{};
    if (iv.size() == gcm::kNonceSize) {
        std::ranges::copy(iv, j0.begin());
        j0.back() = 1;
        return j0;
    }
    Element y = ghash(h, {}, iv.data(), iv.size());
    y = ghash(h, y, lengths_block(0, iv.size()).data(), kBlockSize);
    store_element(j0.data(), y);
    return j0;
}

// J0 = ((IV * H) + lengths) * H, read backwards.
Block iv_for(const Element& h, const Block& j0) noexcept {
    const Element reciprocal = inverse(h);
    Element y = multiply(load_element(j0.data()), reciprocal);
    y = add(y, load_element(lengths_block(0, kBlockSize).data()));
    Block iv;
    store_element(iv.data(), multiply(y, reciprocal));
    return iv;
}

bool equal_tags(const std::uint8_t* a, const std::uint8_t* b, std::size_t size) noexcept {
    std::uint64_t differs = 0;
    for (; size >= sizeof differs; size -= sizeof differs) {
        std::uint64_t from_a, from_b;
        std::memcpy(&from_a, a, sizeof from_a);
        std::memcpy(&from_b, b, sizeof from_b);
        differs |= from_a ^ from_b;
        a += sizeof differs;
        b += sizeof differs;
    }
    for (; size != 0; --size) differs |= static_cast<std::uint64_t>(*a++ ^ *b++);
    // The compiler must not know what is in there, so that it cannot stop at the first difference.
    __asm__ volatile("" : "+r"(differs));
    return differs == 0;
}

}  // namespace dael::modes
