// SPDX-License-Identifier: Apache-2.0
#include "io/secrets.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <daelstrom/files.hpp>
#include <daelstrom/key.hpp>

#include "io/prompt.hpp"
#include "io/text.hpp"
#include "io/warnings.hpp"

namespace dael::app {
namespace {

constexpr std::size_t kMaxKey = 32;  // bytes

// Everything that the descriptor yields, up to `end` (not included) or its end.
Result<Secret> read_all(int fd, const std::string& origin, int end, std::size_t capacity) {
    auto secret = Secret::create(capacity);
    if (!secret) return secret;
    for (;;) {
        std::uint8_t byte = 0;  // one at a time: what follows a line belongs to others
        const ssize_t got = ::read(fd, &byte, 1);
        if (got < 0 && errno == EAGAIN) {  // a pipe that somebody made non-blocking, and empty
            pollfd more{fd, POLLIN, 0};
            (void)::poll(&more, 1, -1);  // whatever it says, the next read tells
            continue;
        }
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return Error{Code::io, "cannot read " + origin + ": " + std::strerror(errno)};
        if (got == 0 || byte == end) return secret;
        if (!secret->append(byte))
            return Error{Code::key_size, origin + " holds more than " + std::to_string(capacity) +
                                             " bytes; is it the right file?"};
        wipe(&byte, 1);
    }
}

// What messages call the source: "key file 'name'".
std::string origin_of(const SecretSource& source, const std::string& what) {
    if (source.fd) return "file descriptor " + std::to_string(*source.fd);
    if (source.file == "-") return "standard input";
    return what + " file " + in_quotes(*source.file);
}

Result<Secret> read_source(const SecretSource& source, const std::string& what, int end,
                           std::size_t capacity = Secret::kCapacity) {
    const std::string origin = origin_of(source, what);
    if (source.from_stdin()) return read_all(STDIN_FILENO, origin, end, capacity);
    if (source.fd) return read_all(*source.fd, origin, end, capacity);
    const int fd = ::open(source.file->c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return Error{Code::io, "cannot open " + origin + ": " + std::strerror(errno)};
    warn_if_shared(fd, origin);
    auto secret = read_all(fd, origin, end, capacity);
    ::close(fd);
    return secret;
}

}  // namespace

Result<Secret> Secret::create(std::size_t capacity) {
    Secret secret;
    // Pages of its own: locked against swapping where the limit allows, and left out of core dumps.
    void* const memory =
        ::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Error{Code::out_of_memory, "no memory for a secret"};
    ::madvise(memory, capacity, MADV_DONTDUMP);
    (void)::mlock(memory, capacity);
    secret.data_ = static_cast<std::uint8_t*>(memory);
    secret.capacity_ = capacity;
    return secret;
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
}

Secret::~Secret() {
    if (!data_) return;
    wipe(data_, capacity_);
    ::munmap(data_, capacity_);
}

bool Secret::append(std::uint8_t byte) noexcept {
    if (size_ == capacity_) return false;
    data_[size_++] = byte;
    return true;
}

std::span<std::uint8_t> Secret::fill() noexcept {
    size_ = capacity_;
    return {data_, size_};
}

void Secret::truncate(std::size_t size) noexcept {
    if (size >= size_) return;
    wipe(data_ + size, size_ - size);
    size_ = size;
}

Result<Secret> read_key_bytes(const SecretSource& source, bool confirm) {
    const bool typed = source.from_terminal();
    DAEL_LET(secret, typed ? prompt("Key (hexadecimal)", confirm, "give --key-file FILE")
                           : read_source(source, "key", -1));
    DAEL_LET(key, Secret::create(kMaxKey));
    const auto size = files::decode_key(secret.bytes(), key.fill(),
                                        typed ? "what was typed" : origin_of(source, "key"));
    // Nobody types raw bytes.
    if (typed && (!size || secret.bytes().size() < 2 * *size))
        return Error{Code::key_size,
                     "that is no key; an AES key is 32, 48 or 64 hexadecimal digits"};
    if (!size) return size.error();
    key.truncate(*size);
    return std::move(key);
}

Result<Secret> read_password(const SecretSource& source, bool confirm, const std::string& what) {
    std::string question = what, option = what;
    question[0] = static_cast<char>(question[0] & ~0x20);
    std::ranges::replace(option, ' ', '-');
    auto password = source.from_terminal()
                        ? prompt(question, confirm, "give --" + option + "-file FILE")
                        : read_source(source, what, '\n');
    if (!password) return password;
    const auto bytes = password->bytes();
    if (!bytes.empty() && bytes.back() == '\r') password->truncate(bytes.size() - 1);
    if (password->empty())
        return Error{Code::key_size,
                     "the " + what + " is empty; a " + what + " has at least one character"};
    return password;
}

Result<Secret> read_keyset(const std::string& path) {
    return read_source({.file = path, .fd = {}}, "keyset", -1, kMaxKeyset);
}

Result<Secret> random_secret(std::size_t size) {
    DAEL_LET(secret, Secret::create(size));
    const auto bytes = secret.fill();
    for (std::size_t at = 0; at < size; at += 256)  // the most that it gives at once
        if (::getentropy(bytes.data() + at, std::min<std::size_t>(256, size - at)) != 0)
            return Error{Code::internal,
                         std::string("the kernel has no random bytes: ") + std::strerror(errno)};
    return std::move(secret);
}

Result<Secret> in_hex(std::span<const std::uint8_t> bytes) {
    DAEL_LET(secret, Secret::create(2 * bytes.size() + 1));
    const auto text = secret.fill();
    // Without a branch or an index that depends on a digit.
    const auto digit = [](unsigned value) {
        const unsigned letter = 0u - ((9 - value) >> 31);  // all ones from 10 on
        return static_cast<std::uint8_t>(value + '0' + (letter & ('a' - '9' - 1)));
    };
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        text[2 * i] = digit(bytes[i] >> 4);
        text[2 * i + 1] = digit(bytes[i] & 15);
    }
    text.back() = '\n';
    return std::move(secret);
}

Result<Secret> read_identity_file(const std::string& path) {
    constexpr std::size_t kMax = 128 << 10;
    return read_source({.file = path, .fd = {}}, "identity", -1, kMax);
}

Result<Block> parse_iv(std::string_view hex) {
    const std::span text(reinterpret_cast<const std::uint8_t*>(hex.data()), hex.size());
    const bool is_hex =
        hex.find_first_not_of("0123456789abcdefABCDEF") == hex.npos;  // an IV is no secret
    if (!is_hex)
        return Error{Code::iv_size, "the IV is not hexadecimal; give 32 of the digits 0-9 and a-f"};
    if (text.size() != 2 * kBlockSize)
        return Error{Code::iv_size, "the IV has " + std::to_string(text.size()) +
                                        " hexadecimal digits; AES takes 32 (16 bytes)"};
    std::array<std::uint8_t, kMaxKey> bytes{};
    DAEL_TRY(files::decode_key(text, bytes, "the IV"));  // digits are digits
    Block iv{};
    std::copy_n(bytes.begin(), iv.size(), iv.begin());
    return iv;
}

}  // namespace dael::app
