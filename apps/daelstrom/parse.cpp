// SPDX-License-Identifier: Apache-2.0
#include "parse.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "hints.hpp"
#include "io/descriptors.hpp"
#include "io/signals.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

enum Status { kDone = 0, kFailed = 1, kUsage = 2 };

int complain(const std::string& message, Status status) {
    std::fprintf(stderr, "daelstrom: %s\n", on_one_line(message).c_str());
    return status;
}

std::string see_help(const CLI::App& app) {
    const auto commands = app.get_subcommands();
    return "see " + app.get_name() + " " +
           (commands.empty() ? "" : commands.front()->get_name() + " ") + "--help";
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

}  // namespace

int complain(const Error& error) {
    const bool usage = error.code == Code::invalid_argument || error.code == Code::iv_size ||
                       error.code == Code::unknown_backend;
    return complain(error.message, usage ? kUsage : kFailed);
}

int parse_and_run(CLI::App& app, Context& context, int argc, char** argv) {
    app.get_help_ptr()->description("Show this help and exit");
    app.allow_extras();
    app.require_subcommand(0, 1);  // what follows a command is none, whatever a file is called
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

int guarded(const std::function<int()>& run) try {
    if (const auto kept = keep_standard_descriptors(); !kept) return complain(kept.error());
    raise_descriptor_limit();
    disable_core_dumps();
    install_signal_handlers();
    return run();
} catch (const std::bad_alloc&) {
    return complain("memory ran out; close other programs", kFailed);
} catch (const std::exception& fault) {
    return complain(std::string("unexpected: ") + fault.what(), kFailed);
}

}  // namespace dael::cli
