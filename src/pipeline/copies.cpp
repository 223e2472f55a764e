// SPDX-License-Identifier: Apache-2.0
#include "pipeline/copies.hpp"

#include <algorithm>

#include "modes/traits.hpp"

namespace dael::pipeline {
namespace {

// Below this, one copy to the device costs more to start than to pack with others by the CPU.
constexpr std::size_t kWorthDirect = std::size_t{128} << 10;

// What one thread copies at a time to or from a staging buffer.
constexpr std::size_t kCopy = std::size_t{512} << 10;

// So many launches, one for each message, are sooner made than a chunk and its batch.
constexpr std::size_t kMaxLaunches = 4;

bool aligned(const Message& m) noexcept {
    return ((reinterpret_cast<std::uintptr_t>(m.in) | reinterpret_cast<std::uintptr_t>(m.out)) &
            (kBlockSize - 1)) == 0 &&
           m.skip == 0;
}

}  // namespace

Direct direct_copies(core::Device& device, std::span<const Message> messages) {
    // Messages that follow one another in memory count as one: the driver takes about a microsecond
    // to answer.
    const auto look = [&](auto pointer, bool& direct, bool& rows) {
        std::uint64_t bytes = 0, copies = 0;
        const auto follows = [&](std::size_t i) {
            return i != 0 && messages[i].*pointer && messages[i - 1].*pointer &&
                   messages[i - 1].*pointer + messages[i - 1].size == messages[i].*pointer;
        };
        for (std::size_t i = 0; i < messages.size(); ++i) {
            bytes += messages[i].size;
            copies += !follows(i);
        }
        if (bytes < copies * kWorthDirect) return;
        bool whole = true;
        for (std::size_t i = 0; i < messages.size();) {
            const auto* begin = messages[i].*pointer;
            if (!begin && messages[i].size != 0) return;  // keystream
            std::uint64_t size = messages[i].size;
            for (++i; i < messages.size() && follows(i); ++i) size += messages[i].size;
            const auto length = static_cast<std::size_t>(size);
            if (size == 0 || device.takes_in_one(begin, length)) continue;
            if (!device.memory().is_pinned(begin, length)) return;
            whole = false;
        }
        direct = true;
        rows = whole;
    };
    Direct direct;
    look(&Message::in, direct.in, direct.rows_in);
    look(&Message::out, direct.out, direct.rows_out);
    return direct;
}

bool in_place(std::span<const Message> messages) noexcept {
    return std::ranges::any_of(messages,
                               [](const Message& m) { return m.size != 0 && m.in == m.out; });
}

bool in_reach(std::size_t reach, const Cipher& cipher, std::uint64_t bytes,
              std::uint64_t messages) noexcept {
    // CBC and CFB decryption read every block twice.
    const bool once =
        modes::can_cut(cipher) && cipher.mode != Mode::cbc && cipher.mode != Mode::cfb;
    return once && bytes != 0 && bytes <= reach && messages <= kMaxLaunches;
}

bool in_reach(core::Device& device, const Cipher& cipher,
              std::span<const Message> messages) noexcept {
    std::uint64_t bytes = 0;
    for (const Message& m : messages) {
        if (!aligned(m) || m.size > device.reach() - bytes) return false;
        bytes += m.size;
    }
    return in_reach(device.reach(), cipher, bytes, messages.size()) &&
           std::ranges::all_of(messages, [&](const Message& m) {
               const auto locked = [&](const std::uint8_t* at) {
                   return device.memory().is_pinned(at, static_cast<std::size_t>(m.size));
               };
               return m.size == 0 || ((!m.in || locked(m.in)) && (m.in == m.out || locked(m.out)));
           });
}

void append(std::vector<HostCopy>& copies, void* to, const void* from, std::size_t size) {
    for (std::size_t done = 0; done < size; done += kCopy)
        copies.push_back({static_cast<std::uint8_t*>(to) + done,
                          static_cast<const std::uint8_t*>(from) + done,
                          std::min(kCopy, size - done)});
}

std::vector<std::size_t> share_copies(const std::vector<HostCopy>& copies) {
    std::vector<std::size_t> ends;
    std::size_t collected = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        collected += copies[i].size;
        if (collected < kCopy && i + 1 < copies.size()) continue;
        ends.push_back(i + 1);
        collected = 0;
    }
    return ends;
}

}  // namespace dael::pipeline
