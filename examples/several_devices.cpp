// SPDX-License-Identifier: Apache-2.0
// Encrypts one buffer with every device and the cores of the host together, and says who did how
// much. Name them yourself by {.backend = "cuda:0+cuda:1+cpu"}.
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
    auto key = dael::Key::import(bytes);
    dael::wipe(bytes.data(), bytes.size());
    if (!key) return report(key.error());

    std::vector<std::uint8_t> plain(64 << 20, 'd'), secret(plain.size()), again(plain.size());

    auto together = dael::Engine::open({.backend = "all"});  // or "cuda:0+cuda:1+cpu"
    if (!together) return report(together.error());
    auto ran = dael::ctr::crypt(*together, *key, counter, plain, secret);
    if (!ran) return report(ran.error());

    std::printf("encrypted on %s", ran->backend.data());  // "cuda:0+cuda:1+cpu"
    for (std::size_t i = 0; i < ran->percent.size() && ran->percent[i] != 0; ++i)
        std::printf("%s%d%%", i == 0 ? ": " : " + ", ran->percent[i]);
    std::puts("");

    auto alone = dael::Engine::open({.backend = "openssl"});
    if (!alone) return report(alone.error());
    auto back = dael::ctr::crypt(*alone, *key, counter, secret, again);
    if (!back) return report(back.error());
    std::puts(again == plain ? "decrypted, and the same" : "decrypted, but NOT the same");
    return again == plain ? 0 : 1;
}
