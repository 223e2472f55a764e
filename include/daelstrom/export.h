/* SPDX-License-Identifier: Apache-2.0
 *
 * DAEL_API marks what a shared libdaelstrom exports; everything else in it is hidden, that of the
 * libraries linked into it too. For C and C++.
 */
#ifndef DAELSTROM_EXPORT_H
#define DAELSTROM_EXPORT_H

#define DAEL_API __attribute__((visibility("default")))

#endif /* DAELSTROM_EXPORT_H */
