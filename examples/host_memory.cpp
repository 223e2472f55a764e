// SPDX-License-Identifier: Apache-2.0
// Encrypts and decrypts a buffer in host memory with AES-256-CTR, on the fastest thing there is.
#include <daelstrom/ctr.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

namespace {

// Keys and counters must come from a cryptographic source; std::random_device is one on Linux.
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
    dael::Block counter;
    fill_random(bytes);
    fill_random(counter);

    auto engine = dael::Engine::open();   // or {.backend = "cpu"}, "openssl", "cuda", ...
    auto key = dael::Key::import(bytes);  // 16, 24 or 32 bytes; wipes itself
    dael::wipe(bytes.data(), bytes.size());
    if (!engine) return report(engine.error());
    if (!key) return report(key.error());

    const std::vector<std::uint8_t> plain(64 << 20, 'd');
    std::vector<std::uint8_t> secret(plain.size()), again(plain.size());

    auto ran = dael::ctr::crypt(*engine, *key, counter, plain, secret);
    if (!ran) return report(ran.error());
    std::printf("encrypted %zu MiB on %s\n", plain.size() >> 20, ran->backend.data());

    // CTR decrypts by doing the same again, and may start anywhere: here, at byte 1000.
    auto back = dael::ctr::crypt(*engine, *key, counter, std::span(secret).subspan(1000),
                                 std::span(again).subspan(1000), 1000);
    if (!back) return report(back.error());

    const bool same = std::equal(plain.begin() + 1000, plain.end(), again.begin() + 1000);
    std::puts(same ? "decrypted, and the same" : "decrypted, but NOT the same");
    return same && plain != secret ? 0 : 1;
}
