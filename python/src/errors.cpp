// SPDX-License-Identifier: Apache-2.0
#include "errors.hpp"

#include <unistd.h>

#include <cstring>
#include <utility>

namespace daelpy {
namespace {

const char* name_of(int status) {
    switch (status) {
        case DAEL_AUTHENTICATION:
            return "InvalidTag";
        case DAEL_UNSUPPORTED:
            return "UnsupportedAlgorithm";
        case DAEL_UNKNOWN_BACKEND:
        case DAEL_BACKEND_ABSENT:
            return "BackendError";
        case DAEL_LIMIT:
            return "LimitError";
        case DAEL_DEVICE:
            return "DeviceError";
        case DAEL_BAD_FORMAT:
            return "FormatError";
        case DAEL_INTERNAL:
            return "InternalError";
        default:
            return nullptr;
    }
}

[[noreturn]] void raise_status(int status, const char* said) {
    if (status == DAEL_OUT_OF_MEMORY) {
        PyErr_SetString(PyExc_MemoryError, said);
    } else if (status == DAEL_IO) {
        PyErr_SetString(PyExc_OSError, said);
    } else if (const char* name = name_of(status)) {
        raise(name, said);
    } else {
        PyErr_SetString(PyExc_ValueError, said);
    }
    throw nb::python_error();
}

}  // namespace

void stop_for_good() noexcept {
    for (;;) pause();
}

void raise(const char* name, const std::string& message) {
    const nb::object type = through_python(
        [&] { return nb::object(nb::module_::import_("daelstrom.exceptions").attr(name)); });
    // Made here: which class it is of, it says itself.
    const nb::object made = through_python([&] { return nb::object(type(message.c_str())); });
    PyErr_SetObject(made.type().ptr(), made.ptr());
    throw nb::python_error();
}

void value_error(const std::string& message) {
    PyErr_SetString(PyExc_ValueError, message.c_str());
    throw nb::python_error();
}

void type_error(const std::string& message) {
    PyErr_SetString(PyExc_TypeError, message.c_str());
    throw nb::python_error();
}

namespace {

// The library's messages name what C++ has; these are the same in Python.
std::string in_pythons_words(std::string said) {
    constexpr std::pair<const char*, const char*> kWords[] = {
        {"Key::import_xts()", "Key.xts()"},
        {"use keys() of this one", "make a KeySet with this one"},
    };
    for (const auto& [theirs, ours] : kWords)
        if (const auto at = said.find(theirs); at != std::string::npos)
            said.replace(at, std::strlen(theirs), ours);
    return said;
}

}  // namespace

void raise(dael_status status) {
    raise_status(status, in_pythons_words(dael_last_error()).c_str());
}

void raise_forked() {
    raise("DeviceError",
          "this was made ready before fork(); a child process cannot use its parent's devices");
}

void raise_code(std::int32_t code) {
    raise_status(code, code == DAEL_AUTHENTICATION
                           ? "the tag does not match: a wrong key, nonce or additional data, or "
                             "altered data"
                           : dael_strerror(code));
}

}  // namespace daelpy
