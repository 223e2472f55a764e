// SPDX-License-Identifier: Apache-2.0
// What the program parses from its arguments and from key and password files.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "fuzz/fuzz.hpp"
#include "io/secrets.hpp"
#include "io/text.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;

// A descriptor from which `content` can be read once.
int readable(std::span<const std::uint8_t> content) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 &&
                write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
                lseek(fd, 0, SEEK_SET) == 0,
            "a file in memory");
    return fd;
}

bool printable(const std::string& text) {
    return std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

void check_iv(const std::string& text) {
    const bool valid = text.size() == 32 &&
                       std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c); });
    const auto iv = app::parse_iv(text);
    require(static_cast<bool>(iv) == valid, "an IV is 32 hexadecimal digits, and nothing else is");
    if (!iv) {
        require(printable(iv.error().message), "messages are one line");
        return;
    }
    for (std::size_t i = 0; i < kBlockSize; ++i)
        require((*iv)[i] == std::stoul(text.substr(2 * i, 2), nullptr, 16),
                "each pair of digits is a byte");
}

void check_size(const std::string& text) {
    const auto size = app::parse_size(text, "--size");
    if (!size) require(printable(size.error().message), "messages are one line");
    // Digits alone are themselves.
    if (!text.empty() && text.size() < 19 &&
        std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); }))
        require(size && *size == std::stoull(text), "plain numbers are bytes");
}

void check_key(const Bytes& content) {
    const int fd = readable(content);
    const auto key = app::read_key_bytes({.file = {}, .fd = fd}, false);
    close(fd);
    const bool raw = content.size() == 16 || content.size() == 24 || content.size() == 32;
    if (raw) require(static_cast<bool>(key), "16, 24 and 32 bytes are a key");
    if (key)
        require(key->bytes().size() == 16 || key->bytes().size() == 24 || key->bytes().size() == 32,
                "of an AES size");
    else
        require(key.code() == Code::key_size, "anything else is no key");
}

void check_password(const Bytes& content) {
    const int fd = readable(content);
    const auto password = app::read_password({.file = {}, .fd = fd}, false);
    close(fd);
    if (!password) return;
    require(
        !password->empty() && std::ranges::find(password->bytes(), '\n') == password->bytes().end(),
        "a password is one line");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    const int which = data.ConsumeIntegralInRange(0, 3);
    if (which == 0)
        check_iv(data.ConsumeRemainingBytesAsString());
    else if (which == 1)
        check_size(data.ConsumeRemainingBytesAsString());
    else if (which == 2)
        check_key(data.ConsumeRemainingBytes<std::uint8_t>());
    else
        check_password(data.ConsumeRemainingBytes<std::uint8_t>());
    return 0;
}
