// SPDX-License-Identifier: Apache-2.0
#include "recognise.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include <daelstrom/sealed.hpp>

#include "io/text.hpp"

namespace dael::cli {
namespace {

constexpr std::string_view kAge = "age-encryption.org/v1\n";
constexpr std::string_view kArmor = "-----BEGIN AGE ENCRYPTED FILE-----";
constexpr std::string_view kIdentity = "AGE-SECRET-KEY-";
constexpr std::string_view kIdentityComment = "# created: ";       // as age-keygen begins one,
constexpr std::string_view kPublicComment = "# public key: age1";  // and as we do
constexpr std::string_view kSalted = "Salted__";
constexpr std::size_t kMaxHead = 1 << 20;                // bytes; a recipient takes some hundred
constexpr std::size_t kNonce = 16, kTag = 16;            // of an age file's payload
constexpr std::uint64_t kAgeChunk = 64 << 10;            // plaintext of each, but for the last
constexpr std::size_t kKeyPayload = kNonce + 32 + kTag;  // one that holds a stream's key
constexpr std::uint8_t kSmallHeader = 24, kLargeHeader = 40;  // docs/format.md

std::string_view as_text(HostIn bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool begins(HostIn bytes, std::string_view with) {
    return as_text(bytes).starts_with(with);
}

// "-> TYPE ARGUMENT ...": the type, and scrypt's work factor.
void take_stanza(std::string_view line, AgeHead& head) {
    line.remove_prefix(3);
    const std::string_view type = line.substr(0, line.find(' '));
    head.stanzas.emplace_back(type);
    if (type != "scrypt") return;
    const auto last = line.rfind(' ');
    int factor = 0;
    const std::string_view text = line.substr(last == line.npos ? line.size() : last + 1);
    const auto read = std::from_chars(text.data(), text.data() + text.size(), factor);
    if (read.ec == std::errc{} && read.ptr == text.data() + text.size()) head.work_factor = factor;
}

bool is_base64(std::string_view line) {
    return line.size() <= 64 && std::ranges::all_of(line, [](char c) {
               return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                      c == '+' || c == '/';
           });
}

// Streams of this length, in the sizes of segments that bare keys have.
std::vector<Looks::Fit> fits_of(std::uint64_t size, std::uint8_t header) {
    std::vector<Looks::Fit> fits;
    for (const std::uint32_t segment : {sealed::kLargeSegment, sealed::kSmallSegment}) {
        const sealed::Layout layout{segment, header};
        if (const auto plain = layout.plain_size(size))
            fits.push_back({segment, layout.segments(*plain), *plain});
    }
    return fits;
}

Result<> look_at_stream(Input& input, Looks& looks) {
    DAEL_LET(start, input.peek(looks.stream_at + 1));
    if (start.size() <= looks.stream_at) return {};
    const std::uint8_t header = start[looks.stream_at];
    if (header != kSmallHeader && header != kLargeHeader) return {};
    if (looks.size) {
        looks.fits = fits_of(*looks.size - looks.stream_at, header);
        if (looks.fits.empty()) return {};
    }
    looks.key_bits = header == kLargeHeader ? 256 : 128;
    return {};
}

Result<> look_at_age(Input& input, Looks& looks) {
    for (std::size_t size = 1 << 12; !looks.age && size <= kMaxHead; size *= 4) {
        DAEL_LET(start, input.peek(size));
        looks.age = parse_age_head(start);
        if (start.size() < size) break;
    }
    if (!looks.age) return {};
    // What seal writes is such a file of 32 bytes, and behind it the stream.
    looks.stream_at = looks.age->size + kKeyPayload;
    DAEL_TRY(look_at_stream(input, looks));
    if (looks.key_bits == 256) {
        looks.as = Looks::As::sealed;
        return {};
    }
    looks.key_bits = 0;
    looks.fits.clear();
    const std::uint64_t front = looks.age->size + kNonce;
    if (looks.size && *looks.size >= front + kTag) {
        const std::uint64_t left = *looks.size - front;
        const std::uint64_t chunks = (left + kAgeChunk + kTag - 1) / (kAgeChunk + kTag);
        looks.plain = left - chunks * kTag;
    }
    return {};
}

// Keys must not lie in the input's memory, which is not wiped: they go straight into a secret's.
Result<> look_at_keyset(Input& input, Looks& looks) {
    DAEL_LET(text, Secret::create(kMaxKeyset));
    DAEL_LET(size, input.fill(text.fill()));
    text.truncate(size);
    auto keyset = sealed::Keyset::parse(text.bytes());
    if (keyset) {
        looks.as = Looks::As::keyset;
        looks.keyset = std::move(*keyset);
    } else if (keyset.code() == Code::unsupported) {
        looks.as = Looks::As::encrypted_keyset;
    }
    return {};
}

}  // namespace

std::optional<AgeHead> parse_age_head(HostIn start) {
    if (!begins(start, kAge)) return std::nullopt;
    AgeHead head;
    std::string_view left = as_text(start).substr(kAge.size());
    for (;;) {
        const auto end = left.find('\n');
        if (end == left.npos) return std::nullopt;
        const std::string_view line = left.substr(0, end);
        left.remove_prefix(end + 1);
        if (line.starts_with("--- ")) {
            if (head.stanzas.empty()) return std::nullopt;
            head.size = start.size() - left.size();
            return head;
        }
        if (line.starts_with("-> ") && line.size() > 3)
            take_stanza(line, head);
        else if (head.stanzas.empty() || !is_base64(line))
            return std::nullopt;
    }
}

Looks::As looks_by(HostIn start) {
    using enum Looks::As;
    if (start.empty()) return empty;
    if (begins(start, kAge)) return age;
    if (begins(start, kArmor)) return armored_age;
    if (begins(start, kIdentity) || begins(start, kIdentityComment) ||
        begins(start, kPublicComment))
        return age_identity;
    if (begins(start, kSalted)) return openssl;
    const bool header = start[0] == kSmallHeader || start[0] == kLargeHeader;
    return header && start.size() >= start[0] ? stream : nothing_known;
}

Result<Looks> recognise(Input& input) {
    Looks looks;
    looks.size = input.remaining();
    DAEL_LET(first, input.peek(1));
    if (!first.empty() && (first[0] == '{' || first[0] == ' ' || first[0] == '\n')) {
        DAEL_TRY(look_at_keyset(input, looks));
        return looks;
    }
    DAEL_LET(start, input.peek(kTelling));
    looks.as = looks_by(start);
    if (looks.as == Looks::As::empty) looks.size = 0;
    if (looks.as == Looks::As::age) DAEL_TRY(look_at_age(input, looks));
    if (looks.as == Looks::As::stream) {
        DAEL_TRY(look_at_stream(input, looks));
        if (looks.key_bits == 0) looks.as = Looks::As::nothing_known;
    }
    return looks;
}

std::string in_words(const Looks& looks) {
    switch (looks.as) {
        case Looks::As::nothing_known:
            return "";
        case Looks::As::empty:
            return "nothing: it is empty";
        case Looks::As::stream:
            return "what seal makes with a key";
        case Looks::As::sealed:
            return "what seal makes with a passphrase or for recipients";
        case Looks::As::age:
            return "a file of age's";
        case Looks::As::armored_age:
            return "a file of age's in letters (--armor)";
        case Looks::As::age_identity:
            return "an identity of age's, which is a secret key";
        case Looks::As::openssl:
            return "what openssl enc makes with a password";
        case Looks::As::keyset:
            return "a keyset of Tink's";
        case Looks::As::encrypted_keyset:
            return "a keyset of Tink's that is encrypted";
    }
    return "";
}

Error with_looks(Input& input, Error error) {
    if (error.code != Code::bad_format) return error;
    const auto looks = recognise(input);
    if (!looks) return error;
    switch (looks->as) {
        case Looks::As::openssl:
            error.message += "; it looks like " + in_words(*looks) +
                             ", which `daelstrom decrypt --openssl` takes";
            break;
        case Looks::As::armored_age:
        case Looks::As::age_identity:
        case Looks::As::keyset:
        case Looks::As::encrypted_keyset:
            error.message += "; it looks like " + in_words(*looks);
            break;
        default:  // what sealed data is told by, the error says itself
            break;
    }
    return error;
}

std::string_view word_for(Looks::As as) {
    switch (as) {
        case Looks::As::nothing_known:
            break;
        case Looks::As::empty:
            return "empty";
        case Looks::As::stream:
            return "stream";
        case Looks::As::sealed:
            return "sealed";
        case Looks::As::age:
            return "age";
        case Looks::As::armored_age:
            return "armored age";
        case Looks::As::age_identity:
            return "age identity";
        case Looks::As::openssl:
            return "openssl";
        case Looks::As::keyset:
            return "keyset";
        case Looks::As::encrypted_keyset:
            return "encrypted keyset";
    }
    return "unknown";
}

}  // namespace dael::cli
