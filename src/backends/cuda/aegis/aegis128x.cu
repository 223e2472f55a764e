// SPDX-License-Identifier: Apache-2.0
// AEGIS-128X (RFC 10032, "Parallel Modes"): two or four states of a message side by side.
#include "backends/cuda/aegis/forms.cuh"

namespace dael::cuda {
namespace {

template <std::uint32_t kDegree>
Kernel parallel_kernel(AegisWay way, bool opening) {
    switch (way) {
        case AegisWay::blocks2:
            return aegis_kernel_of<AegisForm<false, 2, kDegree, 1024>>(opening);
        case AegisWay::blocks4:
            return aegis_kernel_of<AegisForm<false, 4, kDegree, 1024>>(opening);
        case AegisWay::blocks8:
            return aegis_kernel_of<AegisForm<false, 8, kDegree, 1024>>(opening);
        case AegisWay::few:
            return aegis_few_of<AegisForm<false, 8, kDegree, 256, false, 1>>(opening);
        default:
            return aegis_kernel_of<AegisForm<false, 1, kDegree, 256, false, 1>>(opening);
    }
}

}  // namespace

Kernel aegis128x2_kernel(AegisWay way, bool opening) {
    return parallel_kernel<2>(way, opening);
}
Kernel aegis128x4_kernel(AegisWay way, bool opening) {
    return parallel_kernel<4>(way, opening);
}

}  // namespace dael::cuda
