// SPDX-License-Identifier: Apache-2.0
// The options that say whom a file is sealed for, and who opens it.
#include <algorithm>
#include <optional>
#include <string_view>

#include "io/input.hpp"
#include "io/text.hpp"
#include "sealed_options.hpp"

namespace dael::cli {
namespace {

// An error about a text, with where the text is.
Error in_text(const std::string& where, Error error, bool one_line) {
    constexpr std::string_view kFirst = "line 1: ";  // an option's value has one
    if (one_line && error.message.starts_with(kFirst)) error.message.erase(0, kFirst.size());
    error.message = where + ": " + error.message;
    return error;
}

Result<sealed::Recipients> recipients_in(const std::string& path) {
    constexpr std::size_t kMax = 1 << 20;
    DAEL_LET(input, Input::open(path));
    DAEL_LET(bytes, input.peek(kMax + 1));
    if (bytes.size() > kMax)
        return Error{Code::limit, input.name() + " is more than 1 MiB of recipients"};
    auto parsed =
        sealed::Recipients::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!parsed) return in_text(input.name(), std::move(parsed).error(), false);
    return parsed;
}

// Those of all texts.
template <class Some>
Result<> add_to(std::optional<Some>& all, Result<Some> more) {
    if (!more) return std::move(more).error();
    if (all) return all->add(*more);
    all = std::move(*more);
    return {};
}

}  // namespace

bool RecipientOptions::from_stdin() const {
    return std::ranges::count(files, "-") > 0;
}

void add_recipients(CLI::App& command, RecipientOptions& options) {
    command
        .add_option("-r,--recipient", options.recipients,
                    "Whoever has the identity of this recipient can open the file: age1..., as "
                    "age-keygen tells it; may be repeated")
        ->type_name("RECIPIENT")
        ->allow_extra_args(false);  // one each time
    command
        .add_option("-R,--recipients-file", options.files,
                    "File with recipients, one a line (- is standard input); may be repeated")
        ->type_name("FILE")
        ->allow_extra_args(false);  // one each time
}

bool IdentityOptions::from_stdin() const {
    return std::ranges::count(files, "-") > 0;
}

void add_identities(CLI::App& command, IdentityOptions& options) {
    command
        .add_option("-i,--identity", options.files,
                    "File with identities, AGE-SECRET-KEY-1..., as age-keygen writes it (- is "
                    "standard input); may be repeated")
        ->type_name("FILE")
        ->allow_extra_args(false);  // one each time
}

Result<sealed::Recipients> read(const RecipientOptions& options) {
    std::optional<sealed::Recipients> all;
    for (const std::string& text : options.recipients) {
        auto parsed = sealed::Recipients::parse(text);
        if (!parsed) return in_text("--recipient", std::move(parsed).error(), true);
        DAEL_TRY(add_to(all, std::move(parsed)));
    }
    for (const std::string& path : options.files) DAEL_TRY(add_to(all, recipients_in(path)));
    if (!all) return usage("no recipient is named; give -r or -R");
    return std::move(*all);
}

Result<sealed::Identities> read(const IdentityOptions& options) {
    std::optional<sealed::Identities> all;
    for (const std::string& path : options.files) {
        DAEL_LET(text, read_identity_file(path));
        auto parsed = sealed::Identities::parse(text.bytes());
        if (!parsed)
            return in_text("identity file " + in_quotes(path), std::move(parsed).error(), false);
        DAEL_TRY(add_to(all, std::move(parsed)));
    }
    if (!all) return usage("no identity is named; give -i FILE");
    return std::move(*all);
}

}  // namespace dael::cli
