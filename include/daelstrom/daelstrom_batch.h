/* SPDX-License-Identifier: Apache-2.0
 *
 * Data in device memory: one message, a few, or batches that are made ready once and launched.
 * Include daelstrom.h, which says what holds for every call: errors, who owns what, threads,
 * fork().
 *
 * `stream` is a cudaStream_t, or what dael_opencl_stream() or dael_stream_create() gave; null is
 * the default stream. Every launch returns at once; errors of the device while it runs show at the
 * stream's next synchronisation, as with any kernel. In a child of fork() nothing here works
 * (DAEL_DEVICE), but handles may be freed.
 */
#ifndef DAELSTROM_DAELSTROM_BATCH_H
#define DAELSTROM_DAELSTROM_BATCH_H

#include <daelstrom/daelstrom_engine.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One message whose pointers are to device memory: launches and returns, without synchronising or
 * allocating; but the first use of an OpenCL kernel compiles it. `message` itself lies on the host
 * and may go when this returns, its data when the stream has come to its end. Any number of threads
 * at once. Pointers to multiples of 16 are fast. Errors: as dael_run; DAEL_UNSUPPORTED for gcm
 * (dael_launch_messages), and for CBC, CFB and OFB where they are sequential (prepare those), and
 * for engines without a device. */
DAEL_API dael_status dael_run_device(dael_engine* engine, const dael_cipher* cipher,
                                     const dael_key* key, const dael_message* message, void* stream,
                                     dael_ran* ran);

/* Where a list of messages lies. */
typedef enum dael_place { DAEL_PLACE_HOST = 0, DAEL_PLACE_DEVICE = 1 } dael_place;

/* Four bytes that stay and a big-endian counter of eight: nonces that never repeat, counted on a
 * device. 16 bytes of device memory at a multiple of 8, the layout of dael::DeviceNonces; only
 * launches of batches that were given it change it. A launch reserves its nonces in one step before
 * it uses any, so that launches that share it have different ones in any order; where too few are
 * left nothing is done (DAEL_LIMIT). To set it back repeats nonces. */
typedef struct dael_device_nonces {
    uint8_t fixed[4];
    uint32_t unused;
    uint64_t next; /* of the first message of the next launch */
} dael_device_nonces;

/* Zero is the default of every member but the first: a list on the host, as it stands. */
typedef struct dael_prepare_options {
    size_t struct_size; /* sizeof(dael_prepare_options) */
    int32_t place;      /* dael_place of the list; of its data always the device */
    int32_t unused;     /* 0; anything else is refused (DAEL_UNSUPPORTED) */
    /* In device memory, for lists in device memory: how many messages there are, read when the
     * batch runs. Null: `count`. A number above `count` counts as `count`. */
    const uint32_t* number;
    /* In device memory, for lists in device memory of gcm and gcm_ctr encryption: each launch
     * writes a new start into every message of the list, and advances the counter. Null: the starts
     * are as they stand in the list. */
    dael_device_nonces* nonces;
    /* For lists in device memory of gcm and gcm_ctr: bytes that no message has more of, data and
     * AAD together, so that kernels for longer ones need not be launched; up to 8 KiB saves most. A
     * message that is longer all the same is not done, and has DAEL_LIMIT. 0: any size. */
    uint64_t longest;
} dael_prepare_options;

/* One thread at a time, which the replay of a graph counts as, too. Launches and replays of one
 * batch follow each other in the order of the calls, whichever streams they are on. A launch that
 * fails may have been begun: what encrypts then counts as launched. */
typedef struct dael_batch dael_batch;

/* Makes ready `count` messages; with a `number` the most there may be. Allocates device memory;
 * synchronous, but waits for nobody else's work. A list on the host is checked and copied, and may
 * go when this returns. One in device memory, where a kernel may make it, must stay until the last
 * launch has ended: it is read and checked at each launch (gcm, gcm_ctr and cbc encryption; cuda),
 * and a message of it that makes no sense has a code that says so. That its memory is what it says
 * is for whoever makes the list. The batch keeps engine and set alive; the keys are the set's at
 * the launch. Errors: as dael_run, of the first message that is bad; DAEL_UNSUPPORTED. */
DAEL_API dael_status dael_prepare(dael_engine* engine, const dael_cipher* cipher,
                                  const dael_keyset* keys, const dael_message* messages,
                                  uint32_t count, const dael_prepare_options* options,
                                  dael_batch** batch);

/* Launches on the stream and returns, without allocation; the data may go when the launch has
 * ended. What encrypts, from a list whose starts are fixed, is launched once only (DAEL_LIMIT after
 * that); decryption, ECB and XTS as often as wanted. It can be captured into a CUDA graph if it may
 * be launched again, or has nonces that count on the device. Errors: DAEL_LIMIT, DAEL_DEVICE. */
DAEL_API dael_status dael_launch(dael_engine* engine, dael_batch* batch, void* stream,
                                 dael_ran* ran);

/* Device memory, the batch's own until it is freed: a dael_status for each message, as a 32-bit
 * number, once a launch has ended; null where every message is done (lists from the host, outside
 * gcm decryption), and for null. */
DAEL_API const uint32_t* dael_batch_codes(const dael_batch* batch);
/* Waits for the stream, and tells what became of each message: codes[i], a dael_status. `count`: of
 * codes, at least the batch's own. Errors: DAEL_DEVICE, DAEL_INVALID_ARGUMENT. */
DAEL_API dael_status dael_results(const dael_batch* batch, void* stream, int32_t* codes,
                                  size_t count);
/* When no launch of it is under way any more: its memory on the device goes at once. */
DAEL_API void dael_batch_free(dael_batch* batch);

/* Most messages of one dael_launch_messages(), and most bytes of AAD of the host's that go along.
 */
#define DAEL_MOST_LAUNCHED 32
#define DAEL_MOST_LAUNCHED_AAD 1024

/* Zero is the default of every member but the first. */
typedef struct dael_launch_options {
    size_t struct_size; /* sizeof(dael_launch_options) */
    /* A dael_status for each message, as a 32-bit number, once the launch has ended: memory of the
     * device, or page-locked (dael_device_allocate_pinned). Null where every message is done:
     * anything but gcm decryption. */
    uint32_t* codes;
    int32_t host_aad; /* other than 0: the messages' AAD lies in the host's memory, and is copied */
    int32_t unused;   /* 0; anything else is refused (DAEL_UNSUPPORTED) */
} dael_launch_options;

/* A few messages of gcm or gcm_ctr in device memory that are known only now, without a batch
 * (cuda): launches on the stream and returns, without allocation or synchronisation, but that a
 * set's first launch, and its first of long messages, makes what GHASH needs of its keys; from any
 * number of threads. List, options and the host's AAD are yours and may go at once, the data when
 * the launch has ended; the set's end waits for that. Up to 64 KiB a message it is one kernel for
 * each size of keys; longer ones take a few, and have memory that streams may share: their launches
 * on different streams may follow each other. Opening writes nothing of a message that is not
 * authentic. What encrypts cannot be captured into a CUDA graph (DAEL_LIMIT), and of the rest what
 * is one kernel. Errors: as dael_run, of the first message that is bad; DAEL_LIMIT for more
 * messages or AAD; DAEL_UNSUPPORTED for other modes (dael_run_device and dael_prepare have them)
 * and elsewhere. */
DAEL_API dael_status dael_launch_messages(dael_engine* engine, const dael_cipher* cipher,
                                          const dael_keyset* keys, const dael_message* messages,
                                          uint32_t count, void* stream,
                                          const dael_launch_options* options, dael_ran* ran);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_BATCH_H */
