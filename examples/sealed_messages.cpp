// SPDX-License-Identifier: Apache-2.0
// Seals a batch of messages with AES-256-GCM, then opens it again, one of them altered on its way.
#include <daelstrom/gcm.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

namespace {

// Keys must come from a cryptographic source; std::random_device is one on Linux.
void fill_random(std::span<std::uint8_t> bytes) {
    std::random_device source;
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(source()); });
}

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 1;
}

}  // namespace

int main() {
    std::array<std::uint8_t, 32> bytes;
    fill_random(bytes);
    auto engine = dael::Engine::open();
    auto key = dael::Key::import(bytes);
    dael::wipe(bytes.data(), bytes.size());
    if (!engine) return report(engine.error());
    if (!key) return report(key.error());

    constexpr std::size_t kMessages = 1000, kSize = 1500;
    const std::vector<std::uint8_t> header{'v', '1'};
    std::vector<std::uint8_t> data(kMessages * kSize, 'd'), tags(kMessages * dael::gcm::kTagSize);

    auto keys = engine->keys({&*key, 1});  // once, for any number of batches
    if (!keys) return report(keys.error());
    std::vector<dael::Message> messages(kMessages);
    for (std::size_t i = 0; i < kMessages; ++i) {
        dael::Message& message = messages[i];
        message.in = message.out = &data[i * kSize];  // in place
        message.size = kSize;
        message.aad = header.data();  // authenticated, not encrypted
        message.aad_size = header.size();
        message.tag = &tags[i * dael::gcm::kTagSize];
    }
    dael::NonceCounter nonces({'m', 'e', '0', '1'});  // counts: none comes twice under this key
    if (auto numbered = nonces.number(messages); !numbered) return report(numbered.error());
    std::vector<dael::Code> codes(kMessages);
    auto sealed = engine->run(dael::gcm::sealing(), *keys, messages, codes);
    if (!sealed) return report(sealed.error());
    std::printf("sealed %zu messages on %s\n", kMessages, sealed->backend.data());

    data[7 * kSize + 3] ^= 1;  // what an attacker, or a bad disk, might do
    auto opened = engine->run(dael::gcm::opening(), *keys, messages, codes);
    if (!opened) return report(opened.error());
    for (std::size_t i = 0; i < kMessages; ++i)
        if (codes[i] != dael::Code::ok)
            std::printf("message %zu: %s\n", i, std::string(describe(codes[i])).c_str());

    // Message 7 is ciphertext still: work in place leaves it as it was.
    const auto right = std::count(data.begin(), data.begin() + 7 * kSize, 'd') +
                       std::count(data.begin() + 8 * kSize, data.end(), 'd');
    const bool as_expected = codes[7] == dael::Code::authentication &&
                             std::count(codes.begin(), codes.end(), dael::Code::ok) ==
                                 static_cast<long>(kMessages - 1) &&
                             right == static_cast<long>((kMessages - 1) * kSize);
    std::puts(as_expected ? "all others are right" : "NOT what was sealed");
    return as_expected ? 0 : 1;
}
