// SPDX-License-Identifier: Apache-2.0
#include "bench/gcm.hpp"

#include <algorithm>
#include <string>

#include "modes/gcm.hpp"

namespace dael::bench {
namespace {

constexpr std::uint64_t kPiece = 16 << 20;  // long messages are fetched and compared piece by piece

std::array<std::uint8_t, kNonceSize> nonce(std::uint64_t number) noexcept {
    std::array<std::uint8_t, kNonceSize> bytes{0xc0, 0xc1, 0xc2, 0xc3};
    for (std::size_t i = 0; i < 8; ++i)
        bytes[kNonceSize - 1 - i] = static_cast<std::uint8_t>(number >> 8 * i);
    return bytes;
}

Error worthless(const Work& work, std::uint64_t message, const std::string& what) {
    return {Code::internal, describe(work) + ": message " + std::to_string(message) + " " + what +
                                "; the figure would be worthless"};
}

// Fetches bytes from `at` on and compares them; they are number `begin` on of their message.
Result<> compare_piece(const Work& work, const Window& window, std::uint64_t begin,
                       std::span<const std::uint8_t> expected, const Fetch& fetch,
                       const char* whose) {
    std::vector<std::uint8_t> actual(expected.size());
    DAEL_TRY(fetch(window.message * work.size + begin, actual.data(), actual.size()));
    const auto wrong = std::ranges::mismatch(actual, expected).in1;
    if (wrong == actual.end()) return {};
    return worthless(
        work, window.message,
        "differs from " + std::string(whose) + " from byte " +
            std::to_string(begin + static_cast<std::uint64_t>(wrong - actual.begin())) + " on");
}

}  // namespace

std::vector<std::uint8_t> gcm_key_bytes(const TestKey& key, std::uint64_t index) {
    std::vector<std::uint8_t> bytes(key.bytes().begin(), key.bytes().end());
    for (std::size_t i = 0; i < 8; ++i) bytes[i] ^= static_cast<std::uint8_t>(index >> 8 * i);
    return bytes;
}

Result<std::vector<Key>> gcm_keys(const TestKey& key, std::uint64_t count) {
    std::vector<Key> keys;
    keys.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        auto imported = Key::import(gcm_key_bytes(key, i));
        if (!imported) return std::move(imported).error();
        keys.push_back(std::move(*imported));
    }
    return keys;
}

GcmMessages::GcmMessages(const Work& work, const std::uint8_t* in, std::uint8_t* out,
                         std::uint8_t* tags)
    : messages_(work.messages) {
    for (std::uint64_t i = 0; i < work.messages; ++i) {
        GcmMessage& message = messages_[i];
        if (work.mac_only) {
            message.aad = in + i * work.size;
            message.aad_size = work.size;
        } else {
            message.in = in + i * work.size;
            message.out = out + i * work.size;
            message.size = work.size;
        }
        message.tag = tags + i * kTagSize;
        message.nonce = nonce(i);
        message.key = static_cast<std::uint32_t>(i % work.keys);
    }
}

std::span<const GcmMessage> GcmMessages::renew() noexcept {
    for (GcmMessage& message : messages_) message.nonce = nonce(next_++);
    return messages_;
}

std::vector<core::GcmSegment> GcmMessages::segments() const {
    std::vector<core::GcmSegment> segments;
    segments.reserve(messages_.size());
    for (const GcmMessage& message : messages_)
        segments.push_back(modes::to_segment(message, kTagSize));
    return segments;
}

Result<> check_sealed(const Work& work, const TestKey& key, const std::uint8_t* in,
                      const Fetch& out, const Fetch& tags) {
    for (const Window& window : sample_windows(work)) {
        auto openssl = EvpGcm::open(gcm_key_bytes(key, window.message % work.keys));
        if (!openssl) return std::move(openssl).error();
        const std::span message(in + window.message * work.size, work.size);
        const auto iv = nonce(window.message);
        DAEL_TRY(openssl->begin(iv.data(), work.mac_only ? message : message.first(0)));
        std::vector<std::uint8_t> expected(std::min(kPiece, work.size));
        for (std::uint64_t begin = 0; !work.mac_only && begin < work.size; begin += kPiece) {
            const auto piece = message.subspan(begin, std::min(kPiece, work.size - begin));
            DAEL_TRY(openssl->update(piece, expected.data()));
            DAEL_TRY(compare_piece(work, window, begin, std::span(expected).first(piece.size()),
                                   out, "OpenSSL's"));
        }
        Block expected_tag, tag;
        DAEL_TRY(openssl->finish(expected_tag.data()));
        DAEL_TRY(tags(window.message * kTagSize, tag.data(), tag.size()));
        if (tag != expected_tag)
            return worthless(work, window.message, "has another tag than OpenSSL's");
    }
    return {};
}

Result<> check_opened(const Work& work, const std::uint8_t* plaintext, const Fetch& out) {
    for (const Window& window : sample_windows(work))
        for (std::uint64_t begin = 0; begin < work.size; begin += kPiece)
            DAEL_TRY(compare_piece(work, window, begin,
                                   {plaintext + window.message * work.size + begin,
                                    std::min(kPiece, work.size - begin)},
                                   out, "the plaintext"));
    return {};
}

Result<> check_results(const Work& work, std::span<const Code> results) {
    for (std::size_t i = 0; i < results.size(); ++i)
        if (results[i] != Code::ok)
            return worthless(work, i, "failed: " + std::string(describe(results[i])));
    return {};
}

}  // namespace dael::bench
