// SPDX-License-Identifier: Apache-2.0
// Data and AAD of any address and size, a step at a time.
#pragma once

#include "backends/cuda/aegis/job.cuh"

namespace dael::cuda {

// Bytes `from` to `size` of data, `size` being this lane's message's, or of AAD, which has no
// output; a step at a time up to the longest of the warp's, which is `to`. What is past a message's
// end is zeros for its state (ZeroPad of RFC 10032), and steps after its last leave the state
// alone. `opens`: it is ciphertext. The whole warp calls it.
template <class F, bool kAad = false>
__device__ __forceinline__ void aegis_steps(AegisState<F>& state, const unsigned char* in,
                                            unsigned char* out, std::uint64_t from,
                                            std::uint64_t to, std::uint64_t size, bool opens,
                                            bool writes) {
    const auto have = [&](std::uint64_t at) { return state.owns() ? bytes_at(at, size) : 0; };
#pragma unroll 1
    for (std::uint64_t at = from; at < to; at += F::kStep) {
        const std::uint64_t first = at + state.place(), second = first + F::kStep / 2;
        const int n = have(first), n1 = F::kBoth ? have(second) : 0;
        Words4 m{}, m1{}, z, z1{};
        if (n != 0) m = load_some<kAad>(in + first, n);
        if (n1 != 0) m1 = load_some<kAad>(in + second, n1);
        state.keystream(z, z1);
        const Words4 o = m ^ z, o1 = m1 ^ z1;
        if (writes && n != 0) store_some(out + first, o, n);
        if (writes && n1 != 0) store_some(out + second, o1, n1);
        if (opens) {
            m = first_bytes(o, n);
            m1 = first_bytes(o1, n1);
        }
        state.update_if(at < size, m, m1);
    }
}

}  // namespace dael::cuda
