// SPDX-License-Identifier: Apache-2.0
// What a Netlink is made of, and how attributes are read. By libmnl: it knows how messages and
// their attributes are laid, and nothing of what they say.
#pragma once

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vpn/path/netlink.hpp"

namespace dael::vpn::path {

using Each = std::function<void(const nlmsghdr*)>;

inline int family_of(const Address& address) {
    return address.family == 6 ? AF_INET6 : AF_INET;
}

inline void put_address(nlmsghdr* message, std::uint16_t type, const Address& address) {
    mnl_attr_put(message, type, address.span().size(), address.bytes.data());
}

inline std::optional<std::uint32_t> get_number(const nlattr* attribute) {
    if (mnl_attr_get_payload_len(attribute) < sizeof(std::uint32_t)) return std::nullopt;
    return mnl_attr_get_u32(attribute);
}

// (libmnl's own macros for it are no C++.)
template <class Function>
void each_from(const void* first, const void* end, Function&& each) {
    const auto* one = static_cast<const nlattr*>(first);
    const auto left = [&] {
        return static_cast<int>(static_cast<const char*>(end) - reinterpret_cast<const char*>(one));
    };
    for (; mnl_attr_ok(one, left()); one = mnl_attr_next(one)) each(one);
}

// The attributes behind a header of `Header`'s size.
template <class Header, class Function>
void each_attribute(const nlmsghdr* message, Function&& each) {
    if (mnl_nlmsg_get_payload_len(message) < MNL_ALIGN(sizeof(Header))) return;
    each_from(mnl_nlmsg_get_payload_offset(message, sizeof(Header)),
              mnl_nlmsg_get_payload_tail(message), each);
}

inline Error netlink_fault(int error, const std::string& what) {
    return {Code::io, what + ": " + std::strerror(error)};
}

struct Netlink::State {
    mnl_socket* socket = nullptr;
    unsigned port = 0, sequence = 0;
    pid_t owner = getpid();
    std::vector<RouteSpec> lasting;
    // Messages that we send are short; a kernel's may have 32 KiB.
    alignas(nlmsghdr) char request[1024];
    alignas(nlmsghdr) char answer[32768];

    ~State() {
        if (socket != nullptr) mnl_socket_close(socket);
    }

    template <class Header>
    std::pair<nlmsghdr*, Header*> begin(int type, int flags) {
        nlmsghdr* const message = mnl_nlmsg_put_header(request);
        message->nlmsg_type = static_cast<std::uint16_t>(type);
        message->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
        message->nlmsg_seq = ++sequence;
        auto* const header =
            static_cast<Header*>(mnl_nlmsg_put_extra_header(message, sizeof(Header)));
        return {message, header};
    }

    // 0, or errno. Answers that have content are given to `each`.
    int ask(nlmsghdr* message, const Each& each = {}) {
        if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0) return errno;
        const auto take = [](const nlmsghdr* one, void* data) {
            const Each& function = *static_cast<const Each*>(data);
            if (function) function(one);
            return MNL_CB_OK;
        };
        while (true) {
            const ssize_t n = mnl_socket_recvfrom(socket, answer, sizeof answer);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return errno;
            const int goes_on = mnl_cb_run(answer, static_cast<std::size_t>(n), message->nlmsg_seq,
                                           port, take, const_cast<Each*>(&each));
            if (goes_on < 0) return errno;
            if (goes_on == MNL_CB_STOP) return 0;
            // What is asked of one thing is answered by one message, without an end.
            if ((message->nlmsg_flags & (NLM_F_ACK | NLM_F_DUMP)) == 0) return 0;
        }
    }

    nlmsghdr* route(int type, int flags, const RouteSpec& spec) {
        const auto [message, header] = begin<rtmsg>(type, flags);
        const Prefix to = spec.to.masked();
        header->rtm_family = static_cast<unsigned char>(family_of(to.address));
        header->rtm_dst_len = to.length;
        header->rtm_table = static_cast<unsigned char>(spec.table < 256 ? spec.table : 0);
        header->rtm_protocol = RTPROT_STATIC;
        header->rtm_type = RTN_UNICAST;
        header->rtm_scope =
            spec.gateway || to.address.family == 6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
        if (type == RTM_DELROUTE) header->rtm_scope = RT_SCOPE_NOWHERE;  // whichever it has
        mnl_attr_put_u32(message, RTA_TABLE, spec.table);
        put_address(message, RTA_DST, to.address);
        if (spec.index != 0) mnl_attr_put_u32(message, RTA_OIF, spec.index);
        if (spec.gateway) put_address(message, RTA_GATEWAY, *spec.gateway);
        if (spec.metric != 0) mnl_attr_put_u32(message, RTA_PRIORITY, spec.metric);
        if (spec.mtu != 0) {
            nlattr* const metrics = mnl_attr_nest_start(message, RTA_METRICS);
            mnl_attr_put_u32(message, RTAX_MTU, spec.mtu);
            mnl_attr_nest_end(message, metrics);
        }
        return message;
    }
};

}  // namespace dael::vpn::path
