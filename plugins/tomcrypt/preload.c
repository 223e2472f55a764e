/* SPDX-License-Identifier: Apache-2.0
 *
 * For programs that cannot be changed: LD_PRELOAD this, and what they have of LibTomCrypt's AES is
 * daelstrom's before their main() begins.
 */
#include "daelstrom_tomcrypt.h"

__attribute__((constructor)) static void put_in_place(void) {
    (void)daelstrom_tomcrypt_register();
}
