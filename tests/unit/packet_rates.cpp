// SPDX-License-Identifier: Apache-2.0
// Not a test but a measurement, which runs when it is asked for: what a packet costs by
// xor_ghash.hpp, by where its keystream lies, and by what is fetched into the cache meanwhile.
//     cpu_memory_test --gtest_also_run_disabled_tests --gtest_filter='PacketRates*'
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <daelstrom/gcm.hpp>

#include "backends/cpu/gcm.hpp"
#include "backends/cpu/xor_ghash.hpp"
#include "core/registry.hpp"
#include "modes/gcm.hpp"
#include "support/bytes.hpp"

namespace {

using namespace dael;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLine = 64;

struct Aligned {
    explicit Aligned(std::size_t size) : memory(size + kLine, 3) {}
    std::uint8_t* at(std::size_t offset) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        return memory.data() + (kLine - address % kLine) % kLine + offset;
    }
    std::vector<std::uint8_t> memory;
};

// Nanoseconds a packet: the median of some rounds.
template <class Round>
double time_of(std::size_t packets, Round round) {
    std::vector<double> times;
    for (int i = 0; i < 15; ++i) {
        const auto begin = Clock::now();
        std::size_t done = 0;
        do {
            round();
            done += packets;
        } while (Clock::now() - begin < std::chrono::milliseconds(8));
        times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                        static_cast<double>(done));
    }
    std::nth_element(times.begin(), times.begin() + 7, times.end());
    return times[7];
}

TEST(PacketRates, DISABLED_ByPlaceOfTheKeystream) {
    const auto key = Key::import(test::random_bytes(16, 1));
    Block h;
    modes::store_element(h.data(), modes::hash_subkey(key->schedule()));
    cpu::Powers powers;
    const bool avx512 = cpu::available(cpu::Level::avx512) && cpu::vectorised(cpu::Level::avx512);
    const cpu::XorGhash& xor_ghash = avx512 ? cpu::kXorGhashAvx512 : cpu::kXorGhashPclmul;
    xor_ghash.expand(key->schedule(), powers);
    const auto workspace = cpu::workspace(avx512 ? cpu::Level::avx512 : cpu::Level::sse);
    ASSERT_TRUE(workspace);
    const IMB_MGR& manager = *(*workspace)->manager;
    alignas(64) gcm_key_data library;
    manager.ghash_pre(h.data(), &library);
    const auto backend = core::open_backend("cpu");
    ASSERT_TRUE(backend);
    const auto cipher = (*backend)->packets(*key);
    ASSERT_TRUE(cipher);
    std::printf(
        "%s\nns a packet: XOR and GHASH in one pass, with nothing fetched, and what is 1, 2 and 4 "
        "KiB ahead; "
        "libipsec-mb's GHASH and an exclusive-or; libipsec-mb's GCM\n",
        (*backend)->profile().description.c_str());
    const std::vector<std::uint8_t> aad(8, 1);
    for (const std::size_t ring : {256u << 10, 1u << 20, 4u << 20, 8u << 20, 64u << 20}) {
        Aligned keystream(ring + 8192), in(64 << 10), out(64 << 10);
        for (const std::size_t size : {64u, 256u, 512u, 1024u, 1420u})
            for (const bool on_lines : {false, true}) {  // data's keystream begins a cache line
                const std::size_t dense = 16 * (1 + cpu::blocks_of(size));
                const std::size_t slot = on_lines ? (dense + kLine - 1) / kLine * kLine : dense;
                const std::size_t shift = on_lines ? kLine - 16 : 0;
                const std::size_t count = ring / slot,
                                  room = (size + 16 + kLine - 1) / kLine * kLine;
                std::vector<core::CipherPacket> packets(count + 2);
                for (std::size_t i = 0; i < packets.size(); ++i) {
                    const std::size_t at = i % (16384 / room + 1) * room;
                    packets[i] = {
                        in.at(at),  out.at(at),     size,
                        aad.data(), aad.size(),     out.at(at) + size,
                        16,         gcm::start({}), keystream.at(shift + i % count * slot),
                        dense / 16};
                }
                // What is brought near meanwhile lies so many bytes ahead.
                double ns[4], *next = ns;
                for (const std::size_t ahead : {0u, 1024u, 2048u, 4096u}) {
                    for (std::size_t i = 0; i < packets.size(); ++i)
                        packets[i].soon =
                            ahead ? keystream.at(shift + (i % count * slot + ahead) % ring)
                                  : nullptr;
                    *next++ = time_of(count, [&] {
                        for (std::size_t i = 0; i < count; ++i) xor_ghash.seal(powers, packets[i]);
                    });
                }
                for (auto& packet : packets) packet.keystream = nullptr;
                const double direct =
                    time_of(count, [&] { (void)(*cipher)->seal(std::span(packets).first(count)); });
                // The library's GHASH, of AAD, data and lengths, after an exclusive-or.
                const double apart = time_of(count, [&] {
                    for (std::size_t k = 0; k < count; ++k) {
                        const core::CipherPacket& p = packets[k];
                        const std::uint8_t* const stream = keystream.at(shift + k * slot);
                        xor_ghash.exclusive_or(p.out, p.in, stream + 16, p.size);
                        Block y{}, lengths = modes::lengths_block(p.aad_size, p.size);
                        manager.ghash(&library, p.aad, p.aad_size, y.data(), y.size());
                        manager.ghash(&library, p.out, p.size, y.data(), y.size());
                        manager.ghash(&library, lengths.data(), 16, y.data(), y.size());
                        xor_ghash.exclusive_or(p.tag, y.data(), stream, y.size());
                    }
                });
                std::printf(
                    "ring %6zu KiB, %4zu bytes, %s: %6.1f %6.1f %6.1f %6.1f   %6.1f   %6.1f\n",
                    ring >> 10, size, on_lines ? "on lines" : "dense   ", ns[0], ns[1], ns[2],
                    ns[3], apart, direct);
                std::fflush(stdout);
            }
    }
}

}  // namespace
