// SPDX-License-Identifier: Apache-2.0
// One fragment is one block of AES: an RGBA texel of four columns, each a word with its row 0 in the lowest byte.
// T-tables join SubBytes, ShiftRows and MixColumns (the AES proposal, section 5.2.1). The program is compiled
// three times: as it stands it encrypts (FIPS 197 5.1); with DECRYPT it is the equivalent inverse cipher (5.3.5);
// with COUNTER it encrypts counters and adds them to the data (SP 800-38A 6.5).
precision highp int;
precision highp usampler2D;

uniform usampler2D blocks;
uniform usampler2D tables;  // 256 x 8: T0 to T3, and for the last round the S-box alone in bytes 0 to 3
uniform uvec4 round_keys[15];
uniform int rounds;
uniform uvec4 counter;  // of the first texel, as big-endian words, the lowest last
uniform uint width;     // blocks in a row

out uvec4 result;

// Byte `row` of each word, through its table.
uvec4 look_up(int table, int row, uvec4 words) {
    ivec4 at = ivec4(words >> (8 * row) & 0xffu);
    int y = table + row;
    return uvec4(texelFetch(tables, ivec2(at.x, y), 0).r, texelFetch(tables, ivec2(at.y, y), 0).r,
                 texelFetch(tables, ivec2(at.z, y), 0).r, texelFetch(tables, ivec2(at.w, y), 0).r);
}

uvec4 round_of(int table, uvec4 state, uvec4 round_key) {
#ifdef DECRYPT  // rows shift to the right
    uvec4 one = state.wxyz, three = state.yzwx;
#else
    uvec4 one = state.yzwx, three = state.wxyz;
#endif
    return look_up(table, 0, state) ^ look_up(table, 1, one) ^ look_up(table, 2, state.zwxy) ^
           look_up(table, 3, three) ^ round_key;
}

uvec4 cipher(uvec4 state) {
    state ^= round_keys[0];
    for (int i = 1; i < rounds; ++i) state = round_of(0, state, round_keys[i]);
    return round_of(4, state, round_keys[rounds]);
}

uvec4 swap_bytes(uvec4 v) {
    return v << 24 | (v & 0xff00u) << 8 | (v >> 8 & 0xff00u) | v >> 24;
}

// counter + blocks, modulo 2^128.
uvec4 counter_block(uint blocks_on) {
    uvec4 sum = counter;
    sum.w += blocks_on;
    uint carry = uint(sum.w < blocks_on);
    sum.z += carry;
    carry &= uint(sum.z == 0u);
    sum.y += carry;
    carry &= uint(sum.y == 0u);
    sum.x += carry;
    return swap_bytes(sum);
}

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    uvec4 block = texelFetch(blocks, at, 0);
#ifdef COUNTER
    result = block ^ cipher(counter_block(uint(at.y) * width + uint(at.x)));
#else
    result = cipher(block);
#endif
}
