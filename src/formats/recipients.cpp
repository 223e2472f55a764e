// SPDX-License-Identifier: Apache-2.0
// Recipients and identities: their texts, and what is kept of them.
#include "formats/recipients.hpp"

#include <algorithm>

#include "core/guard.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "formats/bech32.hpp"

namespace dael::sealed {
namespace {

using formats::CurvePoint;
using formats::SecretBytes;

// Calls `take` with each line that is neither empty nor a comment, without white space at its ends,
// and puts the line's number into its error. Lines hold secrets: nothing here copies one.
template <class Take>
Result<> for_lines(std::string_view text, Take&& take) {
    constexpr std::string_view kSpace = " \t\r\f\v";
    for (std::size_t number = 1; !text.empty(); ++number) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        line.remove_prefix(std::min(line.size(), line.find_first_not_of(kSpace)));
        line = line.substr(0, line.find_last_not_of(kSpace) + 1);
        if (line.empty() || line.front() == '#') continue;
        if (auto taken = take(line); !taken)
            return Error{taken.code(),
                         "line " + std::to_string(number) + ": " + taken.error().message};
    }
    return {};
}

Error too_many(const char* what) {
    return {Code::limit, "more than " + std::to_string(formats::kMostRecipients) + " " + what};
}
Error alone(const char* what) {
    return {Code::invalid_argument,
            std::string("a passphrase is always alone; it goes neither with ") + what +
                " nor with another passphrase"};
}

std::string slip(std::string_view line, std::size_t size) {
    if (line.size() == size) return "its checksum does not match";
    return "it has " + std::to_string(line.size()) + " characters, not " + std::to_string(size);
}

// What people take for a recipient.
Error no_recipient(std::string_view line) {
    if (line.starts_with("AGE-SECRET-KEY-"))
        return {Code::bad_format,
                "a secret key stands where its recipient belongs, which begins with age1"};
    if (line.starts_with("ssh-"))
        return {Code::unsupported, "an SSH key; daelstrom takes age's own keys, age1..."};
    if (line.starts_with("age1") && line.find('1', 4) != std::string_view::npos)
        return {Code::unsupported, "a recipient of one of age's plugins; daelstrom takes age1..."};
    if (!line.starts_with("age1"))
        return {Code::bad_format, "no recipient; one is age1 and 58 letters and digits"};
    return {Code::bad_format, "this recipient was copied wrongly: " + slip(line, kRecipientSize)};
}

Error no_identity(std::string_view line) {
    if (line.starts_with("age1"))
        return {Code::bad_format,
                "a recipient stands where its secret key belongs, AGE-SECRET-KEY-1..."};
    if (line.starts_with("age-encryption.org/") || line.starts_with("-----BEGIN AGE"))
        return {Code::unsupported, "the identities are encrypted; age -d decrypts them"};
    if (line.starts_with("AGE-PLUGIN-") || line.starts_with("-----BEGIN"))
        return {Code::unsupported,
                "a key of another kind; daelstrom takes age's own, AGE-SECRET-KEY-1..."};
    if (!line.starts_with("AGE-SECRET-KEY-"))
        return {Code::bad_format,
                "no secret key; one is AGE-SECRET-KEY-1 and 58 letters and digits"};
    return {Code::bad_format, "this secret key was copied wrongly: " + slip(line, kIdentitySize)};
}

Result<formats::Passphrase> passphrase_of(HostIn bytes, int work) {
    if (bytes.empty())
        return Error{Code::invalid_argument, "the passphrase is empty; give at least a character"};
    if (work < 1 || work > kMostWork)
        return Error{Code::invalid_argument, "work of " + std::to_string(work) +
                                                 "; scrypt's is 1 to " + std::to_string(kMostWork)};
    DAEL_LET(copy, SecretBytes::copy(bytes));
    return formats::Passphrase{std::move(copy), work};
}

}  // namespace

