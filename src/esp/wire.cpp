// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <daelstrom/esp.hpp>

#include "esp/format.hpp"

namespace dael::esp {

std::size_t packet_size(const Options& options, std::size_t payload, std::size_t pad_to) noexcept {
    return headers(options) + static_cast<std::size_t>(encrypted_size(payload, pad_to)) +
           options.icv_size;
}

std::size_t most_payload(const Options& options, std::size_t room) noexcept {
    const std::size_t around = headers(options) + options.icv_size;
    constexpr std::size_t kWord = 4, kLeast = 2;  // padding's length and the next header
    if (room < around + kWord) return 0;
    return std::min((room - around) / kWord * kWord - kLeast, kMaxPayload);
}

namespace {

// The sum of 16-bit words, the last of which may lack its second byte (RFC 1071).
std::uint64_t sum_of(std::span<const std::uint8_t> bytes) noexcept {
    std::uint64_t sum = 0;
    std::size_t i = 0;
    for (; i + 4 <= bytes.size(); i += 4) sum += get32(&bytes[i]);
    if (i + 2 <= bytes.size()) {
        sum += get16(&bytes[i]);
        i += 2;
    }
    if (i < bytes.size()) sum += std::uint64_t{bytes[i]} << 8;
    return sum;
}

}  // namespace

Result<> udp6_checksum(std::span<std::uint8_t> datagram, std::span<const std::uint8_t, 16> source,
                       std::span<const std::uint8_t, 16> destination) {
    constexpr std::uint64_t kUdp = 17;
    if (datagram.size() < kUdpHeader || datagram.size() > 65535 ||
        get16(&datagram[4]) != datagram.size())
        return Error{Code::invalid_argument,
                     "ESP: a datagram of " + std::to_string(datagram.size()) +
                         " bytes; give what encapsulate() made with UDP ports, from its UDP header "
                         "to its end"};
    put16(&datagram[6], 0);
    std::uint64_t sum =
        sum_of(source) + sum_of(destination) + datagram.size() + kUdp + sum_of(datagram);
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    const auto checksum = static_cast<std::uint16_t>(~sum);
    put16(&datagram[6], checksum == 0 ? 0xffff : checksum);  // 0 says that there is none
    return {};
}

}  // namespace dael::esp
