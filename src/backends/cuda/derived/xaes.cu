// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM (C2SP).
#include "backends/cuda/derived/block.cuh"

namespace dael::cuda {

Kernel xaes_kernel(DerivedWay way, int tables, bool opening) {
    if (way == DerivedWay::few)
        return derived_few_of<DerivedForm<false, 14, 1, shapes::kDerivedFew>>(opening);
    return tables == 4
               ? derived_kernel_of<DerivedForm<false, 14, 4, shapes::kDerivedThreads>>(way, opening)
               : derived_kernel_of<DerivedForm<false, 14, 1, shapes::kDerivedThreads>>(way,
                                                                                       opening);
}

}  // namespace dael::cuda
