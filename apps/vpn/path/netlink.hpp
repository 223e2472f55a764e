// SPDX-License-Identifier: Apache-2.0
// What is set up around the interface, by rtnetlink (libmnl). What hangs on the TUN interface goes
// with it, whatever ends the process. Routes by other interfaces are remembered and taken back by
// undo() or the destructor; a killed process leaves these, so use a mark or Route::interface where
// that matters.
//
// Without libmnl open() says so (unsupported); all else is as it is. Threads: one at a time.
// fork(): a child's destructor takes nothing back.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "vpn/path/endpoint.hpp"

namespace dael::vpn::path {

struct Prefix {
    Address address;
    std::uint8_t length = 0;
    bool operator==(const Prefix&) const = default;
    // "10.0.0.0/8"; without a length: that address alone. Bits beyond the length are kept.
    static std::optional<Prefix> parse(std::string_view text);
    std::string text() const;
    Prefix masked() const noexcept;  // without the bits beyond the length
    bool holds(const Address& one) const noexcept;
};

class Netlink {
  public:
    static Result<Netlink> open();
    Netlink(Netlink&&) noexcept;
    Netlink& operator=(Netlink&&) noexcept;
    ~Netlink();

    static constexpr std::uint32_t kMainTable = 254;

    // Errors of all: io, with what was asked and what the kernel says.
    Result<> set_mtu(unsigned index, std::uint32_t mtu);
    Result<> set_up(unsigned index, bool up = true);
    // Of the interface itself. The kernel puts an IPv6 address to use a moment later, when both it
    // and the interface are there: from when way_to() says `here`.
    Result<> add_address(unsigned index, const Prefix& prefix);
    Result<> remove_address(unsigned index, const Prefix& prefix);

    struct RouteSpec {
        Prefix to{};         // bits beyond the length are taken off
        unsigned index = 0;  // the interface to leave by; 0: by the gateway alone
        std::optional<Address> gateway{};
        std::uint32_t metric = 0;  // 0: the kernel's own
        std::uint32_t table = kMainTable;
        std::uint32_t mtu = 0;  // of this route; 0: the interface's
    };
    // A route that is there already is an error (it is somebody else's), unless it is the same.
    // `lasting`: is by another interface than TUN, and taken back by undo().
    Result<> add_route(const RouteSpec& route, bool lasting = false);
    Result<> remove_route(const RouteSpec& route);

    // How the kernel would send to this address now.
    struct Way {
        unsigned index = 0;
        std::optional<Address> gateway;
        Address source;
        std::uint32_t mtu = 0;  // of the path where that was learnt, else of the interface
        bool here = false;      // an address of this machine: it is taken
    };
    Result<Way> way_to(const Address& to, std::uint32_t mark = 0);

    // Super-packets of at most so many segments and bytes, so that one of TUN fills one batch of
    // UDP (0: leave as it is). Kernels without it: unsupported, which may be passed over.
    Result<> set_gso_limits(unsigned index, std::uint32_t segments, std::uint32_t bytes = 0);

    struct Link {
        std::string name;
        std::uint32_t mtu = 0, gso_max_segs = 0, gso_max_size = 0;
        bool up = false;
    };
    Result<Link> link(unsigned index);
    // Whether what comes in by this interface is filtered by the reverse path (rp_filter, of IPv4):
    // 0 not, 1 strictly, 2 loosely. (In /proc/sys it is not to be seen where a service has none.)
    Result<std::uint32_t> reverse_filter(unsigned index);
    // Addresses of an interface, and routes by it (0: by any) in a table.
    Result<std::vector<Prefix>> addresses(unsigned index);
    Result<std::vector<RouteSpec>> routes(unsigned index, std::uint32_t table = kMainTable);

    // Into which table the kernel looks for which packets: rules in the order of `priority`, until
    // one finds a route (ip-rule(8)). Unlike routes they hang on nothing, and stay.
    struct Rule {
        std::uint8_t family = 4;
        std::uint32_t priority = 0;
        std::uint32_t table = kMainTable;
        std::uint32_t mark = 0;  // of packets whose mark is this; 0: of all
        bool others = false;     // of those whose mark is not this instead
        // Routes to networks of this length, or of a shorter one, are none.
        std::optional<std::uint8_t> longer_than{};
        bool more = false;  // it asks for something else, too: never of ours
        bool operator==(const Rule&) const = default;
    };
    Result<> add_rule(const Rule& rule);     // one that is there already will do
    Result<> remove_rule(const Rule& rule);  // one that is not there will do
    Result<std::vector<Rule>> rules();       // of both families

    void undo() noexcept;  // lasting routes, the last first

    struct State;

  private:
    explicit Netlink(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael::vpn::path
