// SPDX-License-Identifier: Apache-2.0
#include "formats/age_header.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "core/text.hpp"

namespace dael::formats {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kLine = 64;  // columns of a body's lines, but for the last one

void append_base64(std::string& text, HostIn bytes) {
    unsigned bits = 0;
    std::size_t have = 0;
    for (const std::uint8_t byte : bytes) {
        bits = bits << 8 | byte;
        for (have += 8; have >= 6; have -= 6) text += kBase64[bits >> (have - 6) & 63];
    }
    if (have != 0) text += kBase64[bits << (6 - have) & 63];
}

// RFC 4648 4, without padding, in the one way that there is to write it: bits to spare are zeros.
bool decode_base64_strictly(std::string_view text, std::vector<std::uint8_t>& out) {
    unsigned bits = 0;
    std::size_t have = 0;
    for (const char c : text) {
        const std::size_t digit = kBase64.find(c);
        if (digit == std::string_view::npos) return false;
        bits = bits << 6 | static_cast<unsigned>(digit);
        have += 6;
        if (have < 8) continue;
        have -= 8;
        out.push_back(static_cast<std::uint8_t>(bits >> have));
    }
    return have < 6 && (bits & ((1u << have) - 1)) == 0;
}
bool decode_all(std::string_view text, std::span<std::uint8_t> out) {
    std::vector<std::uint8_t> bytes;
    if (!decode_base64_strictly(text, bytes) || bytes.size() != out.size()) return false;
    std::ranges::copy(bytes, out.begin());
    return true;
}

// The parser's place in the text.
class Lines {
  public:
    explicit Lines(std::string_view text) : text_(text) {}

    // The next line without its end; nothing where the text ends before the line does.
    std::optional<std::string_view> next() {
        const std::size_t end = text_.find('\n', at_);
        if (end == std::string_view::npos) return std::nullopt;
        const std::string_view line = text_.substr(at_, end - at_);
        at_ = end + 1;
        ++number_;
        return line;
    }
    std::size_t at() const { return at_; }

    Error wrong(const std::string& what) const {
        return {Code::bad_format,
                "line " + std::to_string(number_) + " of the age header: " + what};
    }

  private:
    std::string_view text_;
    std::size_t at_ = 0, number_ = 0;
};

// What stands in an argument line behind its "->".
Result<std::vector<std::string_view>> arguments(std::string_view line, const Lines& lines) {
    std::vector<std::string_view> parts;
    while (!line.empty()) {
        line.remove_prefix(1);  // the space that the caller or the loop has seen
        const std::string_view part = line.substr(0, line.find(' '));
        const bool visible = std::ranges::all_of(part, [](char c) { return c > ' ' && c < 0x7f; });
        if (part.empty() || !visible) return lines.wrong("it is no recipient's stanza");
        parts.push_back(part);
        line.remove_prefix(part.size());
    }
    return parts;
}

Result<> take_curve(AgeHeader& header, std::span<const std::string_view> arguments, HostIn body,
                    const Lines& lines) {
    CurveStanza stanza{};
    if (arguments.size() != 2 || !decode_all(arguments[1], stanza.share) ||
        body.size() != stanza.body.size())
        return lines.wrong("its X25519 stanza is not one of 32 bytes and 32 bytes");
    std::ranges::copy(body, stanza.body.begin());
    header.curve.push_back(stanza);
    return {};
}

Result<> take_hybrid(AgeHeader& header, std::span<const std::string_view> arguments, HostIn body,
                     const Lines& lines) {
    HybridStanza stanza{};
    if (arguments.size() != 2 || !decode_all(arguments[1], stanza.share) ||
        body.size() != stanza.body.size())
        return lines.wrong("its mlkem768x25519 stanza is not one of 1120 bytes and 32 bytes");
    std::ranges::copy(body, stanza.body.begin());
    header.hybrid.push_back(stanza);
    return {};
}

Result<> take_scrypt(AgeHeader& header, std::span<const std::string_view> arguments, HostIn body,
                     const Lines& lines) {
    ScryptStanza& stanza = header.scrypt;
    if (arguments.size() != 3 || !decode_all(arguments[1], stanza.salt) ||
        body.size() != stanza.body.size())
        return lines.wrong("its scrypt stanza is not one of 16 bytes, a number and 32 bytes");
    const std::string_view work = arguments[2];
    const auto [end, fault] = std::from_chars(work.data(), work.data() + work.size(), stanza.work);
    // from_chars would take a sign and zeros in front.
    if (work.size() > 2 || work[0] < '1' || work[0] > '9' || end != work.data() + work.size() ||
        fault != std::errc{} || stanza.work > 63)
        return lines.wrong("scrypt's work is not 1 to 63");
    std::ranges::copy(body, stanza.body.begin());
    return {};
}

// One stanza, from the argument line that has been read. False: the text ends before it does.
Result<bool> take_stanza(AgeHeader& header, std::string_view line, Lines& lines) {
    DAEL_LET(parts, arguments(line.substr(2), lines));
    if (parts.empty()) return lines.wrong("it is no recipient's stanza");
    if (++header.stanzas > kMaxStanzas)
        return Error{Code::limit,
                     "the age header has more than " + std::to_string(kMaxStanzas) + " stanzas"};
    std::vector<std::uint8_t> body;
    for (;;) {
        const auto text = lines.next();
        if (!text) return false;
        if (text->size() > kLine || !decode_base64_strictly(*text, body))
            return lines.wrong("it is not base64 as age writes it");
        if (text->size() < kLine) break;
    }
    if (parts[0] == "X25519") DAEL_TRY(take_curve(header, parts, body, lines));
    if (parts[0] == "mlkem768x25519") DAEL_TRY(take_hybrid(header, parts, body, lines));
    if (parts[0] == "scrypt") {
        if (header.scrypt.work != 0) return lines.wrong("a second scrypt stanza");
        DAEL_TRY(take_scrypt(header, parts, body, lines));
    }
    return true;
}

Error no_age_file(std::string_view text) {
    const std::string_view version = kAgeLine.substr(0, kAgeLine.size() - 1);
    if (text.starts_with(version) && (text[version.size()] < '0' || text[version.size()] > '9'))
        return {Code::bad_format,
                "its first line is more than age-encryption.org/v1: were its lines' ends changed?"};
    if (text.starts_with(version.substr(0, version.size() - 1)))
        return {Code::unsupported,
                "an age file of another version; daelstrom knows age-encryption.org/v1"};
    return {Code::bad_format, "it does not begin with age-encryption.org/v1"};
}

}  // namespace

