// SPDX-License-Identifier: Apache-2.0
// The way of packets: numbers, the keystream that waits for them, and the cipher. No allocation, no
// look-up and no lock but the SA's.
#include <algorithm>
#include <bit>
#include <cstring>

#include "keystream/table.hpp"

namespace dael {

using keystream::kMaxGroup;
using keystream::SaSlot;
using keystream::Track;
using keystream::Uint128;
using keystream::Window;

namespace keystream {
namespace {

inline void store64(std::uint8_t* to, std::uint64_t value) noexcept {
    if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
    std::memcpy(to, &value, 8);
}
inline std::uint64_t load64(const std::uint8_t* from) noexcept {
    std::uint64_t value;
    std::memcpy(&value, from, 8);
    return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

// (salt, IV, 1): J0 of SP 800-38D 7.1 for RFC 4106's nonce of 12 bytes.
inline void set_first(Block& first, const SaOptions& options, std::uint64_t iv) noexcept {
    std::memcpy(first.data(), options.salt.data(), 4);
    store64(first.data() + 4, iv);
    constexpr std::uint8_t kOne[4]{0, 0, 0, 1};
    std::memcpy(first.data() + 12, kOne, 4);
}
inline void set_first(Block& first, Uint128 counter) noexcept {
    store64(first.data(), static_cast<std::uint64_t>(counter >> 64));
    store64(first.data() + 8, static_cast<std::uint64_t>(counter));
}

// Numbers that a peer's next packet may be away from the last one, to be taken for the next.
constexpr std::uint64_t kReach = std::uint64_t{1} << 20;

constexpr std::uint64_t needed(std::size_t size) noexcept {  // blocks of keystream
    return 1 + (std::uint64_t{size} + 15) / 16;
}

inline void aim_at(Track& track, const Window& window) noexcept {
    track.first = window.first;
    track.count = window.end - window.first;
    track.data = window.data;
    track.blocks = window.blocks;
}
// Sending: aims at the window with number n, if it is there; those before it are over.
[[gnu::noinline]] bool move_on(SaTable::State& table, Track& track, std::uint64_t n,
                               SaCounters& counters) noexcept {
    table.take_in(track, n, counters);
    while (track.over < track.held && track.windows[track.over]->end <= n) ++track.over;
    if (track.over == track.held || track.windows[track.over]->first > n) return false;
    aim_at(track, *track.windows[track.over]);
    return true;
}

// Receiving: at any window with number n.
[[gnu::noinline]] bool look_up(SaTable::State& table, Track& track, std::uint64_t n,
                               SaCounters& counters) noexcept {
    table.take_in(track, 0, counters);
    for (std::uint32_t i = 0; i < track.held; ++i)
        if (n - track.windows[i]->first < track.windows[i]->end - track.windows[i]->first) {
            aim_at(track, *track.windows[i]);
            return true;
        }
    return false;
}

// Not before the packets that were given their keystream are done.
void retire_over(SaTable::State& table, Track& track) noexcept {
    if (track.over == 0) return;
    // The one that is aimed at comes after them, or is over, too.
    const bool aimed = track.over < track.held && track.windows[track.over]->data == track.data;
    for (std::uint32_t i = 0; i < track.over; ++i) table.retire(*track.windows[i]);
    track.held -= track.over;
    for (std::uint32_t i = 0; i < track.held; ++i) track.windows[i] = track.windows[i + track.over];
    track.over = 0;
    if (!aimed) track.aim_at_none();
}

inline void ask(SaTable::State& table, Track& track) noexcept {
    if (track.next.load(std::memory_order_relaxed) <
            track.refill_at.load(std::memory_order_relaxed) ||
        track.asked.load(std::memory_order_acquire))
        return;
    track.asked.store(true, std::memory_order_relaxed);
    table.filler->ask(track);
}

// What is rare, or known without looking at each packet, costs packets nothing.
struct PacketCounts {
    std::uint64_t bytes = 0, needed = 0;  // needed: blocks of keystream
    std::uint64_t partial = 0, direct = 0;
    std::uint64_t missing = 0;  // blocks of `needed` that were not there
    void add_to(SaCounters& counters, std::uint64_t packets) const noexcept {
        counters.packets += packets;
        counters.bytes += bytes;
        counters.used += (needed - missing) * 16;
        counters.hits += packets - partial - direct;
        counters.partial += partial;
        counters.direct += direct;
    }
};

// While a packet is worked on, the keystream so many bytes behind its own is brought near: what a
// device wrote lies in the outer cache, farther away than a short packet takes.
constexpr std::uint64_t kAhead = 2048;

// Keystream for a packet that starts with number n, which is in the window that `track` aims at.
inline void point_to(core::CipherPacket& to, const Track& track, std::uint64_t n, bool stream,
                     std::uint64_t need, PacketCounts& counts) noexcept {
    const std::uint64_t bytes = std::uint64_t{16} * track.blocks;  // of a number
    const std::uint64_t at = (n - track.first) * bytes, end = track.count * bytes;
    to.keystream = track.data + at;
    to.blocks = static_cast<std::size_t>(stream ? (end - at) / 16 : track.blocks);
    to.soon = end - at > 2 * kAhead ? to.keystream + kAhead : nullptr;
    if (to.blocks < need) [[unlikely]] {
        ++counts.partial;
        counts.missing += need - to.blocks;
    }
}
inline void no_keystream(core::CipherPacket& to, std::uint64_t need,
                         PacketCounts& counts) noexcept {
    to.keystream = to.soon = nullptr;
    to.blocks = 0;
    ++counts.direct;
    counts.missing += need;
}

// Assigns sequence numbers and IVs: a track's, one after another. What others read of the track is
// written by tell(), and not for every packet.
class Taking {
  public:
    explicit Taking(Track& track) noexcept
        : track_(&track), next_(track.next.load(std::memory_order_relaxed)) {}

    Track& from(Track& track) noexcept {
        if (track_ != &track) {
            tell();
            track_ = &track;
            next_ = track.next.load(std::memory_order_relaxed);
        }
        return track;
    }
    std::uint64_t take(std::uint64_t numbers, std::uint64_t need) noexcept {
        needed_ += need;
        const std::uint64_t first = next_;
        next_ += numbers;
        return first;
    }
    void tell() noexcept {
        track_->next.store(next_, std::memory_order_relaxed);
        keystream::add(track_->needed, needed_);
        needed_ = 0;
    }

  private:
    Track* track_;
    std::uint64_t next_, needed_ = 0;
};

// Packets of the cipher, in memory that nobody has written to: to fill it with defaults first takes
// as long as some packets.
class Group {
  public:
    Group() noexcept {}
    core::CipherPacket& operator[](std::size_t i) noexcept { return packets_[i]; }
    std::span<const core::CipherPacket> first(std::size_t count) const noexcept {
        return {packets_, count};
    }

  private:
    union {
        core::CipherPacket packets_[kMaxGroup];
    };
};

// But for the keystream.
inline void fill_in(core::CipherPacket& to, const SaPacket& from,
                    const SaOptions& options) noexcept {
    to.in = from.in;
    to.out = from.out;
    to.size = from.size;
    to.aad = from.aad;
    to.aad_size = from.aad_size;
    to.tag = from.tag;
    to.tag_size = options.tag_size;
}

// What makes no sense of a packet; null: nothing.
inline const char* fault(const SaPacket& packet) noexcept {
    if (!packet.iv) return "its iv is null";
    if (!packet.tag) return "its tag is null";
    if (packet.size != 0 && (!packet.in || !packet.out)) return "in or out is null";
    if (packet.aad_size != 0 && !packet.aad) return "its AAD is null";
    if (packet.size > kMaxPacket) return "it is longer than 2^30 bytes";
    if (packet.aad_size > kMaxPacket) return "its AAD is longer than 2^30 bytes";
    return nullptr;
}

// Whether so many packets are within all that the SA's key is for.
Result<> may_send(const SaSlot& slot, std::uint64_t packets, Uint128 blocks, std::uint64_t bytes,
                  std::int64_t now) {
    const SaOptions& o = slot.options;
    if (packets > left(slot)) {
        if (slot.lease < o.limit)
            return Error{Code::limit,
                         "the SA has sent what its exported state left it; export it again, or go "
                         "on from that state"};
        return Error{Code::limit,
                     "the SA has sent all the packets that its key is for; rekey it, or add "
                     "another"};
    }
    if (o.layout == SaLayout::stream && blocks > blocks_left(slot))
        return Error{Code::limit,
                     "the SA has used all the counters that its key is for; rekey it, or add "
                     "another"};
    if (packets != 0 &&
        (passed(0, 0, now - slot.born_ms, o.lifetime) ||
         (o.limit_bytes != 0 && (bytes > o.limit_bytes || slot.key_bytes > o.limit_bytes - bytes))))
        return Error{Code::limit, "the lifetime of the SA's key is over; rekey it, or add another"};
    return {};
}

void wipe_outputs(std::span<const SaPacket> packets, std::size_t tag_size) noexcept {
    for (const SaPacket& packet : packets) {
        if (packet.size != 0) wipe(packet.out, packet.size);
        wipe(packet.tag, tag_size);
    }
}

}  // namespace
}  // namespace keystream

void SaTable::State::take_in(Track& track, std::uint64_t n, SaCounters& counters) noexcept {
    if (!track.inbox.load(std::memory_order_relaxed)) return;
    Window* fresh = track.inbox.exchange(nullptr, std::memory_order_acquire);
    while (fresh) {
        Window& window = *fresh;
        fresh = fresh->next;
        ++counters.windows;
        counters.made += window.bytes();
        track.slot->made.fetch_add(window.bytes(), std::memory_order_relaxed);
        if (window.end <= n || track.held == Track::kWindows) {
            counters.dropped += window.bytes();
            track.slot->dropped.fetch_add(window.bytes(), std::memory_order_relaxed);
            wipe(window.data, window.bytes());
            retire(window);
            continue;
        }
        std::uint32_t at = track.held++;
        for (; at > 0 && track.windows[at - 1]->first > window.first; --at)
            track.windows[at] = track.windows[at - 1];
        track.windows[at] = &window;
    }
}

Result<SaSealed> SaTable::State::seal(SaId sa, std::span<const SaPacket> packets,
                                      SaNumbered numbered) {
    using namespace keystream;
    DAEL_TRY(usable());
    SaSlot* const slot = find(sa);
    if (!slot) return no_such_sa();
    if (many.load(std::memory_order_relaxed) && !packets.empty())
        slot->fetch(needed(packets.front().size));
    const std::lock_guard lock(slot->mutex);
    if (slot->id != sa.value) return no_such_sa();
    const SaOptions& sa_options = slot->options;
    if (sa_options.direction != SaDirection::sending)
        return Error{Code::invalid_argument, "the SA is for receiving; open() is its call"};
    const bool stream = sa_options.layout == SaLayout::stream;
    Uint128 needed_in_all = 0;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        if (const char* wrong = fault(packets[i]))
            return Error{Code::invalid_argument,
                         "packet " + std::to_string(i) + ": " + std::string(wrong)};
        needed_in_all += needed(packets[i].size);
        bytes += packets[i].size;
    }
    const std::int64_t now = now_ms();
    DAEL_TRY(may_send(*slot, packets.size(), needed_in_all, bytes, now));
    SaSealed sealed{slot->number, false, slot->epoch_number};
    // Before anything is used up: it may be left by the way of an exception.
    if (numbered.call) numbered.call(numbered.context, sealed.first);
    slot->number += packets.size();
    slot->key_bytes += bytes;
    if (!packets.empty()) slot->packet_ms = now;
    sealed.rekey_soon = soft_passed(*slot, now);

