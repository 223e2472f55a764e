// SPDX-License-Identifier: Apache-2.0
// Options that the commands for sealed files share: which files, and associated data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "commands.hpp"
#include "file_plan.hpp"

namespace dael::cli {

// INPUT... and --recursive.
void add_inputs(CLI::App& command, FileRequest& request, const std::string& help);
bool is_stdin(const FileRequest& request);

// --aad and --aad-file.
struct AadOptions {
    std::optional<std::string> text, file;
    // `stdin_taken`: standard input is something else already. Errors: limit, io,
    // invalid_argument.
    Result<std::vector<std::uint8_t>> read(bool stdin_taken) const;
};
void add_aad(CLI::App& command, AadOptions& options);

// A key for sealed data, which has 16 or 32 bytes. `confirm` asks a terminal twice.
Result<sealed::Keys> read_stream_key(const SecretSource& source, bool confirm,
                                     std::uint32_t segment = sealed::kLargeSegment);
Result<sealed::Keys> read_stream_keyset(const std::string& path);

// --cost, for the commands that make a lock, and --max-cost, for those that open one.
CLI::Option* add_cost(CLI::App& command, sealed::Cost& cost);
CLI::Option* add_max_cost(CLI::App& command, sealed::Cost& most);

}  // namespace dael::cli
