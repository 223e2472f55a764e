// SPDX-License-Identifier: Apache-2.0
// One end of an ESP tunnel seals IP packets in their own buffers, the other opens them. On the way
// one is altered, and one comes twice.
#include <daelstrom/esp.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

// Keys must come from a cryptographic source, and be fresh; IKE sees to that, and so does this.
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
    namespace esp = dael::esp;
    auto engine = dael::Engine::open();
    if (!engine) return report(engine.error());
    auto here = dael::SaTable::open(*engine), there = dael::SaTable::open(*engine);
    if (!here) return report(here.error());
    if (!there) return report(there.error());

    // Both ends know the SA: its SPI, which the receiver chose, its key, its salt.
    std::array<std::uint8_t, 20> material;  // RFC 4106 8.1: 16 bytes of key, 4 of salt
    fill_random(material);
    auto key = dael::Key::import(std::span(material).first(16));
    if (!key) return report(key.error());
    esp::Options options{.spi = 0x1001};
    std::copy_n(material.begin() + 16, 4, options.salt.begin());
    dael::wipe(material.data(), material.size());

    auto sender = esp::Encapsulator::open(*here, *key, options);
    if (!sender) return report(sender.error());
    esp::Decapsulator receiver(*there);
    if (auto added = receiver.add(*key, options); !added) return report(added.error());

    // IPv4 packets, each in a buffer with room before and after it.
    constexpr std::size_t kPackets = 1000, kSize = 1400;
    constexpr std::size_t kStride = esp::kHeadroom + kSize + esp::kTailroom;
    std::vector<std::uint8_t> memory(kPackets * kStride);
    std::vector<esp::Packet> packets(kPackets);
    for (std::size_t i = 0; i < kPackets; ++i) {
        esp::Packet& packet = packets[i];
        packet.buffer = &memory[i * kStride];
        packet.capacity = kStride;
        packet.offset = esp::kHeadroom;
        packet.size = kSize;
        packet.next_header = esp::kIpv4;
        std::uint8_t* const ip = packet.buffer + packet.offset;
        ip[0] = 0x45;  // version and header's length
        ip[2] = kSize >> 8, ip[3] = kSize & 0xff;
    }
    const auto sent = sender->encapsulate(packets);
    if (!sent) return report(sent.error());
    // Each packet is an ESP packet now: behind an IP header of protocol 50 it may go.
    std::printf("%zu packets of %u bytes each\n", sent->packets, packets[0].size);

    packets[7].buffer[packets[7].offset + 100] ^= 1;  // what an attacker might do
    const auto again = packets[8];
    const std::vector<std::uint8_t> copy(again.buffer, again.buffer + again.capacity);
    const std::size_t accepted = receiver.decapsulate(packets);
    std::copy(copy.begin(), copy.end(), again.buffer);
    packets[8] = again;
    receiver.decapsulate({&packets[8], 1});
    for (const std::size_t i : {7, 8})
        std::printf("packet %zu: %s\n", i, std::string(esp::describe(packets[i].verdict)).c_str());
    std::printf("%zu of %zu are accepted\n", accepted, kPackets);
    return accepted == kPackets - 1 && packets[7].verdict == esp::Verdict::bad_icv &&
                   packets[8].verdict == esp::Verdict::replayed
               ? 0
               : 1;
}
