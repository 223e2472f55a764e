// SPDX-License-Identifier: Apache-2.0
// CBC and CFB decryption, which need the ciphertext block before each of their own.
#include "backends/cuda/modes/blocks.cuh"

namespace dael::cuda {

Kernel cbc_decrypt_kernel(int rounds, int tables) {
    return find_blocks_kernel<CbcDecrypt>(rounds, tables);
}
Kernel cfb_decrypt_kernel(int rounds, int tables) {
    return find_blocks_kernel<CfbDecrypt>(rounds, tables);
}

}  // namespace dael::cuda
