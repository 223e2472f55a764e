// SPDX-License-Identifier: Apache-2.0
// What the parser did not know, in words that say what was probably meant. Option names are
// repeated, other words are not: they may be secrets.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace dael::cli {

// Words that are left over behind a command.
std::string describe_extras(const CLI::App& command, const std::vector<std::string>& extras);
// Words before any command, or in its place.
std::string describe_no_command(const CLI::App& app, const std::vector<std::string>& extras);

}  // namespace dael::cli
