// SPDX-License-Identifier: Apache-2.0
// The options that choose where the cipher runs, shared by the commands that run one.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <daelstrom/engine.hpp>

#include "commands.hpp"

namespace dael::cli {

struct EngineChoice {
    std::string backend;
    std::optional<std::string> device;  // "0", "cuda:0,cpu", "all"
    std::string form;
    int threads = 0;
    int cpu_share = 100;                   // per cent
    std::string device_memory, copy_rate;  // sizes as people write them; empty: no bound

    // Errors: as Engine::open, and invalid_argument for options that do not go together.
    Result<Engine> open() const;
    unsigned most_threads() const;  // that it may take
};

void add_engine_options(CLI::App& command, Context& context, EngineChoice& choice);

// "ecb|cbc|cfb": what stands behind an option in its help.
std::string alternatives(const std::vector<std::string>& words);

// An option that takes one of `words`; which one is checked where it is used, with a better
// message.
CLI::Option* add_choice(CLI::App& command, Context& context, const std::string& names,
                        std::string& value, std::vector<std::string> words,
                        const std::string& description);

// The names of `modes`, and one of them by its name. Errors: invalid_argument, with those that
// there are.
std::vector<std::string> mode_names(std::span<const Mode> modes = kModes38a);
Result<Mode> parse_mode(const std::string& text, std::span<const Mode> modes = kModes38a);

}  // namespace dael::cli
