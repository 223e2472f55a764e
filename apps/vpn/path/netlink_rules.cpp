// SPDX-License-Identifier: Apache-2.0
// Rules of policy routing.
#include <linux/fib_rules.h>

#include "vpn/path/netlink.hpp"
#include "vpn/path/netlink_state.hpp"

namespace dael::vpn::path {
namespace {

nlmsghdr* rule_message(Netlink::State& state, int type, int flags, const Netlink::Rule& rule) {
    const auto [message, header] = state.begin<fib_rule_hdr>(type, NLM_F_ACK | flags);
    header->family = rule.family == 6 ? AF_INET6 : AF_INET;
    header->action = FR_ACT_TO_TBL;
    header->flags = rule.others ? FIB_RULE_INVERT : 0;
    header->table = static_cast<unsigned char>(rule.table < 256 ? rule.table : 0);
    mnl_attr_put_u32(message, FRA_TABLE, rule.table);
    mnl_attr_put_u32(message, FRA_PRIORITY, rule.priority);
    if (rule.mark != 0) {
        mnl_attr_put_u32(message, FRA_FWMARK, rule.mark);
        mnl_attr_put_u32(message, FRA_FWMASK, 0xffffffff);
    }
    if (rule.longer_than) mnl_attr_put_u32(message, FRA_SUPPRESS_PREFIXLEN, *rule.longer_than);
    return message;
}

Error rule_fault(int error, const char* what) {
    const char* const lacking =
        error == EOPNOTSUPP || error == EAFNOSUPPORT ? "; this kernel has no policy routing" : "";
    Error said = netlink_fault(error, std::string("a rule for routes cannot be ") + what);
    said.message += lacking;
    return said;
}

void read_attribute(const nlattr* a, Netlink::Rule& rule) {
    const std::uint32_t number = get_number(a).value_or(0);
    switch (mnl_attr_get_type(a)) {
        case FRA_TABLE:
            rule.table = number;
            break;
        case FRA_PRIORITY:
            rule.priority = number;
            break;
        case FRA_FWMARK:
            rule.mark = number;
            break;
        case FRA_FWMASK:
            if (number != 0xffffffff) rule.more = true;
            break;
        case FRA_SUPPRESS_PREFIXLEN:
            if (number <= 128) rule.longer_than = static_cast<std::uint8_t>(number);
            break;
        case FRA_SUPPRESS_IFGROUP:
            if (number != 0xffffffff) rule.more = true;
            break;
        case FRA_PAD:
        case FRA_PROTOCOL:  // by whom it was set
            break;
        default:
            rule.more = true;
    }
}

}  // namespace

Result<> Netlink::add_rule(const Rule& rule) {
    const int error =
        state_->ask(rule_message(*state_, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule));
    if (error != 0 && error != EEXIST) return rule_fault(error, "set");
    return {};
}

Result<> Netlink::remove_rule(const Rule& rule) {
    const int error = state_->ask(rule_message(*state_, RTM_DELRULE, 0, rule));
    if (error != 0 && error != ENOENT) return rule_fault(error, "taken back");
    return {};
}

Result<std::vector<Netlink::Rule>> Netlink::rules() {
    std::vector<Rule> all;
    for (const int family : {AF_INET, AF_INET6}) {
        const auto [message, header] = state_->begin<fib_rule_hdr>(RTM_GETRULE, NLM_F_DUMP);
        header->family = static_cast<unsigned char>(family);
        const int error = state_->ask(message, [&](const nlmsghdr* one) {
            if (mnl_nlmsg_get_payload_len(one) < sizeof(fib_rule_hdr)) return;
            const auto* const its = static_cast<const fib_rule_hdr*>(mnl_nlmsg_get_payload(one));
            if (its->family != family) return;
            Rule rule;
            rule.family = family == AF_INET6 ? 6 : 4;
            rule.table = its->table;
            rule.others = (its->flags & FIB_RULE_INVERT) != 0;
            rule.more = its->action != FR_ACT_TO_TBL || its->tos != 0 || its->src_len != 0 ||
                        its->dst_len != 0;
            each_attribute<fib_rule_hdr>(one, [&](const nlattr* a) { read_attribute(a, rule); });
            all.push_back(rule);
        });
        // A kernel without one of the families, or without rules, has none.
        if (error != 0 && error != EOPNOTSUPP && error != EAFNOSUPPORT)
            return netlink_fault(error, "the rules for routes cannot be read");
    }
    return all;
}

}  // namespace dael::vpn::path
