// SPDX-License-Identifier: Apache-2.0
// Recipients and identities: their texts, and what is kept of them.
#include "formats/recipients.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "core/guard.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "formats/bech32.hpp"

namespace dael::sealed {
namespace {

using formats::CurvePoint;
using formats::SecretBytes;

// A text as people have it: in UTF-8, with a byte order mark or without, or in UTF-16, as
// PowerShell writes it with `>`. Holds a copy where one is needed.
class Text {
  public:
    static Result<Text> of(HostIn bytes) {
        Text text;
        const auto begins = [&](std::initializer_list<std::uint8_t> mark) {
            return bytes.size() >= mark.size() &&
                   std::equal(mark.begin(), mark.end(), bytes.begin());
        };
        const bool little = begins({0xff, 0xfe}), big = begins({0xfe, 0xff});
        text.view_ = core::text_of(begins({0xef, 0xbb, 0xbf}) ? bytes.subspan(3) : bytes);
        if (!little && !big) return text;
        const HostIn pairs = bytes.subspan(2);
        if (pairs.size() % 2 != 0)
            return Error{Code::bad_format, "UTF-16 that ends amid a character"};
        DAEL_LET(copy, SecretBytes::create(pairs.size() / 2));
        // What is not ASCII is in none of these texts but in comments: any character will do.
        for (std::size_t i = 0; i < copy.bytes().size(); ++i) {
            const std::uint8_t low = pairs[2 * i + (little ? 0 : 1)];
            const std::uint8_t high = pairs[2 * i + (little ? 1 : 0)];
            copy.bytes()[i] = static_cast<std::uint8_t>(low | (high != 0 ? 0x80 : 0));
        }
        text.copy_ = std::move(copy);
        text.view_ = core::text_of(std::as_const(text.copy_).bytes());
        return text;
    }
    std::string_view view() const { return view_; }

