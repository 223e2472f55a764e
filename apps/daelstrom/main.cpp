// SPDX-License-Identifier: Apache-2.0
// The program `daelstrom`. Exit status: 0 done, 1 it failed, 2 the command line is wrong.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "hints.hpp"
#include "io/descriptors.hpp"
#include "io/signals.hpp"
#include "io/text.hpp"
#include "manual.hpp"

namespace dael::cli {
namespace {

enum Status { kDone = 0, kFailed = 1, kUsage = 2 };

int complain(const std::string& message, Status status) {
    std::fprintf(stderr, "daelstrom: %s\n", on_one_line(message).c_str());
    return status;
}

int complain(const Error& error) {
    const bool usage = error.code == Code::invalid_argument || error.code == Code::iv_size ||
                       error.code == Code::unknown_backend;
    return complain(error.message, usage ? kUsage : kFailed);
}

std::string see_help(const CLI::App& app) {
    const auto commands = app.get_subcommands();
    return "see daelstrom " + (commands.empty() ? "" : commands.front()->get_name() + " ") +
           "--help";
}

// The words of the command line, last first, as the parser wants them. Behind "--" there are names
// only; the parser forgets that where a command takes any number of them, so those that look like
// options are given as paths.
std::vector<std::string> words_of(int argc, char** argv) {
    std::vector<std::string> words;
    bool names = false;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (!names && word == "--")
            names = true;
        else
            words.push_back(names && word.size() > 1 && word[0] == '-' ? "./" + word : word);
    }
    std::ranges::reverse(words);
    return words;
}

int flush_output() {
    return std::cout.flush() ? kDone : complain("cannot write to standard output", kFailed);
}

int run(int argc, char** argv) {
    Context context;
    auto password = take_password_argument(argc, argv);
    if (!password) return complain(password.error());
    context.argument_password = std::move(*password);

    CLI::App app("Encrypts and decrypts with AES, wherever the data is", "daelstrom");
    app.set_version_flag("-V,--version", "daelstrom " DAELSTROM_VERSION,
                         "Show the version and exit");
    app.get_help_ptr()->description("Show this help and exit");
    app.formatter(help_formatter(context));  // the commands inherit it
    app.allow_extras();
    app.require_subcommand(0, 1);  // what follows a command is none, whatever a file is called
    // In this order they are shown.
    add_seal(app, context);
    add_open(app, context);
    add_keygen(app, context);
    add_keyset(app, context);
    add_reseal(app, context);
    add_rewrap(app, context);
    add_info(app, context);
    add_encrypt(app, context);
    add_decrypt(app, context);
    add_aes(app, context);
    add_explain(app, context);
    add_devices(app, context);
    add_calibrate(app, context);
    add_bench(app, context);
    add_lab(app, context);
    add_provider(app, context);
    add_completion(app, context);
    add_manual(app, context);
    add_help(app, context);
    try {
        app.parse(words_of(argc, argv));
    } catch (const CLI::Success& request) {  // --help, --version
        app.exit(request);
        return flush_output();
    } catch (const CLI::ParseError& error) {
        return complain(std::string(error.what()) + "; " + see_help(app), kUsage);
    }
    const auto extras = app.remaining(true);
    if (!context.action)
        return complain(describe_no_command(app, extras) + "; " + see_help(app), kUsage);
    if (!extras.empty())
        return complain(
            describe_extras(*app.get_subcommands().front(), extras) + "; " + see_help(app), kUsage);

    if (const auto done = context.action(); !done) return complain(done.error());
    return flush_output();
}

}  // namespace
}  // namespace dael::cli

// What the standard library throws when memory runs out ends as a message too, after everything on
// the way here has been tidied up.
int main(int argc, char** argv) try {
    using namespace dael::cli;
    if (const auto kept = keep_standard_descriptors(); !kept) return complain(kept.error());
    raise_descriptor_limit();
    disable_core_dumps();
    install_signal_handlers();
    return run(argc, argv);
} catch (const std::bad_alloc&) {
    return dael::cli::complain("memory ran out; close other programs", dael::cli::kFailed);
} catch (const std::exception& fault) {
    return dael::cli::complain(std::string("unexpected: ") + fault.what(), dael::cli::kFailed);
}
