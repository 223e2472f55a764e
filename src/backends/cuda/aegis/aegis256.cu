// SPDX-License-Identifier: Apache-2.0
// AEGIS-256 (RFC 10032): a state of six blocks, in one lane.
#include "backends/cuda/aegis/forms.cuh"

namespace dael::cuda {

Kernel aegis256_kernel(AegisWay way, bool opening) {
    switch (way) {
        case AegisWay::lines:
            return aegis_kernel_of<AegisForm<true, 1, 1, 512, true>>(opening);
        case AegisWay::few:
            return aegis_few_of<AegisForm<true, 1, 1, 256, false, 1>>(opening);
        default:
            return aegis_kernel_of<AegisForm<true, 1, 1, 256, false, 1>>(opening);
    }
}

}  // namespace dael::cuda
