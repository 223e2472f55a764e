// SPDX-License-Identifier: Apache-2.0
// The program `daelstrom`. Exit status: 0 done, 1 it failed, 2 the command line is wrong.
#include <cstdio>
#include <iostream>

#include "commands.hpp"
#include "io/signals.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

enum Status { kDone = 0, kFailed = 1, kUsage = 2 };

int complain(const std::string& message, Status status) {
    std::fprintf(stderr, "daelstrom: %s\n", message.c_str());
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
                                option == "--pass" || option == "--password";
            return "unknown option " + in_quotes(option) +
                   (secret
                        ? "; secrets are not for the command line, give --key-file, or --openssl "
                          "with --password-file"
                        : "");
        }
    return "too many arguments; this takes one input file";
}

int run(int argc, char** argv) {
    Context context;
    auto password = take_password_argument(argc, argv);
    if (!password) return complain(password.error());
    context.argument_password = std::move(*password);

    CLI::App app(std::string(program_details()), "daelstrom");
    app.set_version_flag("--version", "daelstrom " DAELSTROM_VERSION, "Show the version and exit");
    app.require_subcommand(1);
    app.get_formatter()->column_width(34);
    add_encrypt(app, context);
    add_decrypt(app, context);
    add_aes(app, context);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {  // --help, --version
        return app.exit(request) == 0 && std::cout.flush() ? kDone : kFailed;
    } catch (const CLI::ParseError& error) {
        return complain(std::string(error.what()) + "; " + see_help(app), kUsage);
    }
    if (const auto extras = app.remaining(true); !extras.empty())
        return complain(describe_extras(extras) + "; " + see_help(app), kUsage);

    if (const auto done = context.action(); !done) return complain(done.error());
    if (!std::cout.flush()) return complain("cannot write to standard output", kFailed);
    return kDone;
}

}  // namespace
}  // namespace dael::cli

int main(int argc, char** argv) {
    dael::cli::disable_core_dumps();
    dael::cli::install_signal_handlers();
    return dael::cli::run(argc, argv);
}
