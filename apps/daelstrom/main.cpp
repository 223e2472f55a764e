// SPDX-License-Identifier: Apache-2.0
// The program `daelstrom`. Exit status: 0 done, 1 it failed, 2 the command line is wrong.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

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

// What the parser did not know. Option names are repeated, other words are not: they may be
// secrets.
std::string describe_extras(const std::vector<std::string>& extras) {
    for (const std::string& extra : extras)
        if (extra.size() > 1 && extra[0] == '-') {
            const std::string option = extra.substr(0, extra[1] == '-' ? extra.find('=') : 2);
            const bool secret = option == "-K" || option == "-k" || option == "--key" ||
                                option == "--pass" || option == "--password" ||
                                option == "--passphrase";
            return "unknown option " + in_quotes(option) +
                   (secret
                        ? "; secrets are not for the command line, give --key-file, or --openssl "
                          "with --password-file"
                        : "");
        }
    return "too many arguments; this takes one input file";
}

std::string describe_no_command(const CLI::App& app, const std::vector<std::string>& extras) {
    std::string names;
    for (const CLI::App* command : commands_of(app))
        names += (names.empty() ? "" : ", ") + command->get_name();
    if (extras.empty()) return "say what to do: " + names;
    if (extras[0].starts_with('-')) return describe_extras(extras);
    return "no command is called " + in_quotes(extras[0]) + "; there are " + names;
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
    app.set_version_flag("--version", "daelstrom " DAELSTROM_VERSION, "Show the version and exit");
    app.get_help_ptr()->description("Show this help and exit");
    app.formatter(help_formatter(context));  // the commands inherit it
    app.allow_extras();
    app.require_subcommand(0, 1);  // a second one is a file of that name
    add_encrypt(app, context);
    add_decrypt(app, context);
    add_seal(app, context);
    add_open(app, context);
    add_rewrap(app, context);
    add_reseal(app, context);
    add_aes(app, context);
    add_devices(app, context);
    add_calibrate(app, context);
    add_explain(app, context);
    add_completion(app, context);
    add_manual(app, context);
    add_bench(app, context);
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
    if (!extras.empty()) return complain(describe_extras(extras) + "; " + see_help(app), kUsage);

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
    disable_core_dumps();
    install_signal_handlers();
    return run(argc, argv);
} catch (const std::bad_alloc&) {
    return dael::cli::complain("memory ran out; close other programs", dael::cli::kFailed);
} catch (const std::exception& fault) {
    return dael::cli::complain(std::string("unexpected: ") + fault.what(), dael::cli::kFailed);
}
