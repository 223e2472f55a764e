// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/modes/blocks.cuh"

namespace dael::cuda {

Kernel ecb_kernel(bool decrypt, int rounds, int tables) {
    return decrypt ? find_blocks_kernel<EcbDecrypt>(rounds, tables)
                   : find_blocks_kernel<EcbEncrypt>(rounds, tables);
}

}  // namespace dael::cuda
