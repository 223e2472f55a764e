// SPDX-License-Identifier: Apache-2.0
#include "vpn/status.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "io/json_text.hpp"
#include "io/text.hpp"

namespace dael::vpn {
namespace {

struct Figure {
    std::string name;
    std::uint64_t value = 0;
};
using Figures = std::vector<Figure>;

std::string with_underscores(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) c = '_';
    return out;
}

// Of all loops together.
Figures packets_of(const Tunnel& tunnel) {
    static constexpr std::pair<const char*, Count LoopCounters::*> kOurs[] = {
        {"tun_reads", &LoopCounters::tun_reads},   {"segments", &LoopCounters::segments},
        {"datagrams", &LoopCounters::datagrams},   {"handshakes", &LoopCounters::handshakes},
        {"keepalives", &LoopCounters::keepalives}, {"joined", &LoopCounters::joined},
        {"tun_writes", &LoopCounters::tun_writes}, {"clamped", &LoopCounters::clamped},
    };
    Figures figures;
    for (const auto& [name, counter] : kOurs) {
        std::uint64_t sum = 0;
        for (const auto& loop : tunnel.loops) sum += (loop->counters().*counter).get();
        figures.push_back({name, sum});
    }
    path::Udp::Counters udp;
    for (const auto& loop : tunnel.loops) {
        const path::Udp::Counters one = loop->udp().counters();
        udp.sent += one.sent;
        udp.send_calls += one.send_calls;
        udp.receive_calls += one.receive_calls;
        udp.received += one.received;
    }
    figures.push_back({"udp_sent", udp.sent});
    figures.push_back({"udp_send_calls", udp.send_calls});
    figures.push_back({"udp_received", udp.received});
    figures.push_back({"udp_receive_calls", udp.receive_calls});
    return figures;
}

Figures drops_of(const Tunnel& tunnel) {
    static constexpr std::pair<const char*, Count LoopCounters::*> kOurs[] = {
        {"not_ip", &LoopCounters::not_ip},
        {"bad_vnet", &LoopCounters::bad_vnet},
        {"no_peer", &LoopCounters::no_peer},
        {"between_peers", &LoopCounters::between_peers},
        {"too_big", &LoopCounters::too_big},
        {"not_sealed", &LoopCounters::not_sealed},
        {"unknown_spi", &LoopCounters::unknown_spi},
        {"refused", &LoopCounters::refused},
        {"not_inner", &LoopCounters::not_inner},
        {"bad_source", &LoopCounters::bad_source},
        {"bad_ecn", &LoopCounters::bad_ecn},
        {"through_itself", &LoopCounters::through_itself},
        {"bad_checksums", &LoopCounters::bad_checksums},
        {"tun_lost", &LoopCounters::tun_lost},
    };
    Figures figures;
    for (const auto& [name, counter] : kOurs) {
        std::uint64_t sum = 0;
        for (const auto& loop : tunnel.loops) sum += (loop->counters().*counter).get();
        figures.push_back({name, sum});
    }
    std::uint64_t lost = 0, cut_short = 0, kernel = 0, no_session = 0;
    for (const auto& loop : tunnel.loops) {
        const path::Udp::Counters one = loop->udp().counters();
        lost += one.lost;
        cut_short += one.cut_short;
        kernel += loop->udp().dropped();
    }
    for (PeerId i = 0; i < tunnel.sessions.peers(); ++i)
        no_session += tunnel.sessions.peer(i).lost.get();
    figures.push_back({"udp_lost", lost});
    figures.push_back({"cut_short", cut_short});
    figures.push_back({"by_kernel", kernel});
    figures.push_back({"no_session", no_session});
    return figures;
}

Figures verdicts_of(const Tunnel& tunnel) {
    static constexpr const char* kNames[esp::kVerdicts] = {
        "ok",       "truncated", "malformed",   "unknown_spi", "too_old",
        "replayed", "bad_icv",   "bad_padding", "bad_inner",   "dummy",
        "ike",      "keepalive", "exhausted",   "no_room",     "fault"};
    const esp::Counters counters = tunnel.sessions.opened();
    Figures figures;
    for (std::size_t i = 0; i < esp::kVerdicts; ++i)
        figures.push_back({kNames[i], counters.packets[i]});
    return figures;
}

Figures handshakes_of(const Tunnel& tunnel) {
    const auto counts = tunnel.sessions.outcomes();
    Figures figures;
    for (std::size_t i = 0; i < kOutcomes; ++i)
        figures.push_back({with_underscores(describe(static_cast<Outcome>(i))), counts[i]});
    return figures;
}

std::uint64_t seconds(Time from, Time to) {
    return to > from ? static_cast<std::uint64_t>((to - from).count()) / 1'000'000'000 : 0;
}

std::string name_of(const PeerConfig& peer) {
    return peer.name.empty() ? to_text(peer.public_key) : peer.name;
}

app::JsonText json_of(const Figures& figures) {
    app::JsonText json = app::JsonText::object();
    for (const Figure& figure : figures) json.add(figure.name, figure.value);
    return json;
}

// Those that are not zero, on a line.
std::string line_of(const Figures& figures) {
    std::string line;
    for (const Figure& figure : figures)
        if (figure.value != 0)
            line += (line.empty() ? "" : ", ") + figure.name + " " + std::to_string(figure.value);
    return line.empty() ? "none" : line;
}

bool all_have(const Tunnel& tunnel, bool (path::Udp::*what)() const noexcept) {
    return std::ranges::all_of(tunnel.loops,
                               [what](const auto& loop) { return (loop->udp().*what)(); });
}

std::string offloads_line(const Tunnel& tunnel) {
    const path::Offloads& tun = tunnel.tun.offloads();
    std::string line;
    const auto add = [&line](bool is, const char* name) {
        line += std::string(line.empty() ? "" : ", ") + (is ? "" : "no ") + name;
    };
    add(tun.vnet_header && (tun.tcp4 || tun.tcp6), "TCP super-packets");
    add(tun.vnet_header && tun.udp, "UDP super-packets");
    add(all_have(tunnel, &path::Udp::gso), "UDP GSO");
    add(all_have(tunnel, &path::Udp::gro), "UDP GRO");
    return line;
}

std::string keystream_line(const Tunnel& tunnel) {
    if (tunnel.config.keystream.empty()) return "made when packets come";
    const SaCounters table = tunnel.sessions.table();
    const SaFilling filling = tunnel.sessions.filling();
    return "made ahead of time by " + tunnel.config.keystream + ", " +
           app::format_size(double(table.ready)) + " ready; it was there for " +
           std::to_string(table.hits) + " packets, in part for " + std::to_string(table.partial) +
           ", for " + std::to_string(table.direct) + " not" +
           (filling.works ? "" : "; rests after a fault: " + app::on_one_line(filling.fault));
}

}  // namespace

