// SPDX-License-Identifier: Apache-2.0
// Interfaces, their addresses, and routes; rules are in netlink_rules.cpp.
#include "vpn/path/netlink.hpp"

#include <linux/if_link.h>
#include <linux/netconf.h>
#include <net/if.h>

#include <algorithm>

#include "vpn/path/netlink_state.hpp"

namespace dael::vpn::path {
namespace {

// Nothing, where it is not as long as it must be.
std::optional<Address> get_address(const nlattr* attribute, int family) {
    Address address;
    address.family = family == AF_INET6 ? 6 : 4;
    if (mnl_attr_get_payload_len(attribute) != address.span().size()) return std::nullopt;
    std::memcpy(address.bytes.data(), mnl_attr_get_payload(attribute), address.span().size());
    return address;
}

std::string interface(unsigned index) {
    char name[IF_NAMESIZE];
    if (if_indextoname(index, name) == nullptr) return "interface " + std::to_string(index);
    return std::string("\"") + name + "\"";
}

std::uint32_t metric_mtu(const nlattr* metrics) {
    std::uint32_t mtu = 0;
    const auto* const first = static_cast<const char*>(mnl_attr_get_payload(metrics));
    each_from(first, first + mnl_attr_get_payload_len(metrics), [&](const nlattr* one) {
        if (mnl_attr_get_type(one) == RTAX_MTU) mtu = get_number(one).value_or(0);
    });
    return mtu;
}

}  // namespace

Netlink::Netlink(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Netlink::Netlink(Netlink&&) noexcept = default;
Netlink& Netlink::operator=(Netlink&& other) noexcept {
    if (this != &other) {
        undo();
        state_ = std::move(other.state_);
    }
    return *this;
}
Netlink::~Netlink() {
    undo();
}

Result<Netlink> Netlink::open() {
    auto state = std::make_unique<State>();
    state->socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (state->socket == nullptr || mnl_socket_bind(state->socket, 0, MNL_SOCKET_AUTOPID) < 0)
        return netlink_fault(errno, "rtnetlink cannot be opened");
    state->port = mnl_socket_get_portid(state->socket);
    return Netlink(std::move(state));
}

Result<> Netlink::set_mtu(unsigned index, std::uint32_t mtu) {
    const auto [message, header] = state_->begin<ifinfomsg>(RTM_NEWLINK, NLM_F_ACK);
    header->ifi_index = static_cast<int>(index);
    mnl_attr_put_u32(message, IFLA_MTU, mtu);
    if (const int error = state_->ask(message))
        return netlink_fault(
            error, "the MTU " + std::to_string(mtu) + " of " + interface(index) + " cannot be set");
    return {};
}

Result<> Netlink::set_up(unsigned index, bool up) {
    const auto [message, header] = state_->begin<ifinfomsg>(RTM_NEWLINK, NLM_F_ACK);
    header->ifi_index = static_cast<int>(index);
    header->ifi_change = IFF_UP;
    header->ifi_flags = up ? IFF_UP : 0;
    if (const int error = state_->ask(message))
        return netlink_fault(error, interface(index) + " cannot be set " + (up ? "up" : "down"));
    return {};
}

Result<> Netlink::add_address(unsigned index, const Prefix& prefix) {
    const auto [message, header] =
        state_->begin<ifaddrmsg>(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
    header->ifa_family = static_cast<unsigned char>(family_of(prefix.address));
    header->ifa_prefixlen = prefix.length;
    header->ifa_index = index;
    // Nobody else is on this link, so nobody need be asked whether it is taken.
    if (prefix.address.family == 6) header->ifa_flags = IFA_F_NODAD;
    put_address(message, IFA_LOCAL, prefix.address);
    put_address(message, IFA_ADDRESS, prefix.address);
    if (const int error = state_->ask(message))
        return netlink_fault(
            error, "the address " + prefix.text() + " cannot be given to " + interface(index));
    return {};
}

Result<> Netlink::remove_address(unsigned index, const Prefix& prefix) {
    const auto [message, header] = state_->begin<ifaddrmsg>(RTM_DELADDR, NLM_F_ACK);
    header->ifa_family = static_cast<unsigned char>(family_of(prefix.address));
    header->ifa_prefixlen = prefix.length;
    header->ifa_index = index;
    put_address(message, IFA_LOCAL, prefix.address);
    if (const int error = state_->ask(message))
        return netlink_fault(
            error, "the address " + prefix.text() + " cannot be taken from " + interface(index));
    return {};
}

Result<> Netlink::add_route(const RouteSpec& spec, bool lasting) {
    // Room first, so that what is set is remembered.
    if (lasting) state_->lasting.reserve(state_->lasting.size() + 1);
    const int error =
        state_->ask(state_->route(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, spec));
    if (error == EEXIST && spec.index != 0) {
        DAEL_LET(there, routes(spec.index, spec.table));
        for (const RouteSpec& one : there)
            if (one.to == spec.to.masked() && one.gateway == spec.gateway &&
                one.table == spec.table && (spec.metric == 0 || one.metric == spec.metric))
                return {};  // and is not ours to take back
    }
    if (error != 0)
        return netlink_fault(error, "the route to " + spec.to.masked().text() + " cannot be set");
    if (lasting) state_->lasting.push_back(spec);
    return {};
}

Result<> Netlink::remove_route(const RouteSpec& spec) {
    if (const int error = state_->ask(state_->route(RTM_DELROUTE, NLM_F_ACK, spec)))
        return netlink_fault(error,
                             "the route to " + spec.to.masked().text() + " cannot be removed");
    auto& lasting = state_->lasting;
    const auto ours = std::ranges::find_if(lasting, [&](const RouteSpec& one) {
        return one.to.masked() == spec.to.masked() && one.index == spec.index &&
               one.gateway == spec.gateway && one.table == spec.table && one.metric == spec.metric;
    });
    if (ours != lasting.end()) lasting.erase(ours);
    return {};
}

void Netlink::undo() noexcept {
    if (!state_ || state_->owner != getpid()) return;
    for (; !state_->lasting.empty(); state_->lasting.pop_back())
        state_->ask(state_->route(RTM_DELROUTE, NLM_F_ACK, state_->lasting.back()));
}

Result<Netlink::Way> Netlink::way_to(const Address& to, std::uint32_t mark) {
    const auto [message, header] = state_->begin<rtmsg>(RTM_GETROUTE, 0);
    header->rtm_family = static_cast<unsigned char>(family_of(to));
    header->rtm_dst_len = to.family == 6 ? 128 : 32;
    put_address(message, RTA_DST, to);
    if (mark != 0) mnl_attr_put_u32(message, RTA_MARK, mark);
    Way way;
    const int error = state_->ask(message, [&](const nlmsghdr* one) {
        if (mnl_nlmsg_get_payload_len(one) < sizeof(rtmsg)) return;
        way.here = static_cast<const rtmsg*>(mnl_nlmsg_get_payload(one))->rtm_type == RTN_LOCAL;
        each_attribute<rtmsg>(one, [&](const nlattr* a) {
            switch (mnl_attr_get_type(a)) {
                case RTA_OIF:
                    way.index = get_number(a).value_or(0);
                    break;
                case RTA_GATEWAY:
                    way.gateway = get_address(a, family_of(to));
                    break;
                case RTA_PREFSRC:
                    way.source = get_address(a, family_of(to)).value_or(Address{});
                    break;
                case RTA_METRICS:
                    way.mtu = metric_mtu(a);
                    break;
                default:
                    break;
            }
        });
    });
    if (error != 0) return netlink_fault(error, "there is no route to " + to.text());
    if (way.mtu == 0 && way.index != 0) {
        DAEL_LET(its, link(way.index));
        way.mtu = its.mtu;
    }
    return way;
}

Result<> Netlink::set_gso_limits(unsigned index, std::uint32_t segments, std::uint32_t bytes) {
    const auto [message, header] = state_->begin<ifinfomsg>(RTM_NEWLINK, NLM_F_ACK);
    header->ifi_index = static_cast<int>(index);
    if (segments != 0) mnl_attr_put_u32(message, IFLA_GSO_MAX_SEGS, segments);
    if (bytes != 0) mnl_attr_put_u32(message, IFLA_GSO_MAX_SIZE, bytes);
    const int error = state_->ask(message);
    if (error == EOPNOTSUPP)
        return Error{Code::unsupported, "this kernel lets nobody set the size of super-packets"};
    if (error != 0)
        return netlink_fault(error,
                             "the size of super-packets of " + interface(index) + " cannot be set");
    // Before Linux 5.19 the attributes were passed over in silence.
    DAEL_LET(now, link(index));
    if ((segments != 0 && now.gso_max_segs != segments) ||
        (bytes != 0 && now.gso_max_size != bytes))
        return Error{Code::unsupported, "this kernel lets nobody set the size of super-packets"};
    return {};
}

Result<Netlink::Link> Netlink::link(unsigned index) {
    const auto [message, header] = state_->begin<ifinfomsg>(RTM_GETLINK, 0);
    header->ifi_index = static_cast<int>(index);
    Link link;
    const int error = state_->ask(message, [&](const nlmsghdr* one) {
        if (mnl_nlmsg_get_payload_len(one) < sizeof(ifinfomsg)) return;
        link.up =
            (static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(one))->ifi_flags & IFF_UP) != 0;
        each_attribute<ifinfomsg>(one, [&](const nlattr* a) {
            switch (mnl_attr_get_type(a)) {
                case IFLA_IFNAME:
                    link.name.assign(mnl_attr_get_str(a),
                                     strnlen(mnl_attr_get_str(a), mnl_attr_get_payload_len(a)));
                    break;
                case IFLA_MTU:
                    link.mtu = get_number(a).value_or(0);
                    break;
                case IFLA_GSO_MAX_SEGS:
                    link.gso_max_segs = get_number(a).value_or(0);
                    break;
                case IFLA_GSO_MAX_SIZE:
                    link.gso_max_size = get_number(a).value_or(0);
                    break;
                default:
                    break;
            }
        });
    });
    if (error != 0)
        return netlink_fault(error, "interface " + std::to_string(index) + " is not there");
    return link;
}

Result<std::uint32_t> Netlink::reverse_filter(unsigned index) {
    std::uint32_t strictest = 0;  // the greater number of the two counts (ip-sysctl)
    for (const std::uint32_t of : {static_cast<std::uint32_t>(NETCONFA_IFINDEX_ALL), index}) {
        const auto [message, header] = state_->begin<netconfmsg>(RTM_GETNETCONF, 0);
        header->ncm_family = AF_INET;
        mnl_attr_put_u32(message, NETCONFA_IFINDEX, of);
        const int error = state_->ask(message, [&](const nlmsghdr* one) {
            each_attribute<netconfmsg>(one, [&](const nlattr* a) {
                if (mnl_attr_get_type(a) == NETCONFA_RP_FILTER)
                    strictest = std::max(strictest, get_number(a).value_or(0));
            });
        });
        if (error != 0)
            return netlink_fault(
                error, "the filter of " + interface(index) + " by the reverse path cannot be read");
    }
    return strictest;
}

Result<std::vector<Prefix>> Netlink::addresses(unsigned index) {
    std::vector<Prefix> all;
    for (const int family : {AF_INET, AF_INET6}) {
        const auto [message, header] = state_->begin<ifaddrmsg>(RTM_GETADDR, NLM_F_DUMP);
        header->ifa_family = static_cast<unsigned char>(family);
        const int error = state_->ask(message, [&](const nlmsghdr* one) {
            if (mnl_nlmsg_get_payload_len(one) < sizeof(ifaddrmsg)) return;
            const auto* const its = static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(one));
            if (its->ifa_index != index || its->ifa_family != family) return;
            // The interface's own is IFA_LOCAL; IPv6 says IFA_ADDRESS where there is no peer.
            std::optional<Address> local, address;
            each_attribute<ifaddrmsg>(one, [&](const nlattr* a) {
                if (mnl_attr_get_type(a) == IFA_LOCAL) local = get_address(a, family);
                if (mnl_attr_get_type(a) == IFA_ADDRESS) address = get_address(a, family);
            });
            if (!local) local = address;
            if (local) all.push_back({*local, its->ifa_prefixlen});
        });
        if (error != 0) return netlink_fault(error, "addresses cannot be read");
    }
    return all;
}

Result<std::vector<Netlink::RouteSpec>> Netlink::routes(unsigned index, std::uint32_t table) {
    std::vector<RouteSpec> all;
    for (const int family : {AF_INET, AF_INET6}) {
        const auto [message, header] = state_->begin<rtmsg>(RTM_GETROUTE, NLM_F_DUMP);
        header->rtm_family = static_cast<unsigned char>(family);
        const int error = state_->ask(message, [&](const nlmsghdr* one) {
            if (mnl_nlmsg_get_payload_len(one) < sizeof(rtmsg)) return;
            const auto* const its = static_cast<const rtmsg*>(mnl_nlmsg_get_payload(one));
            if (its->rtm_family != family || its->rtm_type != RTN_UNICAST ||
                (its->rtm_flags & RTM_F_CLONED) != 0)
                return;
            RouteSpec spec;
            spec.table = its->rtm_table;
            spec.to.length = its->rtm_dst_len;
            spec.to.address.family = family == AF_INET6 ? 6 : 4;
            each_attribute<rtmsg>(one, [&](const nlattr* a) {
                switch (mnl_attr_get_type(a)) {
                    case RTA_DST:
                        if (const auto to = get_address(a, family)) spec.to.address = *to;
                        break;
                    case RTA_OIF:
                        spec.index = get_number(a).value_or(0);
                        break;
                    case RTA_GATEWAY:
                        spec.gateway = get_address(a, family);
                        break;
                    case RTA_PRIORITY:
                        spec.metric = get_number(a).value_or(0);
                        break;
                    case RTA_TABLE:
                        spec.table = get_number(a).value_or(spec.table);
                        break;
                    case RTA_METRICS:
                        spec.mtu = metric_mtu(a);
                        break;
                    default:
                        break;
                }
            });
            if ((index == 0 || spec.index == index) && spec.table == table) all.push_back(spec);
        });
        if (error != 0) return netlink_fault(error, "routes cannot be read");
    }
    return all;
}

}  // namespace dael::vpn::path