  private:
    SecretBytes copy_;
    std::string_view view_;
};

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
    return {Code::limit, "more than " + std::to_string(formats::kMaxRecipients) + " " + what};
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

Error copied_wrongly(const char* what, std::string_view line, std::size_t size) {
    return {Code::bad_format,
            std::string("this ") + what + " was copied wrongly: " + slip(line, size)};
}

// What people take for a recipient.
Error no_recipient(std::string_view line) {
    const auto kind = [](std::string what) {
        return Error{Code::unsupported,
                     std::move(what) + "; daelstrom takes age's own, age1... and age1pq1..."};
    };
    if (line.starts_with("AGE-SECRET-KEY-"))
        return {Code::bad_format,
                "a secret key stands where its recipient belongs, which begins with age1"};
    if (line.starts_with("ssh-")) return kind("an SSH key");
    if (line.starts_with("age1pq1"))
        return copied_wrongly("post-quantum recipient", line, formats::kHybridRecipientText.size());
    if (line.starts_with("age1tag1") || line.starts_with("age1tagpq1"))
        return kind("a recipient of a hardware key");
    if (line.starts_with("age1") && line.find('1', 4) != std::string_view::npos)
        return kind("a recipient of one of age's plugins");
    if (line.starts_with("AGE1"))
        return {Code::bad_format, "a recipient in capitals; daelstrom takes it in small letters"};
    if (!line.starts_with("age1"))
        return {Code::bad_format, "no recipient; one is age1 and 58 letters and digits"};
    return copied_wrongly("recipient", line, kRecipientSize);
}

Error no_identity(std::string_view line) {
    if (line.starts_with("age1"))
        return {Code::bad_format,
                "a recipient stands where its secret key belongs, AGE-SECRET-KEY-1..."};
    if (line.starts_with("age-encryption.org/") || line.starts_with("-----BEGIN AGE"))
        return {Code::unsupported, "the identities are encrypted; age -d decrypts them"};
    if (line.starts_with("AGE-PLUGIN-"))
        return {Code::unsupported,
                "an identity of one of age's plugins; daelstrom takes age's own, "
                "AGE-SECRET-KEY-1... and AGE-SECRET-KEY-PQ-1..."};
    if (line.starts_with("-----BEGIN"))
        return {Code::unsupported,
                "a key of another kind; daelstrom takes age's own, AGE-SECRET-KEY-1..."};
    if (line.starts_with("age-secret-key-"))
        return {Code::bad_format, "a secret key in small letters; its letters are capitals"};
    if (line.starts_with("AGE-SECRET-KEY-PQ-1"))
        return copied_wrongly("post-quantum secret key", line, formats::kHybridIdentityText.size());
    if (!line.starts_with("AGE-SECRET-KEY-"))
        return {Code::bad_format,
                "no secret key; one is AGE-SECRET-KEY-1 and 58 letters and digits"};
    return copied_wrongly("secret key", line, kIdentitySize);
}

// Beside others, whoever breaks those has the file key too; age does not mix them either.
Result<> check_alike(std::size_t points, std::size_t hybrid) {
    if (points == 0 || hybrid == 0) return {};
    return Error{Code::invalid_argument,
                 "post-quantum recipients (age1pq1...) beside others would protect from nothing "
                 "that these do not; seal for either"};
}

Result<formats::Passphrase> passphrase_of(HostIn bytes, int work) {
    if (bytes.empty())
        return Error{Code::invalid_argument, "the passphrase is empty; give at least a character"};
    if (work < 1 || work > kMaxWork)
        return Error{Code::invalid_argument, "work of " + std::to_string(work) +
                                                 "; scrypt's is 1 to " + std::to_string(kMaxWork)};
    DAEL_LET(copy, SecretBytes::copy(bytes));
    return formats::Passphrase{std::move(copy), work};
}

}  // namespace

Recipients::Recipients(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Recipients::Recipients(Recipients&&) noexcept = default;
Recipients& Recipients::operator=(Recipients&&) noexcept = default;
Recipients::~Recipients() = default;

Result<Recipients> Recipients::parse(std::string_view given) {
    return core::guarded([&]() -> Result<Recipients> {
        auto state = std::make_unique<State>();
        CurvePoint any{}, shared{};
        any[0] = 8;
        DAEL_LET(text, Text::of(core::bytes_of(given)));
        const auto read = for_lines(text.view(), [&](std::string_view line) -> Result<> {
            if (state->count() == formats::kMaxRecipients) return too_many("recipients");
            formats::HybridPublic hybrid;
            if (formats::decode_bech32(formats::kHybridRecipientText, core::bytes_of(line),
                                       hybrid)) {
                DAEL_TRY(formats::check_hybrid_public(hybrid));
                state->hybrid.push_back(hybrid);
                return {};
            }
            CurvePoint point{};
            if (!formats::decode_bech32(formats::kRecipientText, core::bytes_of(line), point))
                return no_recipient(line);
            DAEL_TRY(formats::x25519(any, point, shared));  // that it is a point to share with
            state->points.push_back(point);
            return {};
        });
        if (!read) return read.error();
        if (state->count() == 0)
            return Error{Code::bad_format, "there is no recipient; one begins with age1"};
        DAEL_TRY(check_alike(state->points.size(), state->hybrid.size()));
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
        if (state_->count() + others.state().count() > formats::kMaxRecipients)
            return too_many("recipients");
        DAEL_TRY(check_alike(state_->points.size() + others.state().points.size(),
                             state_->hybrid.size() + others.state().hybrid.size()));
        // All of them, or none; they may be our own.
        const std::vector<CurvePoint> points = others.state().points;
        const std::vector<formats::HybridPublic> hybrid = others.state().hybrid;
        state_->points.reserve(state_->points.size() + points.size());
        state_->hybrid.reserve(state_->hybrid.size() + hybrid.size());
        state_->points.insert(state_->points.end(), points.begin(), points.end());
        state_->hybrid.insert(state_->hybrid.end(), hybrid.begin(), hybrid.end());
        return {};
    });
}

Identities::Identities(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Identities::Identities(Identities&&) noexcept = default;
Identities& Identities::operator=(Identities&&) noexcept = default;
Identities::~Identities() = default;

Result<Identities> Identities::parse(HostIn given) {
    return core::guarded([&]() -> Result<Identities> {
        auto state = std::make_unique<State>();
        std::optional<Error> passed_over;  // the first of another kind, which others make up for
        const auto pass_over = [&](Error error) -> Result<> {
            if (!passed_over) passed_over = std::move(error);
            return {};
        };
        DAEL_LET(text, Text::of(given));
        const auto read = for_lines(text.view(), [&](std::string_view line) -> Result<> {
            const HostIn bytes = core::bytes_of(line);
            if (state->count() == formats::kMaxRecipients) return too_many("identities");
            DAEL_LET(secret, SecretBytes::create(formats::kCurveSize));
            static_assert(formats::kCurveSize == formats::kHybridSeed);
            if (formats::decode_bech32(formats::kHybridIdentityText, bytes, secret.bytes())) {
                auto recipient = formats::hybrid_public(secret.bytes());
                if (!recipient && recipient.code() == Code::unsupported)
                    return pass_over(std::move(recipient).error());
                if (!recipient) return std::move(recipient).error();
                state->hybrid.push_back({std::move(secret), *recipient});
                return {};
            }
            if (!formats::decode_bech32(formats::kIdentityText, bytes, secret.bytes())) {
                if (line.starts_with("AGE-PLUGIN-")) return pass_over(no_identity(line));
                return no_identity(line);
            }
            DAEL_LET(recipient, formats::x25519_public(secret.bytes()));
            state->keys.push_back({std::move(secret), recipient});
            return {};
        });
        if (!read) return read.error();
        if (state->count() == 0 && passed_over) return *std::move(passed_over);
        if (state->count() == 0)
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
        const State& theirs = others.state();  // which may be our own
        if (state_->passphrase || theirs.passphrase) return alone("identities");
        if (state_->count() + theirs.count() > formats::kMaxRecipients)
            return too_many("identities");
        std::vector<formats::Identity> keys;  // all of them, or none
        std::vector<formats::HybridIdentity> hybrid;
        for (const formats::Identity& key : theirs.keys) {
            DAEL_LET(secret, SecretBytes::copy(key.secret.bytes()));
            keys.push_back({std::move(secret), key.recipient});
        }
        for (const formats::HybridIdentity& key : theirs.hybrid) {
            DAEL_LET(seed, SecretBytes::copy(key.seed.bytes()));
            hybrid.push_back({std::move(seed), key.recipient});
        }
        state_->keys.reserve(state_->keys.size() + keys.size());
        state_->hybrid.reserve(state_->hybrid.size() + hybrid.size());
        std::ranges::move(keys, std::back_inserter(state_->keys));
        std::ranges::move(hybrid, std::back_inserter(state_->hybrid));
        return {};
    });
}

Result<std::string> Identities::recipients() const {
    return core::guarded([&]() -> Result<std::string> {
        std::string text;
        const auto put = [&text](const formats::Bech32& kind, HostIn recipient) {
            std::vector<std::uint8_t> line(kind.size());
            formats::encode_bech32(kind, recipient, line);
            text += core::text_of(line);
            text += '\n';
        };
        for (const formats::Identity& key : state_->keys)
            put(formats::kRecipientText, key.recipient);
        for (const formats::HybridIdentity& key : state_->hybrid)
            put(formats::kHybridRecipientText, key.recipient);
        return text;
    });
}

namespace {

Result<> make(const formats::Bech32& kind, HostOut identity) {
    if (identity.size() < kind.size())
        return Error{Code::invalid_argument, "room for " + std::to_string(identity.size()) +
                                                 " characters; a secret key has " +
                                                 std::to_string(kind.size())};
    DAEL_LET(secret, SecretBytes::create(kind.bytes));
    DAEL_TRY(core::fill_random(secret.bytes()));
    formats::encode_bech32(kind, secret.bytes(), identity);
    return {};
}

}  // namespace

Result<> make_identity(HostOut identity) {
    static_assert(formats::kIdentityText.size() == kIdentitySize &&
                  formats::kRecipientText.size() == kRecipientSize);
    return core::guarded([&] { return make(formats::kIdentityText, identity); });
}

Result<> make_hybrid_identity(HostOut identity) {
    static_assert(formats::kHybridIdentityText.size() == kHybridIdentitySize &&
                  formats::kHybridRecipientText.size() == kHybridRecipientSize);
    return core::guarded([&]() -> Result<> {
        DAEL_TRY(formats::check_hybrid());
        return make(formats::kHybridIdentityText, identity);
    });
}

}  // namespace dael::sealed
