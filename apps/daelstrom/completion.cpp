// SPDX-License-Identifier: Apache-2.0
// `completion SHELL`, `help`, and the hidden `man`, which the build and the packages make the page
// from.
#include <iostream>
#include <memory>

#include "hints.hpp"
#include "io/text.hpp"
#include "manual.hpp"

namespace dael::cli {

void add_completion(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "completion");
    const auto shell = std::make_shared<std::string>();
    auto* option =
        command->add_option("SHELL", *shell, "bash, zsh or fish")->type_name("")->required();
    context.choices[option] = {"bash", "zsh", "fish"};
    command->callback([&app, &context, shell] {
        context.action = [&app, &context, shell]() -> Result<> {
            if (*shell == "bash")
                std::cout << bash_completion(app, context);
            else if (*shell == "zsh")
                std::cout << zsh_completion(app, context);
            else if (*shell == "fish")
                std::cout << fish_completion(app, context);
            else
                return Error{Code::invalid_argument, "no completion for " + in_quotes(*shell) +
                                                         "; there are bash, zsh and fish"};
            return {};
        };
    });
}

void add_manual(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "man")->group("");
    command->callback([&app, &context] {
        context.action = [&app, &context]() -> Result<> {
            std::cout << manual_page(app, context);
            return {};
        };
    });
}

void add_help(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "help");
    const auto about = std::make_shared<std::string>();
    auto* option =
        command->add_option("COMMAND", *about, "The command (default: all of them)")->type_name("");
    for (const CLI::App* other : commands_of(app))
        context.choices[option].push_back(other->get_name());
    command->callback([&app, &context, about] {
        context.action = [&app, about]() -> Result<> {
            const auto named = app.get_subcommands(
                [&](const CLI::App* other) { return other->get_name() == *about; });
            if (named.empty() && !about->empty()) return usage(describe_no_command(app, {*about}));
            std::cout << app.get_formatter()->make_help(named.empty() ? &app : named.front(), "",
                                                        CLI::AppFormatMode::Normal);
            return {};
        };
    });
}

}  // namespace dael::cli