std::string status_text(Tunnel& tunnel) {
    const Time at = now().steady;
    std::string out = "interface " + tunnel.tun.name() +
                      "\n  public key: " + to_text(tunnel.own_key) +
                      "\n  port: " + std::to_string(tunnel.loops[0]->udp().port()) +
                      "\n  mtu: " + std::to_string(tunnel.config.mtu) +
                      "\n  up for: " + app::format_clock(double(seconds(tunnel.since, at))) +
                      "\n  of the kernel: " + offloads_line(tunnel) +
                      "\n  keystream: " + keystream_line(tunnel) + "\n";
    if (tunnel.aside.mark() != 0) out += "  mark: " + std::to_string(tunnel.aside.mark()) + "\n";
    if (!tunnel.aside.empty()) {
        out += "  routes in a table of their own: ";
        for (const path::Prefix& network : tunnel.aside.networks())
            out += (&network == tunnel.aside.networks().data() ? "" : ", ") + network.text();
        out += "\n";
    }
    if (!tunnel.config.key_log.empty())
        out += "  SESSION KEYS ARE WRITTEN to " + app::in_quotes(tunnel.config.key_log) + "\n";
    for (const std::string& fallback : tunnel.fallbacks) out += "  without: " + fallback + "\n";
    out += "  packets: " + line_of(packets_of(tunnel)) + "\n  drops: " + line_of(drops_of(tunnel)) +
           "\n  handshakes: " + line_of(handshakes_of(tunnel)) + "\n";
    if (tunnel.sessions.under_load()) out += "  under load: cookies are asked for\n";
    for (PeerId i = 0; i < tunnel.sessions.peers(); ++i) {
        const PeerConfig& config = tunnel.config.peers[i];
        const PeerEnd& peer = tunnel.sessions.peer(i);
        const auto report = tunnel.sessions.report(i);
        out += "\npeer " + app::on_one_line(name_of(config)) + "\n";
        if (!config.name.empty()) out += "  public key: " + to_text(config.public_key) + "\n";
        out += "  endpoint: " +
               (report.route.remote ? report.route.remote.text() : std::string("not known yet")) +
               "\n  allowed: ";
        for (const path::Prefix& prefix : config.allowed)
            out += (&prefix == config.allowed.data() ? "" : ", ") + prefix.text();
        if (config.allowed.empty()) out += "nothing";
        out += "\n  latest handshake: " +
               (report.handshakes.last_handshake == kNever
                    ? std::string("none")
                    : app::format_clock(double(seconds(report.handshakes.last_handshake, at))) +
                          " ago");
        out += "\n  sessions: " + std::to_string(report.handshakes.sessions) +
               (report.handshakes.in_use == kNoSession ? ", none in use" : "") +
               "\n  received: " + app::format_size(double(peer.received_bytes.get())) + " in " +
               std::to_string(peer.received_packets.get()) +
               " packets\n  sent: " + app::format_size(double(peer.sent_bytes.get())) + " in " +
               std::to_string(peer.sent_packets.get()) + " packets\n";
        if (peer.bad_source.get() != 0)
            out += "  refused, from addresses that it may not have: " +
                   std::to_string(peer.bad_source.get()) + "\n";
    }
    return out;
}

