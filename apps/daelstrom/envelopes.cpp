// SPDX-License-Identifier: Apache-2.0
// What stands in front of sealed files (file_keys.hpp): how it is found and refused, and the
// options that name recipients and identities.
#include <algorithm>
#include <optional>
#include <string_view>

#include "file_keys.hpp"
#include "io/text.hpp"

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
    constexpr std::size_t kMost = 1 << 20;
    DAEL_LET(input, Input::open(path));
    DAEL_LET(bytes, input.peek(kMost + 1));
    if (bytes.size() > kMost)
        return Error{Code::limit, input.name() + " is more than 1 MiB of recipients"};
    auto parsed =
        sealed::Recipients::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!parsed) return in_text(input.name(), std::move(parsed).error(), false);
    return parsed;
}

// Of whatever version, and also if it is cut off soon after.
bool begins_as_age_file(std::span<const std::uint8_t> start) {
    constexpr std::string_view kName = "age-encryption.org/";
    const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
    return !text.empty() && (text.starts_with(kName) || kName.starts_with(text));
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

Error in_file(const Input& input, Error error) {
    const bool about_data = error.code == Code::authentication || error.code == Code::bad_format ||
                            error.code == Code::limit || error.code == Code::unsupported;
    if (about_data) error.message = input.name() + ": " + error.message;
    return error;
}

Result<sealed::Recipients> read_recipients(const std::vector<std::string>& recipients,
                                           const std::vector<std::string>& files) {
    std::optional<sealed::Recipients> all;
    for (const std::string& text : recipients) {
        auto parsed = sealed::Recipients::parse(text);
        if (!parsed) return in_text("--recipient", std::move(parsed).error(), true);
        DAEL_TRY(add_to(all, std::move(parsed)));
    }
    for (const std::string& path : files) DAEL_TRY(add_to(all, recipients_in(path)));
    if (!all) return usage("no recipient is named; give -r or -R");
    return std::move(*all);
}

Result<sealed::Identities> read_identities(const std::vector<std::string>& files) {
    std::optional<sealed::Identities> all;
    for (const std::string& path : files) {
        DAEL_LET(text, read_identity_file(path));
        auto parsed = sealed::Identities::parse(text.bytes());
        if (!parsed)
            return in_text("identity file " + in_quotes(path), std::move(parsed).error(), false);
        DAEL_TRY(add_to(all, std::move(parsed)));
    }
    if (!all) return usage("no identity is named; give -i FILE");
    return std::move(*all);
}

Result<Envelope> take_envelope(Input& input) {
    // A slow pipe yields what there is of it; no more is asked for than an envelope may have.
    for (std::size_t wanted = 1024;; wanted *= 4) {
        wanted = std::min(wanted, sealed::kMostEnvelope);
        DAEL_LET(start, input.peek(wanted));
        if (!begins_as_age_file(start)) return Envelope{};
        auto says = sealed::read_envelope(start);
        if (!says) return in_file(input, std::move(says).error());
        if (says->size != 0) {
            Envelope envelope{std::vector<std::uint8_t>(says->size), says->work};
            DAEL_LET(got, input.fill(envelope.bytes));
            if (got == envelope.bytes.size()) return envelope;
        }
        if (start.size() < wanted || wanted == sealed::kMostEnvelope)
            return Error{Code::bad_format,
                         input.name() +
                             " ends within the envelope in front of sealed data: it is cut off, or "
                             "an age file of something else, which age -d opens"};
    }
}

Result<> check_kind(const Input& input, const Envelope& envelope, Kind given) {
    const Kind found = envelope.bytes.empty() ? Kind::key
                       : envelope.work != 0   ? Kind::passphrase
                                              : Kind::recipients;
    if (found == given) return {};
    const auto wrong = [&](const char* message) {
        return Error{Code::bad_format, input.name() + message};
    };
    if (found == Kind::recipients)
        return given == Kind::key
                   ? wrong(
                         " was sealed for recipients, not with a key; give -i IDENTITY in its "
                         "place")
                   : wrong(" was sealed for recipients, not with a passphrase; give -i IDENTITY");
    if (found == Kind::passphrase)
        return given == Kind::key
                   ? wrong(" was sealed with a passphrase, not with a key; leave the key out")
                   : wrong(" was sealed with a passphrase, not for recipients; leave -i out");
    return given == Kind::passphrase
               ? wrong(
                     " was not sealed with a passphrase; was it sealed with a key? Give "
                     "--key-file or --keyset")
               : wrong(
                     " was not sealed for recipients; was it sealed with a key? Give --key-file "
                     "or --keyset in the place of -i");
}

Error not_opened(const Input& input, const Envelope& envelope, Error error) {
    if (error.code == Code::limit && envelope.work <= sealed::kMostWork)
        error.message += " (--max-cost " + std::to_string(std::max(envelope.work, 10)) + ")";
    return in_file(input, std::move(error));
}

}  // namespace dael::cli
