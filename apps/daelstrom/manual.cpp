// SPDX-License-Identifier: Apache-2.0
#include "manual.hpp"

#include <algorithm>

namespace dael::cli {

std::vector<OptionHelp> options_of(const CLI::App& command, const Context& context) {
    std::vector<OptionHelp> options;
    for (const CLI::Option* option : command.get_options()) {
        if (option->get_group().empty()) continue;  // hidden
        OptionHelp help;
        for (const auto& name : option->get_snames()) help.names.push_back("-" + name);
        for (const auto& name : option->get_lnames()) help.names.push_back("--" + name);
        help.positional = option->get_positional();
        if (help.positional) help.names = {option->get_name(true)};
        const std::string type = option->get_type_name();
        const bool is_flag = option->get_expected_max() == 0;
        if (!is_flag) help.argument = type.substr(0, type.find(':'));  // a validator's name follows
        help.description = option->get_description();
        if (const auto found = context.choices.find(option); found != context.choices.end())
            help.choices = found->second;
        help.required = option->get_required();
        help.several = help.positional && option->get_items_expected_max() > 1;
        options.push_back(std::move(help));
    }
    // Not std::ranges': clang 14 cannot read what libstdc++ 12 makes of it.
    std::stable_partition(options.begin(), options.end(),
                          [](const OptionHelp& help) { return help.positional; });
    return options;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands(
        [](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string usage_of(const CLI::App& command, const Context& context) {
    std::string usage = command.get_name() + " [OPTIONS]";
    for (const OptionHelp& option : options_of(command, context)) {
        if (!option.positional) continue;
        const std::string name = option.names[0] + (option.several ? "..." : "");
        usage += option.required ? " " + name : " [" + name + "]";
    }
    if (!commands_of(command).empty()) usage += " COMMAND";
    return usage;
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
    std::string out;
    std::size_t column = indent;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        if (column > indent && column + 1 + word.size() > width) {
            out += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

}  // namespace dael::cli
