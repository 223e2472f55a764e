// SPDX-License-Identifier: Apache-2.0
// Tink's keysets as the program shows and writes them.
#pragma once

#include <string>

#include <daelstrom/sealed_keys.hpp>

#include "commands.hpp"
#include "io/json_text.hpp"

namespace dael::cli {

// Its text, to be written to a file. Errors: limit for more than read_keyset() reads.
Result<Secret> secret_text(const sealed::Keyset& keyset);

// What may be shown of it: numbers, states, templates. A table with a line for each key, or for
// programs.
std::string table_of(const sealed::Keyset& keyset);
JsonText json_of(const sealed::Keyset& keyset);

}  // namespace dael::cli
