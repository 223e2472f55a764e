// SPDX-License-Identifier: Apache-2.0
// Options that the commands for sealed files share: which files, associated data, and secrets.
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

// --aad, --aad-file and --bind-names.
struct AadOptions {
    std::optional<std::string> text, file;
    bool bind_names = false;
    // `stdin_taken`: standard input is something else already. Errors: limit, io,
    // invalid_argument.
    Result<std::vector<std::uint8_t>> read(bool stdin_taken) const;
};
void add_aad(CLI::App& command, AadOptions& options);

// A key for sealed data, which has 16 or 32 bytes. `confirm` asks a terminal twice.
Result<sealed::Keys> read_stream_key(const SecretSource& source, bool confirm,
                                     std::uint32_t segment = sealed::kLargeSegment);
Result<sealed::Keys> read_stream_keyset(const std::string& path);

// --cost, for the commands that make an envelope for a passphrase, and --max-cost, for those that
// open one.
CLI::Option* add_cost(CLI::App& command, int& work);
CLI::Option* add_max_cost(CLI::App& command, int& most);

// -r and -R, for the commands that make an envelope, and -i, for those that open one.
struct RecipientOptions {
    std::vector<std::string> recipients, files;
    bool given() const { return !recipients.empty() || !files.empty(); }
    bool from_stdin() const;
};
void add_recipients(CLI::App& command, RecipientOptions& options);
struct IdentityOptions {
    std::vector<std::string> files;
    bool given() const { return !files.empty(); }
    bool from_stdin() const;
};
void add_identities(CLI::App& command, IdentityOptions& options);
// All that the options name. Errors name the option or the file.
Result<sealed::Recipients> read(const RecipientOptions& options);
Result<sealed::Identities> read(const IdentityOptions& options);

}  // namespace dael::cli
