// SPDX-License-Identifier: Apache-2.0
// ESP for tests: packets as OpenSSL and RFC 4303 have them, put together here by hand, and buffers
// that are poisoned around what lies in them.
#pragma once

#include <gtest/gtest.h>

#include <daelstrom/esp.hpp>

#include "support/oracle.hpp"

namespace dael::test {

inline std::uint32_t read32(const std::uint8_t* at) {
    return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
           at[3];
}
inline void append(Bytes& bytes, std::uint64_t number, int size) {
    for (int i = size - 1; i >= 0; --i) bytes.push_back(static_cast<std::uint8_t>(number >> 8 * i));
}
inline void append(Bytes& bytes, std::span<const std::uint8_t> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
}

// An inner IPv4 packet, or one of IPv6, of `size` bytes in all, with random content.
inline Bytes inner_ip(Random& random, std::uint8_t next_header, std::size_t size) {
    Bytes bytes = random.bytes(size);
    const std::size_t said = next_header == esp::kIpv4 ? size : size - 40;
    bytes[0] = next_header == esp::kIpv4 ? 0x45 : 0x60;
    const std::size_t at = next_header == esp::kIpv4 ? 2 : 4;
    bytes[at] = static_cast<std::uint8_t>(said >> 8);
    bytes[at + 1] = static_cast<std::uint8_t>(said);
    return bytes;
}

// What a receiver of `options` and this key takes, with any trailer: `plain` is all that is
// encrypted.
inline Bytes esp_by_hand(const Bytes& key, const esp::Options& options, std::uint64_t number,
                         std::uint64_t iv, const Bytes& plain) {
    Bytes packet;
    append(packet, options.spi, 4);
    append(packet, number & 0xffffffff, 4);
    append(packet, iv, 8);
    Bytes nonce(options.salt.begin(), options.salt.end());
    append(nonce, iv, 8);
    Bytes aad;
    append(aad, options.spi, 4);
    append(aad, number, options.esn ? 8 : 4);
    const Sealed sealed = gcm_oracle(key, nonce, aad, plain);
    append(packet, sealed.ciphertext);
    append(packet, std::span(sealed.tag).first(options.icv_size));
    return packet;
}
// With RFC 4303's trailer.
inline Bytes with_trailer(Bytes payload, std::uint8_t next_header, std::size_t pad_to = 0) {
    payload.resize(std::max(payload.size(), pad_to));
    std::uint8_t padding = 0;
    while ((payload.size() + 2) % 4 != 0) payload.push_back(++padding);
    payload.push_back(padding);
    payload.push_back(next_header);
    return payload;
}

// A packet with room around it, or with as much as is asked for.
struct PacketBuffer {
    Poisoned memory;
    esp::Packet packet;

    explicit PacketBuffer(const Bytes& content, std::size_t before = esp::kHeadroom,
                          std::size_t after = esp::kTailroom, std::size_t misalignment = 0)
        : memory(before + content.size() + after, misalignment) {
        std::ranges::copy(content, memory.data() + before);
        packet.buffer = memory.data();
        packet.capacity = static_cast<std::uint32_t>(memory.size());
        packet.offset = static_cast<std::uint32_t>(before);
        packet.size = static_cast<std::uint32_t>(content.size());
    }
    Bytes bytes() const {
        return {packet.buffer + packet.offset, packet.buffer + packet.offset + packet.size};
    }
};

class EspTest : public testing::Test {
  protected:
    // What comes in and what goes out, each in a table of its own: a key sends in one only.
    explicit EspTest(const std::string& backend = "auto",
                     SaTableOptions::Plan plan = SaTableOptions::Plan::direct)
        : engine_(opened(Engine::open({.backend = backend, .calibrated = false}))),
          out_(opened(SaTable::open(engine_, of(plan)))),
          in_(opened(SaTable::open(engine_, of(plan)))),
          receiver_(in_) {}

    // Nobody is idle, however slow a machine is.
    static SaTableOptions of(SaTableOptions::Plan plan) {
        return {.budget = 1 << 20, .idle_ms = 60000, .plan = plan};
    }
    template <class T>
    static T opened(Result<T> result) {
        if (!result) throw std::runtime_error(result.error().message);
        return std::move(*result);
    }
    esp::Options some_options() {
        esp::Options options{.spi = next_spi_};
        next_spi_ += 0x1234567;  // many bits from each other
        // A key sends once with a salt in a process, and tests draw the same ones.
        static std::uint32_t salts = 0;
        const std::uint32_t salt = ++salts;
        for (std::size_t i = 0; i < 4; ++i)
            options.salt[i] = static_cast<std::uint8_t>(salt >> 8 * i);
        return options;
    }
    esp::Verdict receive(PacketBuffer& buffer, esp::Framing framing = esp::Framing::esp) {
        buffer.packet.verdict = esp::Verdict::fault;
        const std::size_t accepted = receiver_.decapsulate({&buffer.packet, 1}, framing);
        EXPECT_EQ(accepted, buffer.packet.verdict == esp::Verdict::ok);
        EXPECT_TRUE(buffer.memory.intact());
        return buffer.packet.verdict;
    }
    void add(const Bytes& key, const esp::Options& options) {
        const auto added = receiver_.add(*Key::import(key), options);
        ASSERT_TRUE(added) << added.error().message;
    }

    Random random_{4303};
    std::uint32_t next_spi_ = 0x20000101;
    Engine engine_;
    SaTable out_, in_;
    esp::Decapsulator receiver_;
};

}  // namespace dael::test