Result<AgeHeader> parse_age_header(HostIn start, std::size_t most) {
    const std::string_view all = core::text_of(start).substr(0, most);
    const std::string_view beginning = all.substr(0, kAgeLine.size());
    if (!kAgeLine.starts_with(beginning)) return no_age_file(all);
    const auto more = [&]() -> Result<AgeHeader> {
        if (all.size() < most) return AgeHeader{};
        return Error{Code::limit,
                     "the age header is longer than " + std::to_string(most) + " bytes"};
    };
    if (beginning.size() < kAgeLine.size()) return more();
    AgeHeader header;
    Lines lines(all);
    lines.next();
    for (;;) {
        const std::size_t at = lines.at();
        const auto line = lines.next();
        if (!line) return more();
        if (line->starts_with("-> ")) {
            DAEL_LET(whole, take_stanza(header, *line, lines));
            if (!whole) return more();
            continue;
        }
        if (!line->starts_with("--- ") || !decode_all(line->substr(4), header.mac))
            return lines.wrong("it is neither a recipient's stanza nor the header's end");
        header.covered = at + 3;
        break;
    }
    if (header.stanzas == 0) return lines.wrong("there is no recipient");
    if (header.scrypt.work != 0 && header.stanzas > 1)
        return Error{Code::bad_format,
                     "the age header has a passphrase beside other recipients, which age forbids"};
    header.size = lines.at();
    return header;
}

void write_stanza(std::string& header, const CurveStanza& stanza) {
    header += "-> X25519 ";
    append_base64(header, stanza.share);
    header += '\n';
    append_base64(header, stanza.body);
    header += '\n';
}

void write_stanza(std::string& header, const HybridStanza& stanza) {
    header += "-> mlkem768x25519 ";
    append_base64(header, stanza.share);
    header += '\n';
    append_base64(header, stanza.body);
    header += '\n';
}

void write_stanza(std::string& header, const ScryptStanza& stanza) {
    header += "-> scrypt ";
    append_base64(header, stanza.salt);
    header += ' ' + std::to_string(stanza.work) + '\n';
    append_base64(header, stanza.body);
    header += '\n';
}

void write_mac(std::string& header, HostIn mac) {
    header += ' ';
    append_base64(header, mac);
    header += '\n';
}

}  // namespace dael::formats
