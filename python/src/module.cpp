// SPDX-License-Identifier: Apache-2.0
// daelstrom._core: what the Python package is made of. Its types stand in daelstrom/_core.pyi.
#include <atomic>

#include "engine.hpp"

// nanobind's entry, below another name and not seen from outside: the module's own comes before it.
#pragma push_macro("NB_EXPORT")
#undef NB_EXPORT
#define NB_EXPORT
#define PyInit__core init_by_nanobind

NB_MODULE(_core, m) {
    nanobind::set_leak_warnings(false);  // of objects that live as long as the process
    daelpy::bind_engine(m);
    daelpy::bind_gcm(m);
    daelpy::bind_aead(m);
    daelpy::bind_modes(m);
    daelpy::bind_pieces(m);
    daelpy::bind_batch(m);
    daelpy::bind_sealed(m);
    daelpy::bind_weights(m);
}

#undef PyInit__core
#pragma pop_macro("NB_EXPORT")

// Types, exceptions and engines are the process's, and of the interpreter that came first: another
// one would take them away from it.
extern "C" NB_EXPORT PyObject* PyInit__core(void) {
    static std::atomic<std::int64_t> first{-1};
    const std::int64_t mine = PyInterpreterState_GetID(PyInterpreterState_Get());
    std::int64_t nobody = -1;
    if (!first.compare_exchange_strong(nobody, mine) && nobody != mine) {
        PyErr_SetString(
            PyExc_ImportError,
            "daelstrom can be imported in one interpreter of a process, and another one "
            "has it already; give programs with several (mod_wsgi: WSGIApplicationGroup "
            "%{GLOBAL}) one interpreter, or processes of their own");
        return nullptr;
    }
    return init_by_nanobind();
}
