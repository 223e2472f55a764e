// SPDX-License-Identifier: Apache-2.0
// ESP packets that come from elsewhere. Only what was sealed with the key is accepted, once, as the
// payload that went in; all else has a verdict, and leaves nothing of the plaintext. What goes out
// comes in again.
#include <algorithm>
#include <set>

#include <daelstrom/esp.hpp>
#include <daelstrom/gcm.hpp>

#include "fuzz/fuzz.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;
using esp::Verdict;

Engine& engine() {
    static Engine opened =
        value(Engine::open({.backend = "openssl", .threads = 1}), "the backend openssl");
    return opened;
}

// Packets are encrypted as they come, or find keystream that a filler has made.
SaTable& table(bool ahead) {
    const auto open = [](SaTableOptions::Plan plan) {
        return value(SaTable::open(engine(), {.budget = 1 << 20, .idle_ms = 60000, .plan = plan}),
                     "a table");
    };
    static SaTable direct = open(SaTableOptions::Plan::direct);
    static SaTable filled = open(SaTableOptions::Plan::ahead);
    return ahead ? filled : direct;
}

void put(Bytes& bytes, std::uint64_t number, int size) {
    for (int i = size - 1; i >= 0; --i) bytes.push_back(static_cast<std::uint8_t>(number >> 8 * i));
}

// A packet with any trailer, as a peer with the key might send it.
Bytes sealed(const Key& key, const esp::Options& options, std::uint64_t number,
             const Bytes& plain) {
    Bytes packet, aad, nonce(options.salt.begin(), options.salt.end());
    put(packet, options.spi, 4);
    put(packet, number & 0xffffffff, 4);
    put(packet, number, 8);
    put(aad, options.spi, 4);
    put(aad, number, options.esn ? 8 : 4);
    put(nonce, number, 8);
    const std::size_t at = packet.size();
    packet.resize(at + plain.size() + 16);
    const std::span out(packet);
    (void)value(gcm::seal(engine(), key, nonce, aad, plain, out.subspan(at, plain.size()),
                          out.subspan(at + plain.size())),
                "sealing");
    packet.resize(at + plain.size() + options.icv_size);
    return packet;
}

struct Received {
    Verdict verdict;
    Bytes payload, memory;
    std::uint64_t sequence;
};

Received receive(esp::Decapsulator& receiver, Bytes packet, std::size_t around,
                 esp::Framing framing) {
    Bytes memory(around, 0xa5);
    memory.insert(memory.end(), packet.begin(), packet.end());
    memory.insert(memory.end(), around, 0xa5);
    esp::Packet p{memory.data(), static_cast<std::uint32_t>(memory.size()),
                  static_cast<std::uint32_t>(around), static_cast<std::uint32_t>(packet.size())};
    const std::size_t accepted = receiver.decapsulate({&p, 1}, framing);
    require(static_cast<std::size_t>(p.verdict) < esp::kVerdicts, "a verdict that is one");
    require(accepted == (p.verdict == Verdict::ok), "the count is of what is ok");
    require(p.offset >= around && p.offset + p.size <= around + packet.size(),
            "what is left lies where the packet was");
    for (std::size_t i = 0; i < around; ++i)
        require(memory[i] == 0xa5 && memory[memory.size() - 1 - i] == 0xa5, "nothing outside");
    return {p.verdict, Bytes(memory.data() + p.offset, memory.data() + p.offset + p.size), memory,
            p.sequence};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    const Key key = fuzz::key(data);
    const Bytes salt = bytes(data, 4);
    esp::Options options{.spi = 0x01020304,
                         .icv_size = data.PickValueInArray<std::uint8_t>({8, 12, 16}),
                         .esn = data.ConsumeBool()};
    std::ranges::copy(salt, options.salt.begin());
    if (!options.esn && data.ConsumeBool()) options.window = 0;
    options.accept_again = true;  // whatever other inputs brought
    const bool ahead = size % 4 == 0;
    esp::Decapsulator receiver(table(ahead));
    (void)value(receiver.add(key, options), "an SA");
    std::set<std::uint64_t> accepted;
    std::uint64_t number = data.ConsumeBool() ? 0xffffff00 : 1;
    while (data.remaining_bytes() != 0) {
        const auto framing = static_cast<esp::Framing>(data.ConsumeIntegralInRange(0, 2));
        const std::size_t around = data.ConsumeIntegralInRange<std::size_t>(0, 40);
        if (data.ConsumeBool()) {  // anything
            Bytes packet;
            if (data.ConsumeBool()) put(packet, options.spi, 4);
            const Bytes more =
                data.ConsumeBytes<std::uint8_t>(data.ConsumeIntegralInRange<std::size_t>(0, 200));
            packet.insert(packet.end(), more.begin(), more.end());
            const auto got = receive(receiver, packet, around, framing);
            require(got.verdict != Verdict::ok, "a forgery is refused");
            continue;
        }
        number += data.ConsumeIntegralInRange<std::uint64_t>(0, 3);
        if (data.ConsumeIntegralInRange(0, 7) == 0)
            number -= std::min<std::uint64_t>(number, data.ConsumeIntegral<std::uint8_t>());
        if (!options.esn) number &= 0xffffffff;
        Bytes plain =
            data.ConsumeBytes<std::uint8_t>(4 * data.ConsumeIntegralInRange<std::size_t>(1, 40));
        plain.resize((plain.size() + 7) / 4 * 4);
        const Bytes packet = sealed(key, options, number, plain);
        const auto got = receive(receiver, packet, around, esp::Framing::esp);
        if (got.verdict != Verdict::ok) {
            require(got.verdict != Verdict::unknown_spi && got.verdict != Verdict::truncated &&
                        got.verdict != Verdict::fault,
                    "what was sealed is refused for what is in it, or for its number");
            require(plain == Bytes(plain.size()) ||
                        !std::equal(plain.begin(), plain.end(),
                                    got.memory.begin() + static_cast<long>(around) + 16),
                    "no plaintext is left");
            continue;
        }
        if (ahead && accepted.size() % 8 == 0) table(true).settle();
        require(got.sequence == number, "the number is whole");
        require(options.window == 0 || accepted.insert(number).second, "accepted once");
        require(got.payload.size() + 2 <= plain.size() &&
                    std::equal(got.payload.begin(), got.payload.end(), plain.begin()),
                "the payload is what was sealed");
        require(plain.back() != esp::kNoNext, "dummies are not accepted");
    }
    return 0;
}
