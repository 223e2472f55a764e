// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <daelstrom/gcm.hpp>
#include <daelstrom/xts.hpp>

#include "bench/yardstick.hpp"

namespace dael::bench {
namespace {

constexpr std::uint64_t kWindow = 64 << 10;
constexpr std::uint64_t kPiece = 16 << 20;  // long messages are fetched and compared piece by piece
constexpr int kRandomPlaces = 4;

// What makes the bytes from `begin` on a message of their own (SP 800-38A 6.2 to 6.5).
Block start_at(const Work& work, const Message& message, std::uint64_t begin) {
    if (begin == 0 || work.is(Mode::ecb)) return message.start;
    if (work.is(Mode::xts))
        return xts::start({kFirstSector + begin / work.cipher.sector, work.cipher.sector});
    Block block = message.start;
    if (work.is(Mode::ctr)) {
        std::uint64_t carry = begin / kBlockSize;
        for (std::size_t i = kBlockSize; i-- > 0; carry >>= 8) {
            carry += block[i];
            block[i] = static_cast<std::uint8_t>(carry);
        }
    } else {  // CBC and CFB decryption: the ciphertext block before
        std::memcpy(block.data(), message.in + begin - kBlockSize, kBlockSize);
    }
    return block;
}

// Fetches a window's bytes, piece by piece, and compares them with what `expect` makes of them.
template <class Expect>
Result<> compare(const Work& work, const Window& window, const Fetch& out, const char* whose,
                 Expect expect) {
    std::vector<std::uint8_t> expected, actual;
    for (std::uint64_t at = 0; at < window.size; at += kPiece) {
        const std::uint64_t begin = window.begin + at, size = std::min(kPiece, window.size - at);
        expected.resize(size);
        actual.resize(size);
        DAEL_TRY(expect(begin, std::span(expected)));
        DAEL_TRY(out(work.place_of(window.message) + begin, actual.data(), size));
        if (actual == expected) continue;
        const auto wrong = std::ranges::mismatch(actual, expected).in1 - actual.begin();
        return worthless(work, window.message,
                         "differs from " + std::string(whose) + " from byte " +
                             std::to_string(begin + static_cast<std::uint64_t>(wrong)) + " on");
    }
    return {};
}

}  // namespace

Error worthless(const Work& work, std::uint64_t message, const std::string& what) {
    return {Code::internal, describe(work) + ": message " + std::to_string(message) + " " + what +
                                "; the figure would be worthless"};
}

std::vector<Window> sample_windows(const Work& work) {
    std::mt19937_64 random(work.size * 31 + work.messages);
    std::vector<std::uint64_t> messages{0};
    if (work.messages > 1) {
        messages.push_back(work.messages - 1);
        for (int i = 0; i < kRandomPlaces; ++i) messages.push_back(random() % work.messages);
    }
    const bool whole = work.tagged() || work.size <= kWindow || !work.parallel();
    std::vector<Window> windows;
    for (const auto message : messages) {
        if (whole) {
            windows.push_back({message, 0, work.size_of(message)});
            continue;
        }
        const std::uint64_t unit = work.is(Mode::xts) ? work.cipher.sector : kBlockSize;
        const std::uint64_t last = (work.size - kWindow) / unit * unit;
        windows.push_back({message, 0, kWindow});
        windows.push_back({message, last, work.size - last});
        for (int i = 0; work.messages == 1 && i < kRandomPlaces; ++i)
            windows.push_back({message, random() % (last / unit + 1) * unit, kWindow});
    }
    return windows;
}

Result<> check_output(const Work& work, const std::uint8_t* in, const Fetch& out,
                      const Fetch& tags) {
    if (work.tagged() && !work.is(Mode::gcm)) return check_by_backends(work, in, out, tags);
    const auto messages = lay_out(work, in, nullptr);
    for (Window window : sample_windows(work)) {
        Message message = messages[window.message];
        DAEL_LET(openssl, Evp::open(work.cipher, key_bytes(work, message.key)));
        message.start = start_at(work, message, window.begin);
        DAEL_TRY(openssl.begin(message));
        if (work.mac_only) window.size = 0;
        DAEL_TRY(compare(
            work, window, out, "OpenSSL's",
            [&](std::uint64_t begin, std::span<std::uint8_t> expected) {
                return openssl.update({message.in + begin, expected.size()}, expected.data());
            }));
        if (!tags) continue;
        Block expected, tag;
        DAEL_TRY(openssl.tag(expected.data()));
        DAEL_TRY(tags(window.message * gcm::kTagSize, tag.data(), tag.size()));
        if (tag != expected)
            return worthless(work, window.message, "has another tag than OpenSSL's");
    }
    return {};
}

Result<> check_opened(const Work& work, const std::uint8_t* plaintext, const Fetch& out) {
    if (!work.is(Mode::gcm)) return check_all_opened(work, plaintext, out);
    for (const Window& window : sample_windows(work))
        DAEL_TRY(compare(work, window, out, "the plaintext",
                         [&](std::uint64_t begin, std::span<std::uint8_t> expected) -> Result<> {
                             std::memcpy(expected.data(),
                                         plaintext + work.place_of(window.message) + begin,
                                         expected.size());
                             return {};
                         }));
    return {};
}

Result<> check_codes(const Work& work, std::span<const Code> codes) {
    for (std::size_t i = 0; i < codes.size(); ++i)
        if (codes[i] != Code::ok)
            return worthless(work, i, "failed: " + std::string(dael::describe(codes[i])));
    return {};
}

}  // namespace dael::bench
