// SPDX-License-Identifier: Apache-2.0
// Keys as people keep them: bytes, or hexadecimal digits.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <daelstrom/files.hpp>
#include <daelstrom/key.hpp>

#include "core/guard.hpp"
#include "core/quoted.hpp"
#include "core/wipe_at_end.hpp"
#include "files/descriptor.hpp"

namespace dael::files {
namespace {

constexpr std::size_t kMaxKey = 32;

// Decodes hexadecimal without a branch or an index that depends on a digit. `out` holds half of
// text.size() bytes. Returns whether every character was a digit.
bool decode_hex(HostIn text, std::uint8_t* out) noexcept {
    const auto in_range = [](unsigned c, unsigned low, unsigned high) {  // all ones or zero
        return 0u - (1 ^ (((c - low) | (high - c)) >> 31));
    };
    unsigned good = ~0u;
    const auto nibble = [&](unsigned c) {
        const unsigned digit = in_range(c, '0', '9');
        const unsigned lower = c | 0x20;
        const unsigned letter = in_range(lower, 'a', 'f');
        good &= digit | letter;
        return (digit & (c - '0')) | (letter & (lower - 'a' + 10));
    };
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        const unsigned high = nibble(text[i]) << 4;
        out[i / 2] = static_cast<std::uint8_t>(high | nibble(text[i + 1]));
    }
    return good != 0 && text.size() % 2 == 0;
}

bool is_space(std::uint8_t c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
bool is_key_size(std::size_t bytes) {
    return bytes == 16 || bytes == 24 || bytes == 32;
}

Error no_key(std::string_view name, const std::string& size) {
    return {Code::key_size, std::string(name) + " is " + size +
                                " bytes; an AES key is 16, 24 or 32 raw bytes, or 32, 48 or 64 "
                                "hexadecimal digits"};
}

}  // namespace

Result<std::size_t> decode_key(HostIn text, HostOut key, std::string_view name) {
    return core::guarded([&]() -> Result<std::size_t> {
        if (key.size() < kMaxKey)
            return Error{Code::invalid_argument, "a key's memory has 32 bytes"};
        HostIn digits = text;
        while (!digits.empty() && is_space(digits.back())) digits = digits.first(digits.size() - 1);
        if (digits.size() % 2 == 0 && is_key_size(digits.size() / 2)) {
            std::array<std::uint8_t, kMaxKey> bytes{};
            const core::WipeAtEnd wiped(bytes);
            if (decode_hex(digits, bytes.data())) {
                std::copy_n(bytes.begin(), digits.size() / 2, key.begin());
                return digits.size() / 2;
            }
        }
        if (!is_key_size(text.size())) return no_key(name, std::to_string(text.size()));
        std::copy(text.begin(), text.end(), key.begin());
        return text.size();
    });
}

Result<KeyFile> read_key_file(int folder, const std::string& path, HostOut key, int* system) {
    return core::guarded([&]() -> Result<KeyFile> {
        const std::string name = "key file " + core::quoted(path);
        const Faults faults(name, system);
        const Descriptor file(::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
        struct stat status {};
        if (!file || ::fstat(file.get(), &status) != 0) return faults.failed("open");
        if (S_ISDIR(status.st_mode)) return faults.about(EISDIR, " is a directory; give a file");
        std::array<std::uint8_t, 4096> text{};
        const core::WipeAtEnd wiped(text);
        std::size_t size = 0;
        while (size < text.size()) {
            const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return faults.failed("read");
            if (got == 0) break;
            size += static_cast<std::size_t>(got);
        }
        if (size == text.size()) return no_key(name, "4096 or more");
        DAEL_LET(found, decode_key(HostIn(text).first(size), key, name));
        return KeyFile{found, S_ISREG(status.st_mode) ? status.st_mode & 077u : 0u};
    });
}

}  // namespace dael::files
