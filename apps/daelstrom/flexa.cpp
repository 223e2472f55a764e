// SPDX-License-Identifier: Apache-2.0
// `daelstrom flexa`: starts the Python package's FlexA with the same words (docs/flexa.md). What
// stands here is for --help, the manual and completion; python/daelstrom/flexa/__main__.py does it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "commands.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

// Nothing is imported from the folder that somebody stands in.
constexpr const char* kBegin =
    "import sys\n"
    "if sys.path[:1] == ['']:\n"
    "    del sys.path[0]\n"
    "try:\n"
    "    from daelstrom.flexa.__main__ import main\n"
    "except ImportError as missing:\n"
    "    print(f\"daelstrom: FlexA is part of the Python package, and {sys.executable} lacks \"\n"
    "          f\"{missing.name}; pip install 'daelstrom[flexa]' brings it, or name another "
    "Python \"\n"
    "          \"in DAELSTROM_PYTHON\", file=sys.stderr)\n"
    "    sys.exit(1)\n"
    "sys.exit(main())\n";

struct FlexaOptions {
    std::string keyring, passphrase, identity, share, cache, action;
    double deadline = 10;
    std::uint64_t cache_size = 0;
    std::vector<std::string> words;
    bool no_progress = false;
};

}  // namespace

bool are_flexas(int argc, char** argv) {
    using namespace std::string_view_literals;
    return argc > 2 && argv[1] == "flexa"sv && argv[2] != "--help"sv && argv[2] != "-h"sv;
}

Error start_flexa(int argc, char** argv) {
    const char* named = std::getenv("DAELSTROM_PYTHON");
    std::string python = named && *named ? named : "python3", option = "-c", begin = kBegin;
    std::vector<char*> words{python.data(), option.data(), begin.data()};
    words.insert(words.end(), argv + 2, argv + argc);
    words.push_back(nullptr);
    execvp(python.c_str(), words.data());
    return {Code::unsupported, "FlexA is part of the Python package, and " + in_quotes(python) +
                                   " cannot be started (" + std::strerror(errno) +
                                   "): install Python 3.10 or later, then pip install "
                                   "'daelstrom[flexa]'"};
}

void add_flexa(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "flexa");
    const auto options = std::make_shared<FlexaOptions>();
    std::vector<std::string> actions{"init",  "put",    "get",     "cat",    "ls",
                                     "mkdir", "rm",     "mv",      "verify", "repair",
                                     "share", "status", "replace", "mount"};
    auto* action = command->add_option("ACTION", options->action,
                                       "init, put, get, cat, ls, mkdir, rm, mv, verify, repair, "
                                       "share, status, replace or mount; each has a --help");
    action->type_name("")->required();
    context.choices[action] = std::move(actions);
    command->add_option("WORDS", options->words, "What the action takes")->type_name("");
    command
        ->add_option(
            "-k,--keyring", options->keyring,
            "The keyring (default: $DAELSTROM_FLEXA, or ~/.config/daelstrom/flexa.keyring)")
        ->type_name("FILE");
    command
        ->add_option("--passphrase-file", options->passphrase,
                     "A file whose first line is the keyring's passphrase")
        ->type_name("FILE");
    command
        ->add_option("-i,--identity", options->identity,
                     "A file with the age identity that opens the keyring")
        ->type_name("FILE");
    command->add_option("--share", options->share, "Use what somebody shared instead of a keyring")
        ->type_name("FILE");
    command
        ->add_option("--deadline", options->deadline,
                     "Seconds that a store has to answer (default: 10)")
        ->type_name("SECONDS");
    command->add_option("--cache", options->cache, "Keep ciphertext that was read in this folder")
        ->type_name("DIR");
    command
        ->add_option("--cache-size", options->cache_size,
                     "Bytes of the cache at most (default: 1 GiB)")
        ->type_name("BYTES");
    command->add_flag("--no-progress", options->no_progress, "No progress on a terminal");
}

}  // namespace dael::cli
