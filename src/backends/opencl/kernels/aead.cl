// SPDX-License-Identifier: Apache-2.0
// Messages that one kernel takes from their nonces to their tags: AEGIS, XAES-256-GCM, AES-GCM-SIV.
// The host's twin is in src/backends/opencl/aead.hpp.
//
// DAEL_AUTHENTICATION, DAEL_INTERNAL: the results of a message whose tag is another, and of one
// whose key has another size than the mode's.

typedef struct {
    ulong in, out, aad, tag;  // bytes from the beginning of their buffers
    ulong size, aad_size;     // bytes
    uint4 start, rest;        // the nonce
    uint key;                 // its index
    uint result;              // its place among the results
    uint in_place;            // whether the output is where the input is
    uint unused;
} AeadItem;

// How many of the 16 bytes from byte `at` on a message of `size` has.
static inline int bytes_at(ulong at, ulong size) {
    return at >= size ? 0 : size - at < 16 ? (int)(size - at) : 16;
}
static inline uint4 load_bytes(__global const uchar* base, ulong at, int size) {
    return size == 16 && (at & 15) == 0 ? load_block(base, at) : load_part(base, (long)at, 0, size);
}
static inline void store_bytes(__global uchar* base, ulong at, int size, uint4 v) {
    if (size == 16 && (at & 15) == 0)
        store_block(base, at, v);
    else
        store_part(base, (long)at, 0, size, v);
}
// The first `size` bytes of a block, and zeros.
static inline uint4 first_bytes(uint4 v, int size) {
    const int4 bits = clamp((int4)(size) - (int4)(0, 4, 8, 12), 0, 4) * 8;
    return v & select((uint4)(~0u), ((uint4)(1) << as_uint4(bits & 31)) - 1, bits < 32);
}
// Not 0 where two blocks differ.
static inline uint difference(uint4 a, uint4 b) {
    const uint4 bits = a ^ b;
    return bits.x | bits.y | bits.z | bits.w;
}
