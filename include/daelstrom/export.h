/* SPDX-License-Identifier: Apache-2.0
 *
 * DAEL_API marks what a shared libdaelstrom exports; everything else in it is hidden, that of the
 * libraries linked into it too. DAEL_HIDDEN is for what stands within a class that is exported and
 * is none of the interface. For C and C++.
 */
#ifndef DAELSTROM_EXPORT_H
#define DAELSTROM_EXPORT_H

#define DAEL_API __attribute__((visibility("default")))
#define DAEL_HIDDEN __attribute__((visibility("hidden")))

#endif /* DAELSTROM_EXPORT_H */
