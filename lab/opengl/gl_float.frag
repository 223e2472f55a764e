// SPDX-License-Identifier: Apache-2.0
// AES encryption on a chip without integers, as a GeForce 6800 was: a byte v is the colour v / 255, and whatever
// colours cannot compute is looked up. One fragment is one block. FIPS 197 5.1, step by step; vectors are columns,
// with row 0 in x.
precision highp float;
precision highp sampler2D;

uniform sampler2D blocks;      // four texels in a row are a block
uniform sampler2D round_keys;  // 4 x 15: a round key in a row
uniform sampler2D s_box;       // 256 x 1
uniform sampler2D doubling;    // 256 x 1: {02} * x
uniform sampler2D sums;        // 256 x 256: x + y, which is their exclusive or
uniform vec2 size;             // of the target: blocks in a row, rows
uniform float rounds;

struct State {
    vec4 a, b, c, d;
};

layout(location = 0) out vec4 column_a;
layout(location = 1) out vec4 column_b;
layout(location = 2) out vec4 column_c;
layout(location = 3) out vec4 column_d;

// Where the colours' texels lie in a table of 256: at their centres, (v + 1/2) / 256.
vec4 at(vec4 v) {
    return v * (255. / 256.) + .5 / 256.;
}

vec4 look_up(sampler2D table, vec4 v) {
    v = at(v);
    return vec4(texture(table, vec2(v.x, .5)).r, texture(table, vec2(v.y, .5)).r,
                texture(table, vec2(v.z, .5)).r, texture(table, vec2(v.w, .5)).r);
}

vec4 add(vec4 v, vec4 w) {
    v = at(v);
    w = at(w);
    return vec4(texture(sums, vec2(v.x, w.x)).r, texture(sums, vec2(v.y, w.y)).r,
                texture(sums, vec2(v.z, w.z)).r, texture(sums, vec2(v.w, w.w)).r);
}

vec4 key_column(float round, float column) {
    return texture(round_keys, vec2((column + .5) / 4., (round + .5) / 15.));
}

State add_round_key(State s, float round) {
    return State(add(s.a, key_column(round, 0.)), add(s.b, key_column(round, 1.)),
                 add(s.c, key_column(round, 2.)), add(s.d, key_column(round, 3.)));
}

State sub_bytes(State s) {
    return State(look_up(s_box, s.a), look_up(s_box, s.b), look_up(s_box, s.c), look_up(s_box, s.d));
}

State shift_rows(State s) {
    return State(vec4(s.a.x, s.b.y, s.c.z, s.d.w), vec4(s.b.x, s.c.y, s.d.z, s.a.w),
                 vec4(s.c.x, s.d.y, s.a.z, s.b.w), vec4(s.d.x, s.a.y, s.b.z, s.c.w));
}

// {02} v0 + {03} v1 + v2 + v3, and so on around: {03} is {02} + {01}.
vec4 mix_column(vec4 v) {
    vec4 twice = look_up(doubling, v);
    return add(add(twice, twice.yzwx), add(v.yzwx, add(v.zwxy, v.wxyz)));
}

State mix_columns(State s) {
    return State(mix_column(s.a), mix_column(s.b), mix_column(s.c), mix_column(s.d));
}

vec4 block_column(float column) {
    float x = floor(gl_FragCoord.x) * 4. + column + .5;
    return texture(blocks, vec2(x / (4. * size.x), gl_FragCoord.y / size.y));
}

void main() {
    State s = State(block_column(0.), block_column(1.), block_column(2.), block_column(3.));
    s = add_round_key(s, 0.);
    for (float round = 1.; round < rounds; round += 1.)
        s = add_round_key(mix_columns(shift_rows(sub_bytes(s))), round);
    s = add_round_key(shift_rows(sub_bytes(s)), rounds);
    column_a = s.a;
    column_b = s.b;
    column_c = s.c;
    column_d = s.d;
}
