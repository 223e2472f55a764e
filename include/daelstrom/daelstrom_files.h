/* SPDX-License-Identifier: Apache-2.0
 *
 * For C: one way to put a file in its place, by descriptors, and keys as people keep them in files.
 * daelstrom.h says what holds for every call. A file is written without a name, or under a hidden
 * one beside its own, and gets its name when all is well: it is there whole or not at all, takes
 * the place of what was looked at when it began and of nothing newer, lets nobody in who could not
 * read what it was made of, and is on the disk before its name is where that matters.
 *
 *     dael_file* file = NULL;
 *     dael_file_options options = {.struct_size = sizeof options, .existing = DAEL_FILE_REPLACED};
 *     if (dael_file_begin(AT_FDCWD, "data.sealed", &options, &file, NULL) != DAEL_OK) ...
 *     write(dael_file_fd(file), bytes, size);
 *     if (dael_file_commit(file, NULL) != DAEL_OK) ...    what was there is there still
 *     dael_file_discard(file);
 *
 * Threads: a handle is for one thread at a time; any number of handles may be at work at once, on
 * the same names too. Nobody writes to its descriptor during dael_file_commit(), closes the
 * descriptor, or uses it after dael_file_discard(). fork(): a child can neither commit what its
 * parent began (DAEL_INVALID_ARGUMENT) nor discard it: there dael_file_discard() frees the handle
 * and closes its descriptors, and leaves the file alone, whether or not the parent has ended it.
 *
 * Every `error` (may be null) gets the errno of what went wrong, else 0: EEXIST, EISDIR, ESTALE for
 * what is another file by now, EXDEV for what is no regular file, or what the system said.
 */
#ifndef DAELSTROM_DAELSTROM_FILES_H
#define DAELSTROM_DAELSTROM_FILES_H

#include <daelstrom/daelstrom_base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What may lie there already. */
typedef enum dael_file_existing {
    DAEL_FILE_REFUSED = 0,  /* nothing, not even by the time of the commit (EEXIST) */
    DAEL_FILE_REPLACED = 1, /* what is there when it begins; not another one, nor a newer one. The
                               new one gets its owner, group, permissions and attributes */
    DAEL_FILE_WHATEVER = 2  /* anything by then, of which nothing is kept: caches, where the last
                               one is as good as any */
} dael_file_existing;

/* What a file was when its content was read: dael_file_identify(). */
typedef struct dael_file_identity {
    uint64_t device, number, size; /* st_dev, st_ino, bytes */
    int64_t modified_s, changed_s; /* seconds, and */
    int64_t modified_ns, changed_ns;
    uint64_t unused;
} dael_file_identity;
DAEL_API dael_status dael_file_identify(int fd, dael_file_identity* identity);

typedef struct dael_file_options {
    size_t struct_size;
    int32_t existing;   /* dael_file_existing */
    uint32_t permitted; /* permissions of a new file that is made of nothing, less the umask; 0:
                           0666 */
    int32_t secret;     /* 1: for its owner alone (0600), whatever it replaces; on the disk first */
    int32_t sync;       /* 1: on the disk before it has its name; what is replaced always is */
    int32_t no_follow;  /* 1: a link at the path's end is refused (ELOOP) */
    int32_t streams;    /* 1: a pipe, a device or a descriptor of this process by its name
                           (/dev/stdout) is written to as it is; else it is refused (EXDEV) */
    int32_t has_input;  /* 1: `input` is an open descriptor of what the file is made of: the file
                           must not be that one (DAEL_OVERLAP), and lets nobody in who cannot read
                           it. Used during the call alone */
    int32_t input;
    const dael_file_identity* only; /* not null: it replaces this file as it was then, or nothing
                                       (ESTALE); with DAEL_FILE_REPLACED */
} dael_file_options;

/* A file on its way. */
typedef struct dael_file dael_file;

/* `folder`: an open folder that a relative `path` begins at, or AT_FDCWD. `path` ends in a zero;
 * null options are all zero. Links at its end are followed as the kernel would, and only to what
 * was found behind them then. Nothing is under the name yet. Errors: DAEL_IO, DAEL_OVERLAP. */
DAEL_API dael_status dael_file_begin(int folder, const char* path, const dael_file_options* options,
                                     dael_file** file, int* error);
/* To be written to, from its beginning; owned by the handle. Open for reading too, but for what is
 * no file. Null, or after a commit that went well: -1. */
DAEL_API int dael_file_fd(const dael_file* file);
/* 1 if a file was there when it began; 1 if what is written goes out at once (`streams`). */
DAEL_API int dael_file_replaces(const dael_file* file);
DAEL_API int dael_file_is_stream(const dael_file* file);
/* Gives it its name, once. After a failure what was there is there still, and nothing of the new
 * file is; it remains to be discarded. Waits for the disk where that is due. Errors: DAEL_IO;
 * DAEL_INVALID_ARGUMENT the second time, and in a child of fork(). */
DAEL_API dael_status dael_file_commit(dael_file* file, int* error);
/* What could not be kept of what was replaced (owner, group, attributes), or may not be on the
 * disk: a sentence for people, the first by 0; null behind the last. Valid until the discard. */
DAEL_API const char* dael_file_warning(const dael_file* file, size_t index);
/* Frees the handle and closes its descriptor; what was not committed has never been. Takes null. */
DAEL_API void dael_file_discard(dael_file* file);

/* For what is read, changed and replaced: a descriptor, for reading, of the regular file of that
 * name, which no other process holds by this call until it is closed (flock). Waits for it; what
 * has the name once the lock is ours is what is handed out, so that two who change a file by turns
 * lose nothing. Errors: DAEL_IO. */
DAEL_API dael_status dael_file_open_locked(int folder, const char* path, int* fd, int* error);
/* A folder below an open one, by names alone: no link is followed, and no "..". For *at() calls
 * (O_PATH); to be closed by the caller. Errors: DAEL_IO (ELOOP, EXDEV, ENOTDIR for a link). */
DAEL_API dael_status dael_file_open_below(int folder, const char* path, int* fd, int* error);

/* An AES key as people keep it: 16, 24 or 32 bytes, or 32, 48 or 64 hexadecimal digits with
 * optional white space behind them, which are always taken as digits: by chance, raw keys never
 * are. `key` has 32 bytes, of which *key_size are written; wiping them is up to you. The time that
 * this takes depends on sizes alone. `name` is what the error calls it (null: "the key"). Errors:
 * DAEL_KEY_SIZE. */
DAEL_API dael_status dael_key_decode(const void* text, size_t size, const char* name, void* key,
                                     size_t* key_size);
/* The same of a file. *open_to (may be null) gets the permissions, 0 to 077, that others have to
 * it, which are worth a warning. Errors: DAEL_IO, DAEL_KEY_SIZE. */
DAEL_API dael_status dael_key_read_file(int folder, const char* path, void* key, size_t* key_size,
                                        uint32_t* open_to, int* error);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_DAELSTROM_FILES_H */