    SaCounters& counters = slot->counters;
    const bool by_size = slot->by_size;
    __builtin_prefetch(slot->cipher.get());
    Group group;
    unsigned touched = 0;
    for (std::size_t done = 0; done < packets.size(); done += kMaxGroup) {
        const std::size_t count = std::min(packets.size() - done, kMaxGroup);
        PacketCounts counts;
        Taking taking(slot->tracks[0]);
        for (std::size_t i = 0; i < count; ++i) {
            const SaPacket& from = packets[done + i];
            core::CipherPacket& to = group[i];
            fill_in(to, from, sa_options);
            const std::uint64_t need = needed(from.size);
            const std::size_t which = by_size ? class_of(need) : 0;
            Track& track = taking.from(slot->tracks[which]);
            touched |= 1u << which;
            track.recent.add(static_cast<std::uint32_t>(need));
            const std::uint64_t n = taking.take(stream ? need : 1, need);
            if (stream) {
                set_first(to.first, slot->base + n);
                std::memcpy(from.iv, to.first.data() + 4, 12);
            } else {
                const std::uint64_t iv = std::uint64_t{which} << kClassShift | n;
                store64(from.iv, iv);
                set_first(to.first, sa_options, iv);
            }
            counts.bytes += from.size;
            counts.needed += need;
            if (n - track.first < track.count ||
                (track.may_have() && (taking.tell(), move_on(*this, track, n, counters))))
                point_to(to, track, n, stream, need, counts);
            else
                no_keystream(to, need, counts);
        }
        taking.tell();
        counts.add_to(counters, count);
        const Code code = slot->cipher->seal(group.first(count));
        for (unsigned some = touched; some != 0; some &= some - 1) {
            Track& track = slot->tracks[static_cast<std::size_t>(std::countr_zero(some))];
            const std::uint64_t n = track.next.load(std::memory_order_relaxed);
            while (track.over < track.held && track.windows[track.over]->end <= n) ++track.over;
            retire_over(*this, track);
        }
        if (code != Code::ok) {
            wipe_outputs(packets, sa_options.tag_size);
            // An IV that counts is the packet's number, whatever becomes of these.
            if (!by_size && !stream)
                slot->tracks[0].next.store(slot->number, std::memory_order_relaxed);
            return Error{code, "libcrypto failed; nothing was sealed, and the numbers are gone"};
        }
    }
    for (; touched != 0; touched &= touched - 1)
        ask(*this, slot->tracks[static_cast<std::size_t>(std::countr_zero(touched))]);
    return sealed;
}

Result<> SaTable::State::open(SaId sa, std::span<const SaPacket> packets, std::span<Code> codes) {
    using namespace keystream;
    if (codes.size() != packets.size())
        return Error{Code::invalid_argument, std::to_string(codes.size()) + " codes for " +
                                                 std::to_string(packets.size()) +
                                                 " packets; there must be as many"};
    DAEL_TRY(usable());
    SaSlot* const slot = find(sa);
    if (!slot) return no_such_sa();
    if (many.load(std::memory_order_relaxed) && !packets.empty())
        slot->fetch(needed(packets.front().size));
    const std::lock_guard lock(slot->mutex);
    if (slot->id != sa.value) return no_such_sa();
    const SaOptions& sa_options = slot->options;
    if (sa_options.direction != SaDirection::receiving)
        return Error{Code::invalid_argument, "the SA is for sending; seal() is its call"};
    const std::int64_t now = now_ms();
    if (!packets.empty()) {
        if (hard_passed(*slot, now))
            return Error{Code::limit,
                         "the lifetime of the SA's key is over, or too many packets failed; rekey "
                         "it, or add another"};
        slot->packet_ms = now;
    }
    const bool stream = sa_options.layout == SaLayout::stream;

    SaCounters& counters = slot->counters;
    std::uint64_t strays = 0;
    struct From {
        std::size_t packet;
        Track* track;  // null: its IV is out of any window's reach
        std::uint64_t n, after;
    };
    Group group;
    From origin[kMaxGroup];
    std::array<Code, kMaxGroup> verdicts;
    unsigned touched = 0;
    for (std::size_t next = 0; next < packets.size();) {
        std::size_t count = 0;
        PacketCounts counts;
        for (; next < packets.size() && count < kMaxGroup; ++next) {
            const SaPacket& from = packets[next];
            if (fault(from)) {
                codes[next] = Code::invalid_argument;
                continue;
            }
            core::CipherPacket& to = group[count];
            fill_in(to, from, sa_options);
            const std::uint64_t need = needed(from.size);
            From& its = origin[count++];
            its = {next, nullptr, 0, 0};
            if (stream) {
                std::uint8_t bytes[16];
                std::memcpy(bytes, sa_options.salt.data(), 4);
                std::memcpy(bytes + 4, from.iv, 12);
                const Uint128 counter = Uint128{load64(bytes)} << 64 | load64(bytes + 8);
                std::memcpy(to.first.data(), bytes, 16);
                const Uint128 n = counter - slot->base;
                if (n < kMaxPosition) {
                    its.track = &slot->tracks[0];
                    its.n = static_cast<std::uint64_t>(n);
                    its.after = its.n + need;
                }
            } else {
                const std::uint64_t iv = load64(from.iv);
                set_first(to.first, sa_options, iv);
                const auto which = static_cast<std::size_t>(iv >> kClassShift);
                its.track = &slot->tracks[which];
                its.n = iv & (kClassNumbers - 1);
                its.after = its.n + 1;
                touched |= 1u << which;
            }
            counts.bytes += from.size;
            counts.needed += need;
            if (its.track &&
                (its.n - its.track->first < its.track->count ||
                 (its.track->may_have() && look_up(*this, *its.track, its.n, counters)))) {
                point_to(to, *its.track, its.n, stream, need, counts);
                counters.overlapped += its.n < its.track->next.load(std::memory_order_relaxed);
            } else {
                no_keystream(to, need, counts);
            }
        }
        counts.add_to(counters, count);
        if (stream) touched |= 1;
        slot->cipher->open(group.first(count), {verdicts.data(), count});
        for (std::size_t i = 0; i < count; ++i) {
            const From& its = origin[i];
            codes[its.packet] = verdicts[i];
            if (verdicts[i] == Code::ok) {
                slot->key_bytes += group[i].size;
            } else {
                ++counters.failed;
                ++slot->key_failed;
            }
            if (verdicts[i] != Code::ok || !its.track) continue;  // what anybody may have sent
            const std::uint64_t need = needed(group[i].size);
            its.track->recent.add(static_cast<std::uint32_t>(need));
            keystream::add(its.track->needed, need);
            // A peer counts up, with gaps and out of order as may be; or it does not.
            const std::uint64_t reached = its.track->next.load(std::memory_order_relaxed);
            if (its.n - reached + kReach >= 2 * kReach) ++strays;
            if (its.after > reached) its.track->next.store(its.after, std::memory_order_relaxed);
        }
    }
    keystream::add(slot->seen, packets.size());
    keystream::add(slot->seen_strays, strays);
    for (; touched != 0; touched &= touched - 1) {
        Track& track = slot->tracks[static_cast<std::size_t>(std::countr_zero(touched))];
        const std::uint64_t reached = track.next.load(std::memory_order_relaxed);
        const std::uint64_t keep = track.keep.load(std::memory_order_relaxed);
        while (track.over < track.held && track.windows[track.over]->end + keep <= reached)
            ++track.over;
        retire_over(*this, track);
        if (reached != first_number(sa_options.layout)) ask(*this, track);
    }
    return {};
}

}  // namespace dael
