// SPDX-License-Identifier: Apache-2.0
#include "vpn/aside.hpp"

#include <algorithm>

namespace dael::vpn {
namespace {

using path::Netlink;
using path::Prefix;

// Behind what people and programs set by hand, before the kernel's own of the main table (32766).
// For each length of a network two rules, the longest networks' first.
constexpr std::uint32_t kLastPriority = 32699;

bool holds_an_endpoint(const Config& config, const Prefix& prefix) {
    return std::ranges::any_of(config.peers, [&prefix](const PeerConfig& peer) {
        return peer.resolved && prefix.holds(peer.resolved.address);
    });
}

}  // namespace

Aside::Aside(const Config& config) : mark_(config.mark) {
    if (!config.routes) return;
    for (const PeerConfig& peer : config.peers)
        for (const Prefix& prefix : peer.allowed)
            if (prefix.length == 0 || holds_an_endpoint(config, prefix))
                networks_.push_back(prefix.masked());
    if (!networks_.empty() && mark_ == 0) mark_ = kUsualMark;
}

bool Aside::has(const Prefix& prefix) const {
    return std::ranges::find(networks_, prefix.masked()) != networks_.end();
}

std::vector<Aside::Kind> Aside::kinds() const {
    std::vector<Kind> kinds;
    for (const Prefix& prefix : networks_)
        if (const Kind kind = kind_of(prefix); std::ranges::find(kinds, kind) == kinds.end())
            kinds.push_back(kind);
    return kinds;
}

Netlink::Rule Aside::main_first(const Kind& kind) const {
    Netlink::Rule rule;
    rule.family = kind.family;
    rule.priority = kLastPriority - 1 - 2u * kind.length;
    // Sealed packets come to the main table in the end. But so the rule is this mark's alone, and
    // nobody else takes it back.
    rule.mark = mark_;
    rule.others = true;
    rule.longer_than = kind.length;
    return rule;
}

Netlink::Rule Aside::then_aside(const Kind& kind) const {
    Netlink::Rule rule;
    rule.family = kind.family;
    rule.priority = kLastPriority - 2u * kind.length;
    rule.table = rule.mark = mark_;
    rule.others = true;
    if (kind.length > 0) rule.longer_than = static_cast<std::uint8_t>(kind.length - 1);
    return rule;
}

bool Aside::is_ours(const Netlink::Rule& rule) const {
    if (rule.priority > kLastPriority) return false;
    const std::uint32_t length = (kLastPriority - rule.priority) / 2;
    if (length > 128) return false;
    const Kind kind{rule.family, static_cast<std::uint8_t>(length)};
    return rule == main_first(kind) || rule == then_aside(kind);
}

// Somebody's network that is ours, too, would be reached by the one or the other by chance, or the
// sealed packets of each would go into the other.
Result<> Aside::refuse_taken(Netlink& netlink, std::uint32_t table) const {
    DAEL_LET(routes, netlink.routes(0, table));
    for (const Netlink::RouteSpec& route : routes) {
        if (!has(route.to)) continue;
        std::string by;
        if (const auto link = netlink.link(route.index)) by = ", by the interface " + link->name;
        return Error{Code::io, route.to.text() + " goes into another tunnel already" + by +
                                   " (routing table " + std::to_string(table) +
                                   "); end that one, or take the network out of `allowed`"};
    }
    return {};
}

Result<> Aside::refuse_clash(Netlink& netlink, const Netlink::Rule& rule) const {
    if (rule.table == mark_ || rule.mark == mark_)
        return Error{Code::io,
                     "the number " + std::to_string(mark_) +
                         " is used by somebody else's rule for routes (priority " +
                         std::to_string(rule.priority) +
                         "; ip rule): choose another, as mark = " + std::to_string(mark_ + 1)};
    // As another tunnel's rules are, ours under another mark or WireGuard's.
    if (rule.others && rule.mark != 0 && rule.table != Netlink::kMainTable)
        return refuse_taken(netlink, rule.table);
    return {};
}

Result<> Aside::add_rules(Netlink& netlink, const Kind& kind) const {
    DAEL_TRY(netlink.add_rule(main_first(kind)));
    return netlink.add_rule(then_aside(kind));
}

Result<> Aside::set(Netlink& netlink, unsigned index) const {
    if (networks_.empty()) return {};
    DAEL_LET(rules, netlink.rules());
    for (const Netlink::Rule& rule : rules)
        if (!is_ours(rule)) DAEL_TRY(refuse_clash(netlink, rule));
    DAEL_TRY(refuse_taken(netlink, mark_));
    for (const Prefix& network : networks_) {
        Netlink::RouteSpec route;
        route.to = network;
        route.index = index;
        route.table = mark_;
        DAEL_TRY(netlink.add_route(route));
    }
    for (const Kind& kind : kinds()) DAEL_TRY(add_rules(netlink, kind));
    return {};
}

Result<bool> Aside::needed(Netlink& netlink, const Kind& kind, unsigned index) const {
    DAEL_LET(routes, netlink.routes(0, mark_));
    return std::ranges::any_of(routes, [&](const Netlink::RouteSpec& route) {
        return route.index != index && kind_of(route.to) == kind;
    });
}

// Nothing locks this out from another tunnel's set(): that one sets routes and then sees to the
// rules, this one removes rules and then looks for routes, so one of the two sees the other.
Result<> Aside::take_back(Netlink& netlink, unsigned index) const {
    for (const Kind& kind : kinds()) {
        DAEL_LET(before, needed(netlink, kind, index));
        if (before) continue;
        DAEL_TRY(netlink.remove_rule(then_aside(kind)));
        DAEL_TRY(netlink.remove_rule(main_first(kind)));
        DAEL_LET(after, needed(netlink, kind, index));
        if (after) DAEL_TRY(add_rules(netlink, kind));
    }
    return {};
}

std::string strict_filter(const Aside& aside, const Config& config, Netlink& netlink) {
    for (const PeerConfig& peer : config.peers) {
        const path::Address& address = peer.resolved.address;
        if (address.family != 4) continue;
        const auto way = netlink.way_to(address, aside.mark());
        if (!way || way->here) continue;
        // The main table may have a longer prefix, as of the local network.
        if (const auto back = netlink.way_to(address); back && back->index == way->index) continue;
        const auto link = netlink.link(way->index);
        const auto filter = netlink.reverse_filter(way->index);
        if (link && filter && *filter == 1)
            return "what comes from " + address.text() +
                   ": the kernel filters strictly by the reverse path, and drops it; set "
                   "net.ipv4.conf." +
                   link->name + ".rp_filter = 2 (sysctl)";
    }
    return {};
}

}  // namespace dael::vpn