Recipients::Recipients(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Recipients::Recipients(Recipients&&) noexcept = default;
Recipients& Recipients::operator=(Recipients&&) noexcept = default;
Recipients::~Recipients() = default;

Result<Recipients> Recipients::parse(std::string_view text) {
    return core::guarded([&]() -> Result<Recipients> {
        auto state = std::make_unique<State>();
        CurvePoint any{}, shared{};
        any[0] = 8;
        const auto read = for_lines(text, [&](std::string_view line) -> Result<> {
            CurvePoint point{};
            if (!formats::decode_bech32(formats::kRecipientText, core::bytes_of(line), point))
                return no_recipient(line);
            if (state->points.size() == formats::kMostRecipients) return too_many("recipients");
            DAEL_TRY(formats::x25519(any, point, shared));  // that it is a point to share with
            state->points.push_back(point);
            return {};
        });
        if (!read) return read.error();
        if (state->points.empty())
            return Error{Code::bad_format, "there is no recipient; one begins with age1"};
        return Recipients(std::move(state));
    });
}

Result<Recipients> Recipients::of_passphrase(HostIn passphrase, int work) {
    return core::guarded([&]() -> Result<Recipients> {
        auto state = std::make_unique<State>();
        DAEL_LET(kept, passphrase_of(passphrase, work));
        state->passphrase = std::move(kept);
        return Recipients(std::move(state));
    });
}

Result<> Recipients::add(const Recipients& others) {
    return core::guarded([&]() -> Result<> {
        if (state_->passphrase || others.state().passphrase) return alone("recipients");
        const std::vector<CurvePoint> more = others.state().points;  // which may be our own
        if (state_->points.size() + more.size() > formats::kMostRecipients)
            return too_many("recipients");
        state_->points.insert(state_->points.end(), more.begin(), more.end());
        return {};
    });
}

Identities::Identities(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Identities::Identities(Identities&&) noexcept = default;
Identities& Identities::operator=(Identities&&) noexcept = default;
Identities::~Identities() = default;

Result<Identities> Identities::parse(HostIn text) {
    return core::guarded([&]() -> Result<Identities> {
        auto state = std::make_unique<State>();
        const auto read = for_lines(core::text_of(text), [&](std::string_view line) -> Result<> {
            DAEL_LET(secret, SecretBytes::create(formats::kCurveSize));
            if (!formats::decode_bech32(formats::kIdentityText, core::bytes_of(line),
                                        secret.bytes().first<formats::kCurveSize>()))
                return no_identity(line);
            if (state->keys.size() == formats::kMostRecipients) return too_many("identities");
            DAEL_LET(recipient, formats::x25519_public(secret.bytes()));
            state->keys.push_back({std::move(secret), recipient});
            return {};
        });
        if (!read) return read.error();
        if (state->keys.empty())
            return Error{Code::bad_format,
                         "there is no secret key; one begins with AGE-SECRET-KEY-1"};
        return Identities(std::move(state));
    });
}

Result<Identities> Identities::of_passphrase(HostIn passphrase, int most) {
    return core::guarded([&]() -> Result<Identities> {
        auto state = std::make_unique<State>();
        DAEL_LET(kept, passphrase_of(passphrase, most));
        state->passphrase = std::move(kept);
        return Identities(std::move(state));
    });
}

Result<> Identities::add(const Identities& others) {
    return core::guarded([&]() -> Result<> {
        if (state_->passphrase || others.state().passphrase) return alone("identities");
        const std::size_t count = others.state().keys.size();  // which may be our own
        if (state_->keys.size() + count > formats::kMostRecipients) return too_many("identities");
        state_->keys.reserve(state_->keys.size() + count);
        for (std::size_t i = 0; i < count; ++i) {
            const formats::Identity& key = others.state().keys[i];
            DAEL_LET(secret, SecretBytes::copy(key.secret.bytes()));
            state_->keys.push_back({std::move(secret), key.recipient});
        }
        return {};
    });
}

Result<std::string> Identities::recipients() const {
    return core::guarded([&]() -> Result<std::string> {
        std::string text;
        for (const formats::Identity& key : state_->keys) {
            std::array<std::uint8_t, kRecipientSize> line{};
            formats::encode_bech32(formats::kRecipientText, key.recipient, line);
            text += core::text_of(line);
            text += '\n';
        }
        return text;
    });
}

Result<> make_identity(HostOut identity) {
    static_assert(formats::kIdentityText.size() == kIdentitySize &&
                  formats::kRecipientText.size() == kRecipientSize);
    return core::guarded([&]() -> Result<> {
        if (identity.size() < kIdentitySize)
            return Error{Code::invalid_argument, "room for " + std::to_string(identity.size()) +
                                                     " characters; a secret key has " +
                                                     std::to_string(kIdentitySize)};
        DAEL_LET(secret, SecretBytes::create(formats::kCurveSize));
        DAEL_TRY(core::fill_random(secret.bytes()));
        formats::encode_bech32(formats::kIdentityText, secret.bytes().first<formats::kCurveSize>(),
                               identity);
        return {};
    });
}

}  // namespace dael::sealed