std::string status_json(Tunnel& tunnel) {
    const Time at = now().steady;
    app::JsonText json = app::JsonText::object();
    json.add("interface", tunnel.tun.name())
        .add("public_key", to_text(tunnel.own_key))
        .add("port", tunnel.loops[0]->udp().port())
        .add("mtu", tunnel.config.mtu)
        .add("up_seconds", seconds(tunnel.since, at))
        .add("queues", tunnel.loops.size())
        .add("under_load", tunnel.sessions.under_load())
        .add("mark", tunnel.aside.mark());
    app::JsonText aside = app::JsonText::array();
    for (const path::Prefix& network : tunnel.aside.networks()) aside.push(network.text());
    json.add("routes_aside", aside);
    const path::Offloads& tun = tunnel.tun.offloads();
    json.add("offloads", app::JsonText::object()
                             .add("vnet_header", tun.vnet_header)
                             .add("tcp4", tun.tcp4)
                             .add("tcp6", tun.tcp6)
                             .add("tcp_ecn", tun.tcp_ecn)
                             .add("udp", tun.udp)
                             .add("udp_gso", all_have(tunnel, &path::Udp::gso))
                             .add("udp_gro", all_have(tunnel, &path::Udp::gro)));
    app::JsonText fallbacks = app::JsonText::array();
    for (const std::string& fallback : tunnel.fallbacks) fallbacks.push(fallback);
    const SaCounters table = tunnel.sessions.table();
    json.add("fallbacks", fallbacks)
        .add("session_keys_written", !tunnel.config.key_log.empty())
        .add("keystream", app::JsonText::object()
                              .add("ready_bytes", table.ready)
                              .add("made_by", tunnel.config.keystream)
                              .add("direct_packets", table.direct)
                              .add("partial", table.partial)
                              .add("hits", table.hits))
        .add("packets", json_of(packets_of(tunnel)))
        .add("drops", json_of(drops_of(tunnel)))
        .add("verdicts", json_of(verdicts_of(tunnel)))
        .add("handshakes", json_of(handshakes_of(tunnel)));
    app::JsonText peers = app::JsonText::array();
    for (PeerId i = 0; i < tunnel.sessions.peers(); ++i) {
        const PeerConfig& config = tunnel.config.peers[i];
        const PeerEnd& peer = tunnel.sessions.peer(i);
        const auto report = tunnel.sessions.report(i);
        app::JsonText allowed = app::JsonText::array();
        for (const path::Prefix& prefix : config.allowed) allowed.push(prefix.text());
        app::JsonText one = app::JsonText::object();
        one.add("name", config.name)
            .add("public_key", to_text(config.public_key))
            .add("endpoint", report.route.remote ? report.route.remote.text() : std::string())
            .add("allowed", allowed)
            .add("in_use", report.handshakes.in_use != kNoSession)
            .add("sessions", report.handshakes.sessions)
            .add("initiations_sent", report.handshakes.initiations_sent)
            .add("responses_sent", report.handshakes.responses_sent)
            .add("given_up", report.handshakes.given_up);
        if (report.handshakes.last_handshake != kNever)
            one.add("handshake_age_seconds", seconds(report.handshakes.last_handshake, at));
        one.add("sending_spi", report.sending_spi)
            .add("receiving_spi", report.receiving_spi)
            .add("received_packets", peer.received_packets.get())
            .add("received_bytes", peer.received_bytes.get())
            .add("sent_packets", peer.sent_packets.get())
            .add("sent_bytes", peer.sent_bytes.get())
            .add("lost", peer.lost.get())
            .add("bad_source", peer.bad_source.get())
            .add("moves", peer.moves.get())
            .add("refused_moves", peer.refused_moves.get());
        peers.push(one);
    }
    return json.add("peers", peers).text() + "\n";
}

