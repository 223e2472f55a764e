// SPDX-License-Identifier: Apache-2.0
// Completion for bash, zsh and fish: the commands, their options, and the words or files that an
// option takes.
#include <algorithm>

#include "manual.hpp"

namespace dael::cli {
namespace {

std::string join(const std::vector<std::string>& words, std::string_view between) {
    std::string out;
    for (const auto& word : words) out += (out.empty() ? "" : std::string(between)) + word;
    return out;
}

std::string without(std::string text, std::string_view unwanted) {
    std::erase_if(text, [&](char c) { return unwanted.find(c) != unwanted.npos; });
    return text;
}

// The patterns of bash's case: "encrypt:-m|encrypt:--mode".
std::string bash_patterns(const std::string& command, const OptionHelp& option) {
    std::vector<std::string> patterns;
    for (const auto& name : option.names) patterns.push_back(command + ":" + name);
    return join(patterns, "|");
}

std::string option_words(const CLI::App& command, const Context& context) {
    std::vector<std::string> words;
    for (const OptionHelp& option : options_of(command, context))
        if (!option.positional) words.insert(words.end(), option.names.begin(), option.names.end());
    return join(words, " ");
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
    std::vector<std::string> names;
    for (const auto* command : commands) names.push_back(command->get_name());
    return names;
}

// What follows an option, as each shell says it.
std::string zsh_argument(const OptionHelp& option) {
    if (option.argument.empty() && !option.positional) return "";
    const std::string label =
        ":" + without(option.positional ? option.names[0] : option.argument, ":");
    if (!option.choices.empty()) return label + ":(" + join(option.choices, " ") + ")";
    return label + (option.takes_file() ? ":_files" : ": ");
}

std::string fish_argument(const OptionHelp& option) {
    if (option.argument.empty()) return "";
    if (!option.choices.empty()) return " -x -a '" + join(option.choices, " ") + "'";
    return option.takes_file() ? " -r -F" : " -x";
}

}  // namespace

std::string bash_completion(const CLI::App& app, const Context& context) {
    const auto commands = commands_of(app);
    std::string values, words = "        '') words='" + join(names_of(commands), " ") + " " +
                                option_words(app, context) + "' ;;\n";
    for (const CLI::App* command : commands) {
        const std::string name = command->get_name();
        std::string own_words = option_words(*command, context);
        for (const OptionHelp& option : options_of(*command, context)) {
            if (option.positional) {
                if (!option.choices.empty())
                    own_words = join(option.choices, " ") + " " + own_words;
            } else if (!option.argument.empty()) {
                const std::string what = !option.choices.empty()
                                             ? "-W '" + join(option.choices, " ") + "'"
                                         : option.takes_file() ? "-f"
                                                               : "-W ''";
                values += "        " + bash_patterns(name, option) +
                          ")\n            mapfile -t COMPREPLY < <(compgen -P \"$front\" " + what +
                          " -- \"$cur\")\n            return ;;\n";
            }
        }
        words += "        " + name + ") words='" + own_words + "' ;;\n";
    }
    return "# bash completion for daelstrom; made by `daelstrom completion bash`\n"
           "_daelstrom() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' "
           "word words=''\n"
           "    # --mode=c: three words for bash, unless COMP_WORDBREAKS has no =, and then one.\n"
           "    local front=''\n"
           "    if [[ $cur == = ]]; then\n"
           "        cur=''\n"
           "    elif [[ $prev == = ]]; then\n"
           "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    elif [[ $cur == --*=* ]]; then\n"
           "        prev=${cur%%=*} cur=${cur#*=}\n"
           "        front=$prev=\n"
           "    fi\n"
           "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
           "        case $word in\n            " +
           join(names_of(commands), "|") +
           ") command=$word; break ;;\n        esac\n    done\n"
           "    case $command:$prev in\n" +
           values + "    esac\n    case $command in\n" + words +
           "    esac\n"
           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
           "    if [[ -n $command && $cur != -* ]]; then\n"
           "        local files\n"
           "        mapfile -t files < <(compgen -f -- \"$cur\")\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -X '-*' -- \"$cur\")\n"
           "        COMPREPLY+=(\"${files[@]}\")\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _daelstrom daelstrom\n";
}

std::string zsh_completion(const CLI::App& app, const Context& context) {
    std::string list, cases;
    for (const CLI::App* command : commands_of(app)) {
        list += "        '" + command->get_name() + ":" +
                without(command->get_description(), "':") + "'\n";
        cases += "        " + command->get_name() + ")\n            _arguments";
        for (const OptionHelp& option : options_of(*command, context)) {
            const std::string about = "[" + without(option.description, "'[]:`\\") + "]";
            if (option.positional) {
                cases += " \\\n                '" + std::string(option.required ? ":" : "::") +
                         zsh_argument(option).substr(1) + "'";
                continue;
            }
            const std::string others = "(" + join(option.names, " ") + ")";
            for (const auto& name : option.names) {
                const bool may_have_equals = name.starts_with("--") && !option.argument.empty();
                cases += " \\\n                '" + others + name + (may_have_equals ? "=" : "") +
                         about + zsh_argument(option) + "'";
            }
        }
        cases += "\n            ;;\n";
    }
    return "#compdef daelstrom\n"
           "# zsh completion for daelstrom; made by `daelstrom completion zsh`\n"
           "_daelstrom() {\n"
           "    local -a commands=(\n" +
           list +
           "    )\n"
           "    if (( CURRENT == 2 )); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $command in\n" +
           cases +
           "    esac\n"
           "}\n"
           "_daelstrom \"$@\"\n";
}

std::string fish_completion(const CLI::App& app, const Context& context) {
    std::string out =
        "# fish completion for daelstrom; made by `daelstrom completion fish`\n"
        "complete -c daelstrom -n __fish_use_subcommand -f\n";
    for (const CLI::App* command : commands_of(app)) {
        out += "complete -c daelstrom -n __fish_use_subcommand -a " + command->get_name() +
               " -d '" + without(command->get_description(), "'\\") + "'\n";
        const std::string when =
            "complete -c daelstrom -n '__fish_seen_subcommand_from " + command->get_name() + "'";
        for (const OptionHelp& option : options_of(*command, context)) {
            if (option.positional) {
                if (!option.choices.empty())
                    out += when + " -f -a '" + join(option.choices, " ") + "'\n";
                continue;
            }
            out += when;
            for (const auto& name : option.names)
                out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            out += fish_argument(option) + " -d '" + without(option.description, "'\\") + "'\n";
        }
    }
    return out;
}

}  // namespace dael::cli
