// SPDX-License-Identifier: Apache-2.0
// What the parser knows about the commands, in a shape that --help, the manual page and the shell
// completions are all printed from.
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"

namespace dael::cli {

struct OptionHelp {
    std::vector<std::string> names;  // "-o", "--output"; for a positional, its name
    std::string argument;            // "FILE"; empty for a flag
    std::string description;
    std::vector<std::string> choices;  // the words that it takes, where those are all
    bool positional = false;
    bool required = false;
    bool several = false;  // a positional that takes any number

    bool takes_file() const { return argument == "FILE" || positional; }
};

std::vector<OptionHelp> options_of(const CLI::App& command, const Context& context);
std::vector<const CLI::App*> commands_of(const CLI::App& app);  // without the hidden ones

// "seal [OPTIONS] [INPUT...]"
std::string usage_of(const CLI::App& command, const Context& context);

// `text` in lines of at most `width` columns, all but the first begun with `indent` spaces.
std::string wrap(std::string_view text, std::size_t indent, std::size_t width);

std::shared_ptr<CLI::FormatterBase> help_formatter(const Context& context);
std::string manual_page(const CLI::App& app, const Context& context);  // roff, section 1
std::string bash_completion(const CLI::App& app, const Context& context);
std::string zsh_completion(const CLI::App& app, const Context& context);
std::string fish_completion(const CLI::App& app, const Context& context);

}  // namespace dael::cli
