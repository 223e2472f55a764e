// SPDX-License-Identifier: Apache-2.0
// What daelstrom/_core.pyi says of the module's classes and functions, for help().
#pragma once

namespace daelpy {

struct Described {
    const char* name;       // "AESGCM", "AESGCM.encrypt", "ctr"
    const char* signature;  // as `def` has it; of classes empty
    const char* text;
};

// Throws std::logic_error for a name that is not there: the module is then not imported.
const Described& described(const char* name);

}  // namespace daelpy

// Of a function or method, among what nanobind's def() takes.
#define DAEL_DESCRIBED(name) nb::sig(described(name).signature), described(name).text
