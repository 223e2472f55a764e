// SPDX-License-Identifier: Apache-2.0
// `completion SHELL`, and the hidden `man`, which the build and the packages make the page from.
#include <iostream>
#include <memory>

#include "io/text.hpp"
#include "manual.hpp"

namespace dael::cli {

void add_completion(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "completion");
    const auto shell = std::make_shared<std::string>();
    auto* option = command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
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
    CLI::App* command = app.add_subcommand("man", "The manual page, in roff")->group("");
    command->callback([&app, &context] {
        context.action = [&app, &context]() -> Result<> {
            std::cout << manual_page(app, context);
            return {};
        };
    });
}

}  // namespace dael::cli
