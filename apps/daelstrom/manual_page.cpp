// SPDX-License-Identifier: Apache-2.0
// The manual page, in the macros of man(7).
#include "manual.hpp"

namespace dael::cli {
namespace {

// Text as roff takes it: a backslash begins an escape, a hyphen would be typeset, and a line must
// not begin with a request.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
    return out;
}

std::string roff_paragraphs(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find("\n\n"), text.size());
        out += ".PP\n" + roff(text.substr(0, end)) + "\n";
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return out;
}

std::string option_entry(const OptionHelp& option) {
    std::string out = ".TP\n";
    for (const auto& name : option.names)
        out += (&name == &option.names[0] ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
    if (!option.argument.empty()) out += " \\fI" + roff(option.argument) + "\\fR";
    return out + "\n" + roff(option.description) + (option.required ? " (required)" : "") + "\n";
}

std::string command_section(const CLI::App& command, const Context& context) {
    const CommandText& text = text_of(command.get_name());
    std::string out = ".SS daelstrom " + roff(usage_of(command, context)) + "\n" +
                      roff(text.summary) + ".\n" + roff_paragraphs(text.details);
    for (const OptionHelp& option : options_of(command, context)) out += option_entry(option);
    for (const Example& example : text.examples)
        out += ".PP\n" + roff(example.purpose) + ":\n.PP\n.RS 4\n.EX\n" + roff(example.command) +
               "\n.EE\n.RE\n";
    return out;
}

constexpr std::string_view kStatus =
    ".SH EXIT STATUS\n"
    ".TP\n0\nDone.\n"
    ".TP\n1\nIt failed; nothing was written to the output file.\n"
    ".TP\n2\nThe command line is wrong.\n"
    ".PP\nA signal (Ctrl\\-C, a broken pipe) ends the program as that signal does, after tidying "
    "up.\n";

constexpr std::string_view kEnvironment =
    ".SH ENVIRONMENT\n"
    ".TP\nDAELSTROM_BACKEND\nWhat \\fB\\-\\-backend\\fR is where it is not given.\n"
    ".TP\nXDG_CACHE_HOME\nWhere the calibration is stored, in daelstrom/ (default: ~/.cache).\n"
    ".PP\nNo key, password or passphrase is ever read from the environment.\n";

constexpr std::string_view kSecurity =
    ".SH SECURITY\n"
    "ECB, CBC, CFB, OFB and CTR hide what is written, ECB not even that well; none of them tells "
    "whether "
    "the ciphertext was changed: seal and open do. Never use one key and IV twice in CTR or "
    "OFB.\n"
    ".PP\nKeys, passwords and passphrases are read from files, descriptors or the terminal, kept "
    "in "
    "locked memory, and wiped; the program leaves no core dumps.\n";

}  // namespace

std::string manual_page(const CLI::App& app, const Context& context) {
    std::string out = ".TH DAELSTROM 1 \"\" \"daelstrom " DAELSTROM_VERSION
                      "\" \"User Commands\"\n"
                      ".SH NAME\ndaelstrom \\- " +
                      roff(app.get_description()) +
                      "\n.SH SYNOPSIS\n\\fBdaelstrom\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
                      ".SH DESCRIPTION\n" +
                      roff_paragraphs(program_details());
    for (const OptionHelp& option : options_of(app, context)) out += option_entry(option);
    out += ".SH COMMANDS\n";
    for (const CLI::App* command : commands_of(app)) out += command_section(*command, context);
    return out + std::string(kStatus) + std::string(kEnvironment) + std::string(kSecurity) +
           ".SH SEE ALSO\n.BR age (1),\n.BR openssl\\-enc (1)\n";
}

}  // namespace dael::cli
