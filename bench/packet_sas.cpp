// SPDX-License-Identifier: Apache-2.0
// Packets of many SAs that are opened on one core, as they come from a network: in turns or in
// bursts, out of order, with losses. They come from memory, not from a cache: so many are made
// before the clock starts that none is opened twice.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

#include "bench/packets.hpp"

#ifdef DAEL_WITH_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

namespace dael::bench {
namespace {

using measure::Heat;
using measure::HostBuffer;

constexpr std::size_t kSaPacket = 1024, kBesidePacket = 8 + 8 + 16;  // AAD, IV, tag
constexpr std::size_t kInBurst = 32;  // packets of one SA that come together, in "bursts"
constexpr std::size_t kMoves = 64;    // places that a packet may come late, out of order

// Packets of one SA that a call opens.
struct Group {
    std::size_t sa = 0, first = 0, count = 0;
};

struct Arrivals {
    HostBuffer source, wire;  // plaintext; what comes, and is opened in place
    std::vector<std::uint8_t> beside;
    std::vector<SaPacket> sending, coming;  // in the order in which they are sent, and come
    std::vector<Group> sent, came;
    SaTable sender;
    std::vector<SaId> ids;
    std::vector<Code> codes;

    // A network's worth of new packets.
    Result<> send() {
        const std::span<const SaPacket> all(sending);
        for (const Group& group : sent)
            DAEL_TRY(sender.seal(ids[group.sa], all.subspan(group.first, group.count)));
        return {};
    }
};

std::uint32_t races = 0;  // a key sends once in a process

std::vector<std::uint8_t> key_of(const Point& point, std::size_t sa) {
    auto key = packet_key(point.number("bits"));
    for (std::size_t i = 0; i < 8; ++i) key[i] ^= static_cast<std::uint8_t>(sa >> 8 * i);
    for (std::size_t i = 0; i < 4; ++i) key[8 + i] ^= static_cast<std::uint8_t>(races >> 8 * i);
    return key;
}

Result<SaId> add_sa(SaTable& table, const Point& point, std::size_t sa, SaDirection direction) {
    DAEL_LET(key, Key::import(key_of(point, sa)));
    return table.add(key, {.direction = direction, .salt = kSalt});
}

Result<std::shared_ptr<Arrivals>> arrange(const KeystreamSource& direct, const Point& point,
                                          std::size_t count) {
    DAEL_LET(sender, open_table(direct, 0));
    const auto made =
        std::make_shared<Arrivals>(Arrivals{{}, {}, {}, {}, {}, {}, {}, std::move(sender), {}, {}});
    Arrivals& a = *made;
    for (HostBuffer* buffer : {&a.source, &a.wire}) {
        DAEL_LET(memory, HostBuffer::allocate(count * kSaPacket));
        *buffer = std::move(memory);
    }
    measure::Team alone(1);
    measure::fill_random(alone, a.source.data(), a.source.size(), 9);
    a.beside.resize(count * kBesidePacket);
    const auto sas = static_cast<std::size_t>(point.number("sas"));
    for (std::size_t i = 0; i < sas; ++i) {
        DAEL_LET(id, add_sa(a.sender, point, i, SaDirection::sending));
        a.ids.push_back(id);
    }
    const std::string& arrival = point.text("arrival");
    const std::size_t together = arrival == "bursts" ? kInBurst : 1;
    std::vector<std::size_t> sa_of(count), order(count);
    for (std::size_t i = 0; i < count; ++i) {
        sa_of[i] = i / together % sas;
        order[i] = i;
    }
    std::mt19937_64 random(5);
    if (arrival == "reordered") {
        std::vector<std::uint64_t> when(count);
        for (std::size_t i = 0; i < count; ++i) when[i] = i + random() % kMoves;
        std::ranges::stable_sort(order, {}, [&](std::size_t i) { return when[i]; });
    }
    if (arrival == "losses") std::erase_if(order, [&](std::size_t) { return random() % 20 == 0; });
    // Memory holds them as they come, one behind another, as a network card writes them: those that
    // are lost lie behind the others.
    std::vector<std::size_t> place(count, count);
    std::size_t next = 0;
    for (const std::size_t i : order) place[i] = next++;
    for (std::size_t& where : place)
        if (where == count) where = next++;
    const auto packet = [&](std::size_t i, bool sends) {
        std::uint8_t* const beside = a.beside.data() + place[i] * kBesidePacket;
        std::uint8_t* const wire = a.wire.data() + place[i] * kSaPacket;
        return SaPacket{.in = sends ? a.source.data() + place[i] * kSaPacket : wire,
                        .out = wire,
                        .size = kSaPacket,
                        .aad = beside,
                        .aad_size = 8,
                        .iv = beside + 8,
                        .tag = beside + 16};
    };
    // What one poll of a queue yields is sorted by SA, as a program does that looks up each SA
    // once.
    const auto group = [&](const std::vector<std::size_t>& which, std::vector<SaPacket>& packets,
                           std::vector<Group>& groups, bool sends) {
        for (std::size_t at = 0; at < which.size(); at += kBurst) {
            std::vector<std::size_t> poll(
                which.begin() + static_cast<std::ptrdiff_t>(at),
                which.begin() + static_cast<std::ptrdiff_t>(std::min(which.size(), at + kBurst)));
            std::ranges::stable_sort(poll, {}, [&](std::size_t i) { return sa_of[i]; });
            for (std::size_t k = 0; k < poll.size(); ++k) {
                if (k == 0 || sa_of[poll[k]] != sa_of[poll[k - 1]])
                    groups.push_back({sa_of[poll[k]], packets.size(), 0});
                ++groups.back().count;
                packets.push_back(packet(poll[k], sends));
            }
        }
    };
    std::vector<std::size_t> sending_order(count);
    for (std::size_t i = 0; i < count; ++i) sending_order[i] = i;
    group(sending_order, a.sending, a.sent, true);
    group(order, a.coming, a.came, false);
    a.codes.resize(kBurst);
    return made;
}

// Opens one group; errors where a packet does not open.
using Open = std::function<Result<>(Arrivals&, const Group&)>;
struct Opener {
    std::string name;
    Open open;
    std::shared_ptr<SaTable> table = nullptr;
};

Result<Opener> table_opener(const KeystreamSource& source, const Point& point) {
    struct State {
        KeystreamSource source;
        std::vector<SaId> ids;
    };
    DAEL_LET(opened, open_table(source, 0));
    const auto table = std::make_shared<SaTable>(std::move(opened));
    const auto state = std::make_shared<State>(State{source, {}});
    for (std::size_t i = 0; i < point.number("sas"); ++i) {
        DAEL_LET(id, add_sa(*table, point, i, SaDirection::receiving));
        state->ids.push_back(id);
    }
    return Opener{source.name,
                  [table, state](Arrivals& a, const Group& group) -> Result<> {
                      const std::span<const SaPacket> all(a.coming);
                      const std::span<Code> codes(a.codes.data(), group.count);
                      DAEL_TRY(table->open(state->ids[group.sa],
                                           all.subspan(group.first, group.count), codes));
                      for (const Code code : codes)
                          if (code != Code::ok) return Error{code, "a packet did not open"};
                      return {};
                  },
                  table};
}

#ifdef DAEL_WITH_IPSEC_MB
Result<Opener> ipsec_mb_opener(const Point& point) {
    struct Imb {
        std::shared_ptr<IMB_MGR> manager{alloc_mb_mgr(0), free_mb_mgr};
        std::vector<gcm_key_data> keys;
        gcm_context_data context;
    };
    const auto imb = std::make_shared<Imb>();
    IMB_MGR& m = *imb->manager;
    init_mb_mgr_auto(&m, nullptr);
    const auto bits = point.number("bits");
    imb->keys.resize(point.number("sas"));
    for (std::size_t i = 0; i < imb->keys.size(); ++i)
        (bits == 128   ? m.gcm128_pre
         : bits == 192 ? m.gcm192_pre
                       : m.gcm256_pre)(key_of(point, i).data(), &imb->keys[i]);
    const auto open = bits == 128 ? m.gcm128_dec : bits == 192 ? m.gcm192_dec : m.gcm256_dec;
    return Opener{"libipsec-mb", [imb, open](Arrivals& a, const Group& group) -> Result<> {
                      for (std::size_t i = group.first; i < group.first + group.count; ++i) {
                          const SaPacket& packet = a.coming[i];
                          std::array<std::uint8_t, 12> nonce;
                          std::copy(kSalt.begin(), kSalt.end(), nonce.begin());
                          std::memcpy(nonce.data() + 4, packet.iv, 8);
                          std::array<std::uint8_t, 16> tag;
                          open(&imb->keys[group.sa], &imb->context, packet.out, packet.in,
                               packet.size, nonce.data(), packet.aad, packet.aad_size, tag.data(),
                               tag.size());
                          unsigned differ = 0;
                          for (std::size_t k = 0; k < tag.size(); ++k)
                              differ |= static_cast<unsigned>(tag[k] ^ packet.tag[k]);
                          if (differ != 0)
                              return Error{Code::authentication, "a packet did not open"};
                      }
                      return {};
                  }};
}
#else
Result<Opener> ipsec_mb_opener(const Point&) {
    return Error{Code::unsupported, "this build has no libipsec-mb"};
}
#endif

Result<Heat> race_sas(const PacketSuite& shared, const Point& point) {
    const std::size_t count = shared.quick ? 2048 : 64 << 10;
    ++races;
    DAEL_LET(arrivals, arrange(shared.sources.front(), point, count));
    Heat heat;
    std::vector<std::size_t> against;
    const auto add = [&](Result<Opener> opened, bool yardstick) -> Result<> {
        if (opened.code() == Code::unsupported) return {};
        if (!opened) return std::move(opened).error();
        const auto opener = std::make_shared<const Opener>(std::move(*opened));
        const auto open_all = [=]() -> Result<> {
            for (const Group& group : arrivals->came) DAEL_TRY(opener->open(*arrivals, group));
            return {};
        };
        const auto before = std::make_shared<SaCounters>();
        Point row{{"backend", opener->name}};
        row.set(point)
            .set("messages", std::uint64_t{arrivals->coming.size()})
            .set("threads", std::uint64_t{1});
        const auto entry = heat.enter(
            opener->name,
            [=]() -> Result<double> {
                const OnCore pinned(0);
                DAEL_TRY(arrivals->send());
                if (opener->table) *before = opener->table->counters();
                const auto start = std::chrono::steady_clock::now();
                DAEL_TRY(open_all());
                return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
                    .count();
            },
            [=]() -> Result<> {
                DAEL_TRY(arrivals->send());
                DAEL_TRY(open_all());
                for (const SaPacket& packet : arrivals->coming) {
                    const auto offset = packet.out - arrivals->wire.data();
                    if (std::memcmp(packet.out, arrivals->source.data() + offset, kSaPacket) != 0)
                        return Error{Code::internal,
                                     opener->name + ": what was opened is not what was sent"};
                }
                return {};
            },
            row, static_cast<double>(arrivals->coming.size() * kSaPacket), against);
        heat.describe(entry, [=](double seconds) {
            const double one = seconds / static_cast<double>(arrivals->coming.size());
            auto all = per_packet(one);
            if (opener->table) {
                const SaCounters counters = between(*before, opener->table->counters());
                for (auto& figure : served({&counters, 1}, one)) all.push_back(std::move(figure));
            }
            return all;
        });
        if (yardstick) against.push_back(entry);
        return {};
    };
    DAEL_TRY(add(ipsec_mb_opener(point), true));
    for (const KeystreamSource& source : shared.sources)
        DAEL_TRY(add(table_opener(source, point), !source.filler));
    return heat;
}

}  // namespace

Benchmark packets_sas(std::shared_ptr<PacketSuite> shared) {
    const auto sas = shared->quick ? std::vector<int>{10} : std::vector<int>{1, 10, 100, 1000};
    const auto arrivals =
        shared->quick ? std::vector<const char*>{"reordered"}
                      : std::vector<const char*>{"in order", "reordered", "losses", "bursts"};
    return {"arrivals",
            {at_place("arrivals"), measure::axis("bits", std::vector<int>{128}),
             measure::Axis{Mix::of(kSaPacket).point()}, measure::axis("sas", sas),
             measure::axis("arrival", arrivals)},
            {},
            [shared](const Point& point) { return race_sas(*shared, point); }};
}

}  // namespace dael::bench