std::string status_metrics(Tunnel& tunnel) {
    std::string out;
    const std::string where = "interface=" + app::json_string(tunnel.tun.name());
    const auto family = [&out](const char* name, const char* kind, const char* help) {
        out += std::string("# HELP daelstrom_vpn_") + name + " " + help +
               "\n# TYPE daelstrom_vpn_" + name + " " + kind + "\n";
    };
    const auto sample = [&](const char* name, const std::string& labels, std::uint64_t value) {
        out += std::string("daelstrom_vpn_") + name + "{" + where + labels + "} " +
               std::to_string(value) + "\n";
    };
    const auto all = [&](const char* name, const char* label, const char* help,
                         const Figures& figures) {
        family(name, "counter", help);
        for (const Figure& figure : figures)
            sample(name, "," + std::string(label) + "=" + app::json_string(figure.name),
                   figure.value);
    };
    all("packets_total", "kind", "Packets and calls, by kind", packets_of(tunnel));
    all("drops_total", "reason", "Packets that went nowhere", drops_of(tunnel));
    all("verdicts_total", "verdict", "What became of ESP packets", verdicts_of(tunnel));
    all("handshake_messages_total", "outcome", "Messages of handshakes", handshakes_of(tunnel));
    struct Row {
        const char *name, *kind, *help;
        std::uint64_t (*value)(const PeerEnd&, const Sessions::PeerReport&);
    };
    using Report = Sessions::PeerReport;
    static constexpr Row kRows[] = {
        {"peer_received_bytes_total", "counter", "Inner bytes from a peer",
         [](const PeerEnd& p, const Report&) { return p.received_bytes.get(); }},
        {"peer_sent_bytes_total", "counter", "Inner bytes to a peer",
         [](const PeerEnd& p, const Report&) { return p.sent_bytes.get(); }},
        {"peer_received_packets_total", "counter", "Inner packets from a peer",
         [](const PeerEnd& p, const Report&) { return p.received_packets.get(); }},
        {"peer_sent_packets_total", "counter", "Inner packets to a peer",
         [](const PeerEnd& p, const Report&) { return p.sent_packets.get(); }},
        {"peer_sessions_total", "counter", "Sessions that were agreed on with a peer",
         [](const PeerEnd&, const Report& r) { return r.handshakes.sessions; }},
        {"peer_up", "gauge", "Whether a session is in use",
         [](const PeerEnd&, const Report& r) {
             return std::uint64_t{r.handshakes.in_use != kNoSession};
         }},
    };
    for (const Row& row : kRows) {
        family(row.name, row.kind, row.help);
        for (PeerId i = 0; i < tunnel.sessions.peers(); ++i)
            sample(row.name, ",peer=" + app::json_string(name_of(tunnel.config.peers[i])),
                   row.value(tunnel.sessions.peer(i), tunnel.sessions.report(i)));
    }
    return out;
}

}  // namespace dael::vpn
