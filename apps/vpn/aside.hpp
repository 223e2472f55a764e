// SPDX-License-Identifier: Apache-2.0
// Networks whose routes would lead the tunnel's own sealed packets into the tunnel: default routes,
// and those that hold a peer's endpoint. Their routes stand aside, in a table of their own, to
// which rules lead every packet but the sealed ones, which carry a mark. Where the main table has a
// longer prefix it goes first, so that the longest of both tables counts, as if they were one; of
// two that are equal the tunnel's.
//
// All tunnels of a network namespace share mark, table and rules, so that none sends another's
// sealed packets, and the longest prefix counts among them too. Routes go with the interface. Rules
// stay until the last tunnel that has routes there takes them back (guardian.hpp); one that is left
// over all the same leads to an empty table, and is used again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "vpn/config.hpp"
#include "vpn/path/netlink.hpp"

namespace dael::vpn {

// Also the number of the table. None of the bits that Kubernetes (0xc000) or Tailscale (0xff0000)
// take for themselves.
inline constexpr std::uint32_t kUsualMark = 8410;

class Aside {
  public:
    Aside() = default;
    // By the peers' endpoints as far as they are known by number. Nothing without `routes`.
    explicit Aside(const Config& config);

    bool empty() const noexcept { return networks_.empty(); }
    bool has(const path::Prefix& prefix) const;
    const std::vector<path::Prefix>& networks() const noexcept { return networks_; }
    std::uint32_t mark() const noexcept { return mark_; }  // of sealed packets; 0: none

    // Routes by this interface, then rules. Errors: io (another tunnel has one of the networks;
    // somebody else uses the mark or the table; the kernel's word).
    Result<> set(path::Netlink& netlink, unsigned index) const;
    // Takes rules back that no other interface's routes need.
    Result<> take_back(path::Netlink& netlink, unsigned index) const;

  private:
    // Rules are by family and length of the networks.
    struct Kind {
        std::uint8_t family = 0, length = 0;
        bool operator==(const Kind&) const = default;
    };
    static Kind kind_of(const path::Prefix& prefix) {
        return {prefix.address.family, prefix.length};
    }
    std::vector<Kind> kinds() const;
    path::Netlink::Rule main_first(const Kind& kind) const;
    path::Netlink::Rule then_aside(const Kind& kind) const;
    Result<> add_rules(path::Netlink& netlink, const Kind& kind) const;
    Result<bool> needed(path::Netlink& netlink, const Kind& kind, unsigned index) const;
    bool is_ours(const path::Netlink::Rule& rule) const;
    Result<> refuse_clash(path::Netlink& netlink, const path::Netlink::Rule& rule) const;
    Result<> refuse_taken(path::Netlink& netlink, std::uint32_t table) const;

    std::vector<path::Prefix> networks_;
    std::uint32_t mark_ = 0;
};

// What makes the kernel drop the datagrams of an endpoint that is reached beside such a network:
// strict filtering by the reverse path (RFC 3704 2.2), which does not know of marks. Empty:
// nothing.
std::string strict_filter(const Aside& aside, const Config& config, path::Netlink& netlink);

}  // namespace dael::vpn
