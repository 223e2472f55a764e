// SPDX-License-Identifier: Apache-2.0
// Keys as people keep them in files: bytes, or digits.
#include <gtest/gtest.h>
#include <daelstrom/files.hpp>

#include <array>
#include <string>

#include "files/folder.hpp"

namespace dael {
namespace {

std::string decoded(const std::string& text) {
    std::array<std::uint8_t, 32> key{};
    const HostIn bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    const auto size = files::decode_key(bytes, key, "the key");
    return size ? std::string(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(*size))
                : "no: " + size.error().message;
}

TEST(KeyFile, BytesOrDigits) {
    for (const std::size_t size : {16, 24, 32}) {
        const std::string raw(size, '\x5a');
        EXPECT_EQ(decoded(raw), raw);
        std::string digits, upper;
        for (std::size_t i = 0; i < size; ++i) {
            digits += "5a";
            upper += "5A";
        }
        for (const char* const end : {"", "\n", "\r\n", " \t\n\n"}) {
            EXPECT_EQ(decoded(digits + end), raw);
            EXPECT_EQ(decoded(upper + end), raw);
        }
    }
    // As many bytes as a key has, and as many digits as a shorter one: always digits.
    EXPECT_EQ(decoded(std::string(32, '0')), std::string(16, '\0'));
    EXPECT_EQ(decoded(std::string(31, '0') + "g"), std::string(31, '0') + "g");
    for (const std::size_t size : {0, 1, 15, 17, 31, 33, 48, 64, 65, 4096})
        EXPECT_TRUE(
            decoded(std::string(size, 'x')).starts_with("no: the key is " + std::to_string(size)))
            << size;
}

TEST(KeyFile, SaysWhoElseCanReadIt) {
    const test::Folder folder;
    std::array<std::uint8_t, 32> key{};
    for (const mode_t mode : {0600u, 0640u, 0644u}) {
        folder.write("key", std::string(16, 'k'), mode);
        const auto read = files::read_key_file(folder.fd(), "key", key);
        ASSERT_TRUE(read);
        EXPECT_EQ(read->size, 16u);
        EXPECT_EQ(read->open_to, mode & 077);
    }
    folder.write("key", std::string(5000, 'k'));
    EXPECT_EQ(files::read_key_file(folder.fd(), "key", key).code(), Code::key_size);
    int error = 0;
    EXPECT_EQ(files::read_key_file(folder.fd(), "none", key, &error).code(), Code::io);
    EXPECT_EQ(error, ENOENT);
    EXPECT_EQ(files::read_key_file(folder.fd(), ".", key, &error).code(), Code::io);
    EXPECT_EQ(error, EISDIR);
}

}  // namespace
}  // namespace dael
