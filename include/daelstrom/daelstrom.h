/* SPDX-License-Identifier: Apache-2.0
 *
 * daelstrom for C, and for whatever can call C: all that the C++ interface has. This header
 * includes the others, but for daelstrom_sealed.h (sealed data), daelstrom_esp.h (IPsec packets),
 * daelstrom_files.h (files in their places) and daelstrom_opencl.h (buffers of your own), which are
 * for those who want them. The smallest whole program is examples/sealed_message.c.
 *
 * Safety: gcm authenticates, every other mode keeps secrets only. A start (nonce, counter block,
 * IV) must never repeat under one key; a CBC or CFB IV must be unpredictable; ECB shows equal
 * blocks.
 *
 * What holds for every call, where it does not say otherwise:
 *
 * Errors. What can fail returns a dael_status; dael_last_error() then says, for the calling thread,
 * what exactly went wrong. No exception leaves the library, nothing is printed, nothing exits. A
 * null pointer is refused (DAEL_INVALID_ARGUMENT) where nothing else is said, but data of size 0
 * may be null, and so may every `ran` and every `options`. Modes, directions and the like are
 * numbers here: one out of range is refused and never undefined.
 *
 * Handles. What a call hands out through a pointer to a pointer (null where it failed) is yours, to
 * be freed once by its own close or free, which takes null too. Any order is fine: a handle keeps
 * alive what it needs of the engine, the keys and the sets that it was made with.
 *
 * Memory. Data, keys, options and strings that you pass stay yours and are not kept: they may go
 * when the call returns. Two things last longer: what is launched on a stream uses its data until
 * the stream has come to its end, and a batch uses its messages' data in each launch, until the
 * last has ended. Keys are copied to locked memory and wiped there. Sizes are in bytes.
 *
 * Threads. Any number may use one handle at once, unless it says "one thread at a time"; none may
 * while it is freed. dael_last_error() is each thread's own. A thread may be cancelled in the midst
 * of a call, or leave one by pthread_exit() in a callback: what the call held is released, and its
 * outputs are unspecified. An exception of C++ that a callback throws becomes DAEL_INTERNAL.
 *
 * fork(). A child may go on with engines, keys and sets that work in host memory. Device backends
 * answer DAEL_DEVICE there; handles of theirs may be freed, and nothing else. Another thread of the
 * parent may be in the midst of a call when it forks.
 *
 * Versions. Structures that will grow begin with their own size: set struct_size to sizeof the
 * structure, and what you don't want to zero. A caller that was built with an older header leaves
 * the defaults to what it does not know; one that was built with a newer one is refused
 * (DAEL_UNSUPPORTED) only if it asks for something that this library does not know. In structures
 * that the library hands out, nothing beyond struct_size is there. dael_cipher, dael_message,
 * dael_device_nonces and dael_ran never change.
 */
#ifndef DAELSTROM_DAELSTROM_H
#define DAELSTROM_DAELSTROM_H

#include <daelstrom/daelstrom_base.h>   /* versions, errors, ciphers, messages */
#include <daelstrom/daelstrom_batch.h>  /* device memory: one message, or prepared batches */
#include <daelstrom/daelstrom_device.h> /* a device's memory, streams and events */
#include <daelstrom/daelstrom_engine.h> /* engines, keys, key sets, host memory */
#include <daelstrom/daelstrom_modes.h>  /* starts and nonces; gcm and ctr in one call */
#include <daelstrom/daelstrom_pieces.h> /* a message in pieces */
#include <daelstrom/daelstrom_plan.h>   /* what there is, what would be chosen and why */

#endif /* DAELSTROM_DAELSTROM_H */
