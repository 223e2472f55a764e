// SPDX-License-Identifier: Apache-2.0
// Files that appear whole, and keys in files: the library's own ways (daelstrom_sealed.h).
#include <daelstrom/daelstrom_sealed.h>
#include <fcntl.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine.hpp"

namespace daelpy {
namespace {

[[noreturn]] void raise_errno(int error, nb::handle path) {
    errno = error;
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path.ptr());
    throw nb::python_error();
}

// What went wrong with a file: Python's own exception of an errno, with the library's sentence
// where Python has none.
void check_file(dael_status status, int error, nb::handle path) {
    if (status == DAEL_OK) return;
    if (status != DAEL_IO || error == 0) check(status);
    if (error == EXDEV) value_error(dael_last_error());
    if (error == ESTALE) {
        const nb::object made =
            nb::module_::import_("builtins").attr("OSError")(error, dael_last_error(), path);
        PyErr_SetObject(PyExc_OSError, made.ptr());
        throw nb::python_error();
    }
    raise_errno(error, path);
}

std::string encoded(nb::handle path) {
    PyObject* bytes = nullptr;
    if (!PyUnicode_FSConverter(path.ptr(), &bytes)) throw nb::python_error();
    const nb::object held = nb::steal(bytes);
    return {PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes))};
}

// One thread at a time, which the writers in Python see to; what goes unfinished leaves nothing.
class PlacedFile {
  public:
    PlacedFile(nb::object path, int existing, bool secret, bool sync) : path_(std::move(path)) {
        const std::string name = encoded(path_);
        dael_file_options options{};
        options.struct_size = sizeof options;
        options.existing = existing;
        options.secret = secret;
        options.sync = sync;
        int error = 0;
        dael_status status;
        {
            const Released released;
            status = dael_file_begin(AT_FDCWD, name.c_str(), &options, &file_, &error);
        }
        check_file(status, error, path_);
    }
    ~PlacedFile() { dael_file_discard(file_); }
    PlacedFile(const PlacedFile&) = delete;
    PlacedFile& operator=(const PlacedFile&) = delete;

    int descriptor() const {
        const int fd = file_ ? dael_file_fd(file_) : -1;
        if (fd < 0) value_error("I/O operation on closed file.");
        return fd;
    }
    void write(nb::handle data) const {
        const Memory in(data, Access::read, "data");
        if (in.on_device) value_error("what is written lies on the host");
        const int fd = descriptor();
        // A signal that comes meanwhile is Python's to look at; between two parts, as it can go on.
        for (std::uint64_t done = 0; done < in.size;) {
            ssize_t took;
            int error = 0;
            {
                const Released released;
                took =
                    ::write(fd, in.data + done, std::min<std::uint64_t>(in.size - done, 1 << 30));
                if (took < 0) error = errno;
            }
            if (took >= 0) {
                done += static_cast<std::uint64_t>(took);
            } else if (error != EINTR) {
                raise_errno(error, path_);
            } else if (PyErr_CheckSignals() != 0) {
                throw nb::python_error();
            }
        }
    }
    // What could not be kept, for people.
    nb::list commit() {
        int error = 0;
        dael_status status;
        {
            const Released released;
            status = dael_file_commit(file_, &error);
        }
        check_file(status, error, path_);
        nb::list said;
        for (std::size_t i = 0; const char* text = dael_file_warning(file_, i); ++i)
            said.append(nb::str(text));
        discard();
        return said;
    }
    void discard() {
        dael_file* const file = std::exchange(file_, nullptr);
        const Released released;
        dael_file_discard(file);
    }

  private:
    nb::object path_;
    dael_file* file_ = nullptr;
};

// (the key, the permissions that others have to its file)
nb::tuple read_key_file(nb::handle path) {
    const std::string name = encoded(path);
    std::uint8_t key[32];
    std::size_t size = 0;
    std::uint32_t open_to = 0;
    int error = 0;
    dael_status status = DAEL_OK;
    {
        const Released released;  // a pipe may wait for another thread of Python
        status = dael_key_read_file(AT_FDCWD, name.c_str(), key, &size, &open_to, &error);
        if (status != DAEL_OK) dael_wipe(key, sizeof key);
    }
    check_file(status, error, path);
    nb::tuple made = nb::make_tuple(nb::bytes(key, size), open_to);
    dael_wipe(key, sizeof key);
    return made;
}

}  // namespace

void bind_place(nb::module_& m) {
    nb::class_<PlacedFile>(m, "PlacedFile")
        .def(nb::init<nb::object, int, bool, bool>(), nb::arg("path"), nb::arg("existing"),
             nb::arg("secret") = false, nb::arg("sync") = false)
        .def("fileno", &PlacedFile::descriptor)
        .def("write", &PlacedFile::write, nb::arg("data"))
        .def("commit", &PlacedFile::commit)
        .def("discard", &PlacedFile::discard);
    m.def("read_key_file", read_key_file, nb::arg("path"));
}

}  // namespace daelpy
