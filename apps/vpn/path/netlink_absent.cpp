// SPDX-License-Identifier: Apache-2.0
// Built without libmnl: addresses and routes are for others to set.
#include "vpn/path/netlink.hpp"

namespace dael::vpn::path {
namespace {

Error absent() {
    return {Code::unsupported,
            "this daelstrom was built without libmnl, and sets no addresses and routes: build it "
            "where libmnl-dev is installed, or set them with ip(8)"};
}

}  // namespace

struct Netlink::State {};

Netlink::Netlink(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Netlink::Netlink(Netlink&&) noexcept = default;
Netlink& Netlink::operator=(Netlink&&) noexcept = default;
Netlink::~Netlink() = default;

Result<Netlink> Netlink::open() {
    return absent();
}
Result<> Netlink::set_mtu(unsigned, std::uint32_t) {
    return absent();
}
Result<> Netlink::set_up(unsigned, bool) {
    return absent();
}
Result<> Netlink::add_address(unsigned, const Prefix&) {
    return absent();
}
Result<> Netlink::remove_address(unsigned, const Prefix&) {
    return absent();
}
Result<> Netlink::add_route(const RouteSpec&, bool) {
    return absent();
}
Result<> Netlink::remove_route(const RouteSpec&) {
    return absent();
}
Result<Netlink::Way> Netlink::way_to(const Address&, std::uint32_t) {
    return absent();
}
Result<> Netlink::set_gso_limits(unsigned, std::uint32_t, std::uint32_t) {
    return absent();
}
Result<Netlink::Link> Netlink::link(unsigned) {
    return absent();
}
Result<std::uint32_t> Netlink::reverse_filter(unsigned) {
    return absent();
}
Result<std::vector<Prefix>> Netlink::addresses(unsigned) {
    return absent();
}
Result<std::vector<Netlink::RouteSpec>> Netlink::routes(unsigned, std::uint32_t) {
    return absent();
}
Result<> Netlink::add_rule(const Rule&) {
    return absent();
}
Result<> Netlink::remove_rule(const Rule&) {
    return absent();
}
Result<std::vector<Netlink::Rule>> Netlink::rules() {
    return absent();
}
void Netlink::undo() noexcept {}

}  // namespace dael::vpn::path
