// SPDX-License-Identifier: Apache-2.0
// The commands of the program. Each registers itself with the parser and leaves what it would do in
// Context::action, which main() runs once the whole command line has been understood.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>

#include "io/secrets.hpp"

namespace dael::cli {

using namespace app;  // what any program needs of files, secrets and terminals (apps/io)

struct Context {
    std::function<Result<>()> action;
    // The words that an option takes, for completion and the manual.
    std::map<const CLI::Option*, std::vector<std::string>> choices;
    // The words about commands that have none in texts.cpp.
    std::map<const CLI::App*, const struct CommandText*> texts;
};

inline Error usage(std::string message) {
    return {Code::invalid_argument, std::move(message)};
}

// The words about a command, in one place for --help, the manual and the tests (texts.cpp).
struct Example {
    std::string_view purpose;
    std::string_view command;
};
struct CommandText {
    std::string_view name;
    std::string_view summary;  // one line
    std::string_view details;  // paragraphs, separated by empty lines
    std::span<const Example> examples;
};
std::span<const CommandText> command_texts();
const CommandText& text_of(std::string_view command);
std::string_view program_details();

// Adds a subcommand with its summary, details and examples, from texts.cpp or of its own.
CLI::App* add_command(CLI::App& app, std::string_view name);
CLI::App* add_command(CLI::App& app, Context& context, const CommandText& text);

void add_seal(CLI::App& app, Context& context);
void add_open(CLI::App& app, Context& context);
void add_rewrap(CLI::App& app, Context& context);
void add_reseal(CLI::App& app, Context& context);
void add_keygen(CLI::App& app, Context& context);
void add_keyset(CLI::App& app, Context& context);
void add_info(CLI::App& app, Context& context);
void add_encrypt(CLI::App& app, Context& context);
void add_decrypt(CLI::App& app, Context& context);
void add_explain(CLI::App& app, Context& context);
void add_devices(CLI::App& app, Context& context);
void add_calibrate(CLI::App& app, Context& context);
void add_flexa(CLI::App& app, Context& context);
void add_vpn(CLI::App& app, Context& context);
void add_provider(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_lab(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_manual(CLI::App& app, Context& context);
void add_help(CLI::App& app, Context& context);

// Whether these are words for the lab's program as they are: its exhibits, which take options that
// this program has not, and secrets that are its own to wipe.
bool are_the_labs(int argc, char** argv);
// Whether one of them is called so.
bool is_exhibit(std::string_view word);
// Starts it with them; comes back only where it cannot be started.
Error start_lab(int argc, char** argv);

// Whether these are words for the Python package's FlexA, which takes them as they are.
bool are_flexas(int argc, char** argv);
// Starts it with them; comes back only where it cannot be started.
Error start_flexa(int argc, char** argv);

}  // namespace dael::cli
