// SPDX-License-Identifier: Apache-2.0
// Two ends of a tunnel whose packets find their keystream made: 20,000 packets are sealed and
// opened, and the tables say how many did.
#include <daelstrom/keystream.hpp>

#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr std::size_t kBatch = 32, kSize = 1024, kTag = 16;

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 1;
}

// A batch of packets: payload, IV and tag, in the caller's own memory.
struct Packets {
    std::vector<std::uint8_t> data, ivs, tags;
    std::vector<dael::SaPacket> list;
    Packets() : data(kBatch * kSize, 'p'), ivs(kBatch * 8), tags(kBatch * kTag) {
        for (std::size_t i = 0; i < kBatch; ++i) {
            std::uint8_t* const payload = &data[i * kSize];
            list.push_back({.in = payload,
                            .out = payload,
                            .size = kSize,
                            .iv = &ivs[i * 8],
                            .tag = &tags[i * kTag]});
        }
    }
};

}  // namespace

int main() {
    // The key comes from a key exchange, never from a file that outlives the process.
    std::array<std::uint8_t, 16> bytes;
    std::random_device source;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(source());
    auto key = dael::Key::import(bytes);
    dael::wipe(bytes.data(), bytes.size());
    if (!key) return report(key.error());

    // Who fills: a GPU where there is one, else the CPU's other cores. One table for each core
    // that works on packets.
    auto engine = dael::Engine::open();
    if (!engine) return report(engine.error());
    auto filler = dael::SaFiller::open(*engine);
    if (!filler) return report(filler.error());
    auto table = dael::SaTable::open(*filler, {.budget = std::size_t{4} << 20});
    if (!table) return report(table.error());

    auto sender = table->add(*key, {.direction = dael::SaDirection::sending, .salt = {1, 2, 3, 4}});
    if (!sender) return report(sender.error());
    auto receiver =
        table->add(*key, {.direction = dael::SaDirection::receiving, .salt = {1, 2, 3, 4}});
    if (!receiver) return report(receiver.error());

    Packets packets;
    std::vector<dael::Code> codes(kBatch);
    for (std::size_t sent = 0; sent < 20000; sent += kBatch) {
        auto sealed = table->seal(*sender, packets.list);  // numbers, IVs, ciphertext, tags
        if (!sealed) return report(sealed.error());
        if (sealed->rekey_soon) std::puts("time for a new key");
        auto opened = table->open(*receiver, packets.list, codes);
        if (!opened) return report(opened.error());
        for (const dael::Code code : codes)
            if (code != dael::Code::ok) return report({code, "a packet was refused"});
    }
    for (const std::uint8_t byte : packets.data)
        if (byte != 'p') return report({dael::Code::internal, "the data came back changed"});
    std::fputs(table->explain().c_str(), stdout);
    return 0;
}
