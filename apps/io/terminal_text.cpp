// SPDX-License-Identifier: Apache-2.0
#include "io/terminal_text.hpp"

#include <algorithm>

namespace dael::app {
namespace {

constexpr std::size_t kMaxHeld = 16 << 20;

Error no_text() {
    return {Code::io,
            "this is no plain text, and a terminal may obey what it cannot show; give -o FILE, or "
            "-o - if you mean it"};
}

}  // namespace

// RFC 3629, a byte at a time, less C1, which begins with 0xc2.
bool TerminalText::takes(std::uint8_t byte) noexcept {
    if (after_return_ && byte != '\n') return false;
    after_return_ = byte == '\r';
    if (more_ != 0) {
        if (byte < least_ || byte > most_) return false;
        --more_;
        least_ = 0x80;
        most_ = 0xbf;
        return true;
    }
    if (byte < 0x80)
        return byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20 && byte != 0x7f);
    if (byte < 0xc2 || byte > 0xf4) return false;
    more_ = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : 1;
    least_ = byte == 0xc2 ? 0xa0 : byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    most_ = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    return true;
}

Result<> TerminalText::take(std::span<const std::uint8_t> bytes, const Show& show) {
    for (const std::uint8_t byte : bytes)
        if (!takes(byte)) return no_text();
    if (held_.bytes().data() == nullptr) {
        DAEL_LET(room, Secret::create(kMaxHeld));
        held_ = std::move(room);
    }
    if (bytes.size() > kMaxHeld - held_.bytes().size()) DAEL_TRY(let_go(show));
    if (bytes.size() > kMaxHeld) return show(bytes);
    for (const std::uint8_t byte : bytes) (void)held_.append(byte);
    return {};
}

Result<> TerminalText::end(const Show& show) {
    if (more_ != 0) return no_text();
    return let_go(show);
}

Result<> TerminalText::let_go(const Show& show) {
    DAEL_TRY(show(held_.bytes()));
    held_.truncate(0);
    return {};
}

}  // namespace dael::app
