// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV (RFC 8452).
#include "backends/cuda/derived/block.cuh"

namespace dael::cuda {
namespace {

template <int kRounds>
Kernel kernel_of(DerivedWay way, int tables, bool opening) {
    if (way == DerivedWay::few)
        return derived_few_of<DerivedForm<true, kRounds, 1, shapes::kDerivedFew>>(opening);
    if (tables == 4)
        return derived_kernel_of<DerivedForm<true, kRounds, 4, shapes::kDerivedThreads>>(way,
                                                                                         opening);
    return derived_kernel_of<DerivedForm<true, kRounds, 1, shapes::kDerivedThreads>>(way, opening);
}

}  // namespace

Kernel siv_kernel(int rounds, DerivedWay way, int tables, bool opening) {
    return rounds == 10 ? kernel_of<10>(way, tables, opening) : kernel_of<14>(way, tables, opening);
}

}  // namespace dael::cuda
