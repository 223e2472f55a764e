// SPDX-License-Identifier: Apache-2.0
// What stands in front of sealed files (file_keys.hpp): how it is found and refused.
#include <algorithm>
#include <string_view>

#include "file_keys.hpp"
#include "sealed_file.hpp"

namespace dael::cli {
namespace {

// Of whatever version, and also if it is cut off soon after.
bool begins_as_age_file(std::span<const std::uint8_t> start) {
    constexpr std::string_view kName = "age-encryption.org/";
    const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
    return !text.empty() && (text.starts_with(kName) || kName.starts_with(text));
}

}  // namespace

Error in_file(const Input& input, Error error) {
    const bool about_data = error.code == Code::authentication || error.code == Code::bad_format ||
                            error.code == Code::limit || error.code == Code::unsupported;
    if (about_data) error.message = input.name() + ": " + error.message;
    return error;
}

Result<Envelope> take_envelope(Input& input) {
    // A slow pipe yields what there is of it; no more is asked for than an envelope may have.
    for (std::size_t wanted = 1024;; wanted *= 4) {
        wanted = std::min(wanted, sealed::kMaxEnvelope);
        DAEL_LET(start, input.peek(wanted));
        if (!begins_as_age_file(start)) return Envelope{};
        auto says = sealed::read_envelope(start);
        if (!says) return in_file(input, std::move(says).error());
        if (says->size != 0) {
            Envelope envelope{std::vector<std::uint8_t>(says->size), says->work};
            DAEL_LET(got, input.fill(envelope.bytes));
            if (got == envelope.bytes.size()) return envelope;
        }
        if (start.size() < wanted || wanted == sealed::kMaxEnvelope)
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

Result<> KeySource::ready_to_open(Engine& engine, const PlannedFiles& files) {
    DAEL_TRY(ready());
    constexpr std::size_t kLooks = 16;  // what is sealed otherwise says so when its turn comes
    for (std::size_t i = 0; i < std::min(files.size(), kLooks); ++i) {
        auto input = open_input(files[i]);
        if (!input) continue;
        const auto keys = to_open(engine, *input);
        if (keys) break;
        if (keys.code() == Code::authentication) return keys.error();
    }
    return {};
}

Error not_opened(const Input& input, const Envelope& envelope, Error error) {
    if (error.code == Code::limit && envelope.work <= sealed::kMaxWork)
        error.message += " (--max-cost " + std::to_string(std::max(envelope.work, 10)) + ")";
    return in_file(input, std::move(error));
}

}  // namespace dael::cli
