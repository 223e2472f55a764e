// SPDX-License-Identifier: Apache-2.0
// The tweaks of neighbouring sectors for xts.cl: their numbers, encrypted under the second key, in
// either direction of the data by the cipher itself (IEEE 1619 5.2).

// The number of a later sector: 128 bits, little-endian, the first word lowest.
static inline uint4 sector_number(uint4 first, uint later) {
    const ulong low = upsample(first.y, first.x), sum = low + later;
    const ulong high = upsample(first.w, first.z) + (sum < low ? 1 : 0);
    return (uint4)((uint)sum, (uint)(sum >> 32), (uint)high, (uint)(high >> 32));
}

DAEL_KERNEL xts_tweaks(__global uint4* tweaks, const uint4 first, const uint count,
                       const RoundKeys keys) {
    DAEL_FILL_TABLES(tables);
    for (uint i = (uint)get_global_id(1) * kLanes + (uint)get_local_id(0); i < count;
         i += (uint)get_global_size(1) * kLanes)
        tweaks[i] = crypt(&tables, &keys, sector_number(first, i), (uint4)(0));
}
