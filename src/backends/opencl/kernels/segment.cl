// SPDX-License-Identifier: Apache-2.0
// One message of a batch, or the only one. The host's twin is in src/backends/opencl/work.hpp.

typedef struct {
    ulong in, out;  // bytes from the beginning of the buffers
    ulong size;     // bytes
    uint skip;      // CTR: bytes of the first keystream block to leave out
    uint key;       // its index, where messages have keys of their own
    uint4 iv;
} Segment;
