// SPDX-License-Identifier: Apache-2.0
#include "keystream/planner.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include <daelstrom/gcm.hpp>

namespace dael::keystream {
namespace {

using Clock = std::chrono::steady_clock;

// Packets of 1024 bytes, in place, whose keystream lies in slots side by side: 128 KiB of it, which
// is in the second cache of any core.
constexpr std::size_t kPackets = 32, kRounds = 4, kSize = 1024, kBlocks = 1 + kSize / 16;

}  // namespace

Result<Measured> measure(core::Backend& host) {
    DAEL_LET(key, Key::import(std::array<std::uint8_t, 16>{}));
    DAEL_LET(cipher, host.packets(key));
    std::vector<std::uint8_t> data(kPackets * kSize), tags(kPackets * 16), aad(12);
    std::vector<std::uint8_t> ahead(kRounds * kPackets * kBlocks * 16);
    std::array<core::CipherPacket, kPackets> packets;
    for (std::size_t i = 0; i < kPackets; ++i) {
        core::CipherPacket& packet = packets[i];
        packet.in = packet.out = data.data() + i * kSize;
        packet.size = kSize;
        packet.aad = aad.data();
        packet.aad_size = aad.size();
        packet.tag = tags.data() + i * 16;
        packet.first = gcm::start({});
    }
    // The best of some rounds is what the core can do: others disturb it, and then it is slower.
    const auto best_ns = [&](bool with_keystream) {
        double best = 1e9;
        const auto until = Clock::now() + std::chrono::microseconds(1500);
        do {
            const auto began = Clock::now();
            for (std::size_t round = 0; round < kRounds; ++round) {
                for (std::size_t i = 0; i < kPackets; ++i) {
                    packets[i].keystream =
                        with_keystream ? ahead.data() + (round * kPackets + i) * kBlocks * 16
                                       : nullptr;
                    packets[i].blocks = with_keystream ? kBlocks : 0;
                }
                (void)cipher->seal(packets);
            }
            const std::chrono::duration<double, std::nano> took = Clock::now() - began;
            best = std::min(best, took.count() / (kRounds * kPackets));
        } while (Clock::now() < until);
        return best;
    };
    Measured measured;
    measured.direct_ns = best_ns(false);
    measured.ahead_ns = best_ns(true);
    return measured;
}

}  // namespace dael::keystream
