// SPDX-License-Identifier: Apache-2.0
// --help: what a command does, how it is called, its options, its examples.
#include "manual.hpp"

namespace dael::cli {
namespace {

constexpr std::size_t kWidth = 100, kColumn = 32;

std::string wrapped_paragraphs(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find("\n\n"), text.size());
        out += "\n" + wrap(text.substr(0, end), 0, kWidth) + "\n";
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return out;
}

std::string row(const std::string& left, const std::string& right) {
    std::string out = "  " + left;
    out += out.size() + 2 > kColumn ? "\n" + std::string(kColumn, ' ')
                                    : std::string(kColumn - out.size(), ' ');
    return out + wrap(right, kColumn, kWidth) + "\n";
}

std::string option_row(const OptionHelp& option) {
    std::string left = option.names[0].starts_with("--") ? "    " : "";
    for (const auto& name : option.names) left += (&name == &option.names[0] ? "" : ", ") + name;
    if (!option.argument.empty()) left += " " + option.argument;
    return row(left, option.description + (option.required ? " (required)" : ""));
}

class Help final : public CLI::Formatter {
  public:
    explicit Help(const Context& context) : context_(context) {}

    std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
        const CLI::App* parent = app->get_parent();
        std::string out = "Usage: " + (parent ? parent->get_name() + " " : std::string()) +
                          usage_of(*app, context_) + "\n\n" + app->get_description() + "\n";
        if (!parent) out += wrapped_paragraphs(program_details());
        if (const auto commands = commands_of(*app); !commands.empty()) {
            out += "\nCommands:\n";
            for (const auto* command : commands)
                out += row(command->get_name(), command->get_description());
        }
        out += "\nOptions:\n";
        for (const OptionHelp& option : options_of(*app, context_)) out += option_row(option);
        if (!parent) return out;
        const auto own = context_.texts.find(app);
        const CommandText& text =
            own == context_.texts.end() ? text_of(app->get_name()) : *own->second;
        out += wrapped_paragraphs(text.details);
        if (!text.examples.empty()) out += "\nExamples:\n";
        for (const Example& example : text.examples)
            out += "  # " + std::string(example.purpose) + "\n  $ " + std::string(example.command) +
                   "\n";
        return out;
    }

  private:
    const Context& context_;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter(const Context& context) {
    return std::make_shared<Help>(context);
}

}  // namespace dael::cli
