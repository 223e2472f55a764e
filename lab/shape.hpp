// SPDX-License-Identifier: Apache-2.0
// What a kernel of kernels/placement.cl is compiled for, and the constants that it is given. For
// nvcc too: nothing but plain data.
#pragma once

#include <cstdint>

namespace dael::lab {

struct Shape {
    enum class Tables { constant, shared, banks, none };
    enum class State { registers, aos, soa };
    // blocks: ECB. sliced: ECB, bitsliced. counters: CTR. cached: CTR, where rounds 1 and 2 are
    // done once for what 256 counters share.
    enum class Form { blocks, sliced, counters, cached };
    int bytes = 16;  // of a block, that a thread makes; 32, two blocks, of sliced
    Tables tables = Tables::shared;
    bool keys_shared = false;
    State state = State::registers;
    int count = 4;      // T-tables
    int threads = 256;  // of a block
    Form form = Form::blocks;

    std::uint64_t local_memory() const;                  // bytes that a block wants
    int blocks() const { return threads * bytes / 16; }  // of AES, that it works on at once
    friend bool operator==(const Shape&, const Shape&) = default;
};

// The round keys of AES-128, in words whose first byte is the lowest.
struct RoundKeys128 {
    std::uint32_t words[44];
};

struct Constants {
    RoundKeys128 keys;
    std::uint32_t start[4];  // the first counter, most significant word first
    // Of each round eight words: word j has bit j of the 16 bytes of its round key, each twice, at
    // bit 8 * row + 2 * column and the one after it.
    std::uint32_t planes[88];
};

}  // namespace dael::lab
