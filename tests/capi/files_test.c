/* SPDX-License-Identifier: Apache-2.0 */
/* Files put in their places through the C interface. */
#define _GNU_SOURCE
#include <daelstrom/daelstrom_sealed.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capi.h"

static char folder_name[] = "/tmp/daelstrom-files-XXXXXX";
static int folder;

static void put(const char* name, const char* text, const dael_file_options* options) {
    dael_file* file = NULL;
    int error = -1;
    EXPECT(dael_file_begin(folder, name, options, &file, &error) == DAEL_OK && error == 0);
    EXPECT(write(dael_file_fd(file), text, strlen(text)) == (ssize_t)strlen(text));
    EXPECT(dael_file_commit(file, &error) == DAEL_OK && error == 0);
    EXPECT(dael_file_fd(file) == -1 && dael_file_warning(file, 0) == NULL);
    EXPECT(dael_file_commit(file, &error) == DAEL_INVALID_ARGUMENT && error == EINVAL);
    dael_file_discard(file);
}

static void check_content(const char* name, const char* text) {
    char got[100] = {0};
    const int fd = openat(folder, name, O_RDONLY);
    EXPECT(fd >= 0 && read(fd, got, sizeof got - 1) == (ssize_t)strlen(text));
    EXPECT(strcmp(got, text) == 0);
    close(fd);
}

static void test_files(void) {
    dael_file_options options = {.struct_size = sizeof options};
    dael_file* file = NULL;
    int error = 0;
    put("file", "old", NULL);
    EXPECT(dael_file_begin(folder, "file", NULL, &file, &error) == DAEL_IO && error == EEXIST);
    EXPECT(file == NULL && dael_last_error()[0] != '\0');
    options.existing = DAEL_FILE_REPLACED;
    put("file", "new", &options);
    check_content("file", "new");

    int fd = -1;
    EXPECT(dael_file_open_locked(folder, "file", &fd, &error) == DAEL_OK && fd >= 0);
    dael_file_identity identity;
    EXPECT(dael_file_identify(fd, &identity) == DAEL_OK && identity.size == 3);
    options.only = &identity;
    options.has_input = 1;
    options.input = fd;
    EXPECT(dael_file_begin(folder, "file", &options, &file, &error) == DAEL_OK);
    EXPECT(dael_file_replaces(file) == 1 && dael_file_is_stream(file) == 0);
    close(fd);
    EXPECT(linkat(folder, "file", folder, "other", 0) == 0); /* its time of change is another one */
    EXPECT(dael_file_commit(file, &error) == DAEL_IO && error == ESTALE);
    dael_file_discard(file);
    check_content("file", "new");

    options.existing = 3;
    EXPECT(dael_file_begin(folder, "file", &options, &file, &error) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_file_begin(folder, NULL, NULL, &file, &error) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_file_commit(NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_file_fd(NULL) == -1 && dael_file_warning(NULL, 0) == NULL);
    dael_file_discard(NULL);
    EXPECT(dael_file_open_below(folder, "..", &fd, &error) == DAEL_IO && fd == -1);
    EXPECT(dael_file_open_below(folder, "", &fd, NULL) == DAEL_OK);
    close(fd);
}

static void test_keys(void) {
    unsigned char key[32];
    size_t size = 0;
    uint32_t open_to = 0;
    int error = 0;
    EXPECT(dael_key_decode("000102030405060708090a0b0c0d0e0f\n", 33, NULL, key, &size) == DAEL_OK);
    EXPECT(size == 16 && key[15] == 15);
    EXPECT(dael_key_decode("short", 5, "this", key, &size) == DAEL_KEY_SIZE && size == 0);
    EXPECT(strstr(dael_last_error(), "this is 5 bytes") != NULL);
    put("key", "0123456789abcdef", NULL);
    EXPECT(fchmodat(folder, "key", 0640, 0) == 0);
    EXPECT(dael_key_read_file(folder, "key", key, &size, &open_to, &error) == DAEL_OK);
    EXPECT(size == 16 && open_to == 040 && memcmp(key, "0123456789abcdef", 16) == 0);
    EXPECT(dael_key_read_file(folder, "none", key, &size, NULL, &error) == DAEL_IO &&
           error == ENOENT);
}

int main(void) {
    EXPECT(mkdtemp(folder_name) != NULL);
    folder = open(folder_name, O_RDONLY | O_DIRECTORY);
    test_files();
    test_keys();
    for (size_t i = 0; i < 3; ++i) {
        static const char* const names[] = {"file", "other", "key"};
        EXPECT(unlinkat(folder, names[i], 0) == 0);
    }
    EXPECT(rmdir(folder_name) == 0);
    return failures != 0;
}
