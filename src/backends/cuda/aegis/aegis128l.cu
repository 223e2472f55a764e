// SPDX-License-Identifier: Apache-2.0
// AEGIS-128L (RFC 10032): the kernels for every number of messages.
#include "backends/cuda/aegis/forms.cuh"

namespace dael::cuda {

Kernel aegis128l_kernel(AegisWay way, bool opening) {
    switch (way) {
        case AegisWay::lines:
            return aegis_kernel_of<AegisForm<false, 1, 1, 512, true>>(opening);
        case AegisWay::lines2:
            return aegis_kernel_of<AegisForm<false, 2, 1, 512, true>>(opening);
        case AegisWay::blocks4:
            return aegis_kernel_of<AegisForm<false, 4, 1, 512>>(opening);
        case AegisWay::blocks8:
            return aegis_kernel_of<AegisForm<false, 8, 1, 1024>>(opening);
        case AegisWay::few:
            return aegis_few_of<AegisForm<false, 8, 1, 256, false, 1>>(opening);
        default:
            return aegis_kernel_of<AegisForm<false, 1, 1, 256, false, 1>>(opening);
    }
}

}  // namespace dael::cuda
