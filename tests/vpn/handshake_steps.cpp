// SPDX-License-Identifier: Apache-2.0
// One end of the handshake, step by step over standard input and output, for another implementation
// to talk to (noise_interop_test.py). The time is what it is told. A line each:
//
//     peer PUBLIC [SECRET]     adds a peer                     -> "peer NUMBER"
//     want PEER                there is something to send
//     receive SOURCE MESSAGE   a datagram came                 -> "outcome WORDS"
//     unknown PACKET           an ESP packet of unknown SPI
//     received PEER SESSION    something authentic came by it
//     pass MILLISECONDS        the time goes on
//
// and then a line for each thing to be done, and "."; bytes are hexadecimal. Arguments: the private
// key, and how many handshakes a second are free.
#include <array>
#include <charconv>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "vpn/handshake/handshakes.hpp"

namespace {

using namespace dael;
using namespace dael::vpn;

std::vector<std::uint8_t> from_hex(const std::string& text) {
    std::vector<std::uint8_t> bytes(text.size() / 2);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, bytes[i], 16);
    return bytes;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : bytes) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

template <class Key>
Key key_of(const std::string& hex) {
    const auto bytes = from_hex(hex);
    Key key{};
    std::copy_n(bytes.begin(), std::min(bytes.size(), kKeySize), key.data());
    return key;
}

void show(const DirectionKeys& keys) {
    std::cout << ' ' << keys.spi << ' ' << to_hex(keys.key.span()) << ' '
              << to_hex(keys.salt.span());
}

void show(const Action& action) {
    using Kind = Action::Kind;
    const char* const role = action.role == Role::initiator ? " initiator" : " responder";
    switch (action.kind) {
        case Kind::reply:
            std::cout << "reply " << to_hex(action.message);
            break;
        case Kind::send:
            std::cout << "send " << to_hex(action.message);
            break;
        case Kind::install:
            std::cout << "install " << action.session << role;
            show(action.fresh->sending);
            show(action.fresh->receiving);
            break;
        case Kind::use:
            std::cout << "use " << action.session << role;
            break;
        case Kind::remove:
            std::cout << "remove " << action.session;
            break;
        case Kind::keepalive:
            std::cout << "keepalive " << action.session;
            break;
        case Kind::unreachable:
            std::cout << "unreachable " << action.peer;
            break;
    }
    std::cout << '\n';
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    Policy policy;
    policy.free_per_second = policy.free_burst =
        static_cast<std::uint32_t>(std::stoul(arguments[2]));
    auto handshakes = Handshakes::open(key_of<SecretKey>(arguments[1]), policy);
    if (!handshakes) {
        std::cerr << handshakes.error().message << '\n';
        return 1;
    }
    Now now{std::chrono::seconds(1), std::chrono::seconds(1'700'000'000)};
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string what, first, second;
        words >> what >> first >> second;
        if (what == "peer") {
            PeerOptions options;
            options.key = key_of<PublicKey>(first);
            options.has_shared = !second.empty();
            options.shared = key_of<SecretKey>(second);
            const auto added = handshakes->add_peer(options);
            std::cout << "peer " << (added ? std::to_string(*added) : added.error().message)
                      << '\n';
        } else if (what == "want") {
            handshakes->want(static_cast<PeerId>(std::stoul(first)), now);
        } else if (what == "receive") {
            const Outcome outcome = handshakes->receive(from_hex(second), from_hex(first), now);
            std::cout << "outcome " << describe(outcome) << '\n';
        } else if (what == "unknown") {
            handshakes->unknown_spi(from_hex(first), now);
        } else if (what == "received") {
            handshakes->received(static_cast<PeerId>(std::stoul(first)), std::stoul(second),
                                 {1, 1, false}, now);
        } else if (what == "pass") {
            now.steady += std::chrono::milliseconds(std::stol(first));
            now.wall += std::chrono::milliseconds(std::stol(first));
        } else {
            return 2;
        }
        while (const Action* const action = handshakes->next(now)) show(*action);
        std::cout << "." << std::endl;
    }
    return 0;
}
