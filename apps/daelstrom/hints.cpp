// SPDX-License-Identifier: Apache-2.0
#include "hints.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "io/text.hpp"
#include "manual.hpp"

namespace dael::cli {
namespace {

// How many letters must be put in, left out or changed to make one word of the other.
std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

// The one among `words` that `word` was meant to be, or nothing.
std::string nearest(const std::string& word, const std::vector<std::string>& words) {
    constexpr std::size_t kLongest = 40, kMax = 2;
    if (word.size() < 4 || word.size() > kLongest) return {};
    std::string best;
    std::size_t least = kMax + 1;
    for (const std::string& other : words)
        if (const std::size_t d = edits(word, other); d < least) {
            least = d;
            best = other;
        }
    return best;
}

bool has(const CLI::App& command, const std::string& option) {
    return command.get_option_no_throw(option) != nullptr;
}

std::vector<std::string> option_names(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

// The options that take a secret from where nobody sees it.
std::string secret_options(const CLI::App& command) {
    std::string all;
    for (const char* option : {"--key-file", "--keyset", "--passphrase-file"})
        if (has(command, option)) all += (all.empty() ? "" : ", ") + std::string(option);
    if (has(command, "--password-file"))
        all += std::string(all.empty() ? "" : ", or ") + "--openssl with --password-file";
    return all;
}

struct Hint {
    std::string_view option;  // unknown
    const char* instead;      // an option of the command that it is for; null: any
    std::string_view hint;
};
// The first that fits counts. Keys are bytes, a passphrase belongs to seal, a password to OpenSSL's
// format.
constexpr Hint kHints[] = {
    {"--password-file", "--passphrase-file", "a passphrase is meant: --passphrase-file"},
    {"--password-fd", "--passphrase-fd", "a passphrase is meant: --passphrase-fd"},
    {"--passphrase-file", "--password-file",
     "a password goes with OpenSSL's format, --openssl --password-file; a passphrase with "
     "`daelstrom seal`"},
    {"--passphrase-fd", "--password-fd",
     "a password goes with OpenSSL's format, --openssl --password-fd; a passphrase with "
     "`daelstrom seal`"},
    {"--keyset-file", "--keyset", "it is called --keyset"},
    {"--keyset", "--password-file", "keysets are for `daelstrom seal` and `daelstrom open`"},
    {"-r", "--password-file", "recipients are for `daelstrom seal`"},
    {"--recipient", "--password-file", "recipients are for `daelstrom seal`"},
    {"-i", "--password-file", "identities are for `daelstrom open`"},
    {"--identity", "--password-file", "identities are for `daelstrom open`"},
    {"-p", "--passphrase-file",
     "a passphrase is asked for where nothing else is named; leave it out"},
    {"-d", "--aad", "`daelstrom open` opens"},
    {"--pbkdf2", "--openssl", "--openssl does that"},
    {"--iter", "--iterations", "it is called --iterations"},
    {"--mode", "--aad", "sealing is AES-GCM always; leave it out"},
    {"--iv", "--aad", "sealing makes its own nonces; leave it out"},
    {"--bits", "--aad", "the key's size tells; leave it out"},
    {"--in", nullptr, "the input is named without an option"},
    {"--isa", "--form", "it is called --form"},
};

std::string hint_for(const CLI::App& command, const std::string& option) {
    constexpr std::string_view kSecrets[] = {"-K",         "-k",           "--key",
                                             "--password", "--passphrase", "--pass"};
    if (std::ranges::find(kSecrets, option) != std::end(kSecrets)) {
        const std::string options = secret_options(command);
        return "secrets are not for the command line" +
               (options.empty() ? "" : ", give " + options);
    }
    for (const Hint& hint : kHints)
        if (option == hint.option && (!hint.instead || has(command, hint.instead)))
            return std::string(hint.hint);
    const std::string meant = nearest(option, option_names(command));
    return meant.empty() ? "" : "is " + meant + " meant?";
}

std::string describe_option(const CLI::App& command, const std::string& extra) {
    const std::string option = extra.substr(0, extra[1] == '-' ? extra.find('=') : 2);
    const std::string hint = hint_for(command, option);
    return "unknown option " + in_quotes(option) + (hint.empty() ? "" : "; " + hint);
}

bool is_option(const std::string& word) {
    return word.size() > 1 && word[0] == '-';
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
    return names;
}

std::string joined(const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
    return all;
}

}  // namespace

std::string describe_extras(const CLI::App& command, const std::vector<std::string>& extras) {
    for (const std::string& extra : extras)
        if (is_option(extra)) return describe_option(command, extra);
    std::string takes;
    for (const CLI::Option* option : command.get_options())
        if (option->get_positional()) takes += (takes.empty() ? "" : ", ") + option->get_name(true);
    return "too many arguments; " + command.get_name() + " takes " +
           (takes.empty() ? "none" : takes + " and no more");
}

std::string describe_no_command(const CLI::App& app, const std::vector<std::string>& extras) {
    const auto names = command_names(app);
    if (extras.empty()) return "say what to do: " + joined(names);
    if (is_option(extras[0])) return describe_option(app, extras[0]);
    const std::string meant = nearest(extras[0], names);
    return "no command is called " + in_quotes(extras[0]) +
           (meant.empty() ? "; there are " + joined(names) : "; is " + meant + " meant?");
}

}  // namespace dael::cli
