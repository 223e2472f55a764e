// SPDX-License-Identifier: Apache-2.0
// Files put in their places, for C.
#include <daelstrom/daelstrom_sealed.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <daelstrom/files.hpp>

#include "capi/shared.hpp"

using dael::Code;
using dael::Error;
using dael::Result;
using namespace dael::capi;

struct dael_file {
    dael::files::NewFile file;
};

namespace {

struct stat status_of(const dael_file_identity& identity) {
    struct stat status {};
    status.st_dev = identity.device;
    status.st_ino = identity.number;
    status.st_mode = S_IFREG;
    status.st_size = static_cast<off_t>(identity.size);
    status.st_mtim = {identity.modified_s, identity.modified_ns};
    status.st_ctim = {identity.changed_s, identity.changed_ns};
    return status;
}

}  // namespace

extern "C" {

dael_status dael_file_identify(int fd, dael_file_identity* identity) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{identity, "identity"}}));
        struct stat status {};
        if (::fstat(fd, &status) != 0)
            return Error{Code::io,
                         std::string("cannot look at the descriptor: ") + std::strerror(errno)};
        if (!S_ISREG(status.st_mode))
            return Error{Code::io, "the descriptor is of no regular file"};
        *identity = {status.st_dev,
                     status.st_ino,
                     static_cast<std::uint64_t>(status.st_size),
                     status.st_mtim.tv_sec,
                     status.st_ctim.tv_sec,
                     status.st_mtim.tv_nsec,
                     status.st_ctim.tv_nsec,
                     0};
        return {};
    });
}

dael_status dael_file_begin(int folder, const char* path, const dael_file_options* options,
                            dael_file** file, int* error) {
    if (error) *error = 0;
    return hand_out(file, "file", [&]() -> Result<dael_file*> {
        DAEL_TRY(given({{path, "path"}}));
        DAEL_LET(known, sized(options, "dael_file_options"));
        if (known.existing < DAEL_FILE_REFUSED || known.existing > DAEL_FILE_WHATEVER)
            return Error{Code::invalid_argument, "existing is none of dael_file_existing"};
        struct stat only {};
        if (known.only) only = status_of(*known.only);
        DAEL_LET(made, dael::files::NewFile::begin(
                           folder, path,
                           {.existing = static_cast<dael::files::Existing>(known.existing),
                            .secret = known.secret != 0,
                            .sync = known.sync != 0,
                            .follow = known.no_follow == 0,
                            .streams = known.streams != 0,
                            .input = known.has_input != 0 ? known.input : -1,
                            .only = known.only ? &only : nullptr,
                            .mode = known.permitted != 0 ? known.permitted : 0666,
                            .name = {},
                            .overwriting = {}},
                           error));
        return new dael_file{std::move(made)};
    });
}
int dael_file_fd(const dael_file* file) {
    return file ? file->file.fd() : -1;
}
int dael_file_replaces(const dael_file* file) {
    return file && file->file.replaces() ? 1 : 0;
}
int dael_file_is_stream(const dael_file* file) {
    return file && file->file.streams() ? 1 : 0;
}
dael_status dael_file_commit(dael_file* file, int* error) {
    if (error) *error = 0;
    return call([&]() -> Result<> {
        DAEL_TRY(given({{file, "file"}}));
        return file->file.commit(dael::files::Sync::alone, error);
    });
}
const char* dael_file_warning(const dael_file* file, size_t index) {
    if (!file || index >= file->file.warnings().size()) return nullptr;
    return file->file.warnings()[index].c_str();
}
void dael_file_discard(dael_file* file) {
    release(file);
}

dael_status dael_file_open_locked(int folder, const char* path, int* fd, int* error) {
    if (error) *error = 0;
    return call([&]() -> Result<> {
        DAEL_TRY(given({{path, "path"}, {fd, "fd"}}));
        *fd = -1;
        DAEL_LET(opened, dael::files::open_locked(folder, path, error));
        *fd = opened;
        return {};
    });
}
dael_status dael_file_open_below(int folder, const char* path, int* fd, int* error) {
    if (error) *error = 0;
    return call([&]() -> Result<> {
        DAEL_TRY(given({{path, "path"}, {fd, "fd"}}));
        *fd = -1;
        DAEL_LET(opened, dael::files::open_below(folder, path, error));
        *fd = opened;
        return {};
    });
}

dael_status dael_key_decode(const void* text, size_t size, const char* name, void* key,
                            size_t* key_size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{key, "key"}, {key_size, "key_size"}}));
        DAEL_TRY(readable(text, size, "text"));
        *key_size = 0;
        DAEL_LET(found, dael::files::decode_key(bytes(text, size), bytes(key, std::size_t{32}),
                                                name ? name : "the key"));
        *key_size = found;
        return {};
    });
}
dael_status dael_key_read_file(int folder, const char* path, void* key, size_t* key_size,
                               uint32_t* open_to, int* error) {
    if (error) *error = 0;
    return call([&]() -> Result<> {
        DAEL_TRY(given({{path, "path"}, {key, "key"}, {key_size, "key_size"}}));
        *key_size = 0;
        if (open_to) *open_to = 0;
        DAEL_LET(found,
                 dael::files::read_key_file(folder, path, bytes(key, std::size_t{32}), error));
        *key_size = found.size;
        if (open_to) *open_to = found.open_to;
        return {};
    });
}

}  // extern "C"
