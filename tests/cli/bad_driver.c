/* SPDX-License-Identifier: Apache-2.0
   A driver that takes its process down as soon as it is loaded. */
#include <stdlib.h>

__attribute__((constructor)) static void loaded(void) {
    abort();
}
