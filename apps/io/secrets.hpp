// SPDX-License-Identifier: Apache-2.0
// Keys and passwords on their way in: from a file, a descriptor or the terminal, never from the
// environment, into locked memory that is wiped. Messages name where a secret came from, never what
// it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <daelstrom/error.hpp>
#include <daelstrom/message.hpp>

namespace dael::app {

// Secret bytes in locked memory, up to as many as it was made for; move-only, wiped.
class Secret {
  public:
    static constexpr std::size_t kCapacity = 4096;

    static Result<Secret> create(std::size_t capacity = kCapacity);
    Secret() = default;  // holds nothing and has no memory
    Secret(Secret&& other) noexcept;
    Secret& operator=(Secret&& other) noexcept;
    ~Secret();

    bool append(std::uint8_t byte) noexcept;  // false: full
    // All that it was made for, to be written by the caller.
    std::span<std::uint8_t> fill() noexcept;
    void truncate(std::size_t size) noexcept;
    bool empty() const noexcept { return size_ == 0; }
    std::span<const std::uint8_t> bytes() const noexcept { return {data_, size_}; }

  private:
    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

// Where a key or a password comes from. Nothing set: the terminal.
struct SecretSource {
    std::optional<std::string> file;  // "-" is standard input
    std::optional<int> fd;

    bool from_terminal() const { return !file && !fd; }
    bool from_stdin() const { return file == "-" || fd == 0; }
};

// An AES key: 16, 24 or 32 raw bytes, or 32, 48 or 64 hexadecimal digits with optional white space
// at the end. A file of that many digits is always taken as hexadecimal: by chance, raw keys never
// are. `confirm` asks a terminal twice, since a slip would make the data unreadable.
Result<Secret> read_key_bytes(const SecretSource& source, bool confirm);

// A password: the first line, without its end, as `openssl -pass file:` takes it. `what` is what
// messages and the prompt call it, and the option: "new passphrase" has --new-passphrase-file.
Result<Secret> read_password(const SecretSource& source, bool confirm,
                             const std::string& what = "password");

// All of a keyset's text. "-" is standard input.
inline constexpr std::size_t kMaxKeyset = 64 << 10;  // bytes
Result<Secret> read_keyset(const std::string& path);

// New random bytes, good for a key, and bytes in hexadecimal with a newline. Errors: out_of_memory,
// internal.
Result<Secret> random_secret(std::size_t size);
Result<Secret> in_hex(std::span<const std::uint8_t> bytes);

// All of an identity file's text, age's secret keys, up to 128 KiB. "-" is standard input.
Result<Secret> read_identity_file(const std::string& path);

// An IV in hexadecimal. Errors: iv_size, with what was found.
Result<Block> parse_iv(std::string_view hex);

}  // namespace dael::app
