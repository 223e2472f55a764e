// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "modes/counter.hpp"

namespace dael::bench {
namespace {

constexpr std::uint64_t kWindow = 64 << 10;
constexpr int kRandomPlaces = 4;

// The IV that makes the bytes from `begin` on a message of their own (SP 800-38A 6.2 to 6.5).
Block iv_at(const Work& work, const Message& message, std::uint64_t begin) {
    if (begin == 0) return message.iv;
    if (work.mode == Mode::ctr) return modes::counter_add(message.iv, begin / kBlockSize);
    Block before;  // CBC and CFB decryption: the ciphertext block before
    std::memcpy(before.data(), message.in + begin - kBlockSize, kBlockSize);
    return before;
}

}  // namespace

std::vector<Window> sample_windows(const Work& work) {
    std::mt19937_64 random(work.size * 31 + work.messages);
    std::vector<std::uint64_t> messages{0};
    if (work.messages > 1) {
        messages.push_back(work.messages - 1);
        for (int i = 0; i < kRandomPlaces; ++i) messages.push_back(random() % work.messages);
    }
    const bool whole = work.keys != 0 || work.size <= kWindow ||
                       !parallel_within_message(work.mode, work.direction);
    std::vector<Window> windows;
    for (const auto message : messages) {
        if (whole) {
            windows.push_back({message, 0, work.size});
            continue;
        }
        const std::uint64_t unit = work.sector != 0 ? work.sector : kBlockSize;
        const std::uint64_t last = (work.size - kWindow) / unit * unit;
        windows.push_back({message, 0, kWindow});
        windows.push_back({message, last, work.size - last});
        for (int i = 0; work.messages == 1 && i < kRandomPlaces; ++i)
            windows.push_back({message, random() % (last / unit + 1) * unit, kWindow});
    }
    return windows;
}

Result<> check_output(const Work& work, const TestKey& key, const std::uint8_t* in,
                      const Fetch& fetch) {
    auto openssl = Evp::open(work.mode, work.direction, key);
    if (!openssl) return std::move(openssl).error();
    for (const Window& window : sample_windows(work)) {
        const std::uint64_t start = window.message * work.size;
        const Message message{in + start, nullptr, work.size, message_iv(window.message), 0};
        std::vector<std::uint8_t> expected(window.size), actual(window.size);
        const Message piece{message.in + window.begin, expected.data(), window.size,
                            iv_at(work, message, window.begin), 0};
        if (work.sector != 0)
            DAEL_TRY(evp_xts(key, work.direction, work.sector,
                             kFirstSector + window.begin / work.sector, {piece.in, piece.size},
                             piece.out));
        else
            DAEL_TRY(openssl->run(std::span(&piece, 1)));
        DAEL_TRY(fetch(start + window.begin, actual.data(), actual.size()));
        const auto [wrong, _] = std::mismatch(actual.begin(), actual.end(), expected.begin());
        if (wrong != actual.end())
            return Error{Code::internal,
                         describe(work) + ": message " + std::to_string(window.message) +
                             " differs from OpenSSL's from byte " +
                             std::to_string(window.begin + std::uint64_t(wrong - actual.begin())) +
                             " on; the figure would be worthless"};
    }
    return {};
}

Result<> check_output(const Work& work, const TestKey& key, const std::uint8_t* in,
                      const std::uint8_t* out) {
    return check_output(work, key, in, fetch_from(out));
}

Fetch fetch_from(const std::uint8_t* memory) {
    return [memory](std::uint64_t at, std::uint8_t* bytes, std::size_t size) -> Result<> {
        std::memcpy(bytes, memory + at, size);
        return {};
    };
}

std::string describe(const Work& work) {
    return work.backend + " " + cipher_name(work) + ", " + size_name(work) + ", " + work.where;
}

}  // namespace dael::bench
