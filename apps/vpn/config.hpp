// SPDX-License-Identifier: Apache-2.0
// What a tunnel is to be: a file in TOML, read whole and checked whole, with every fault at once.
// docs/vpn.md has all settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>

#include "vpn/handshake/timers.hpp"
#include "vpn/keys.hpp"
#include "vpn/path/endpoint.hpp"
#include "vpn/path/netlink.hpp"

namespace dael::vpn {

// Least and most of what the tunnel's packets may be long. 1280 is the least that IPv6 has; below
// 576 no host need take a packet in one piece (RFC 791).
inline constexpr std::uint32_t kLeastMtu = 576, kMostMtu = 9000, kUsualMtu = 1400;

// A host by address or name, and a port: "192.0.2.1:4500", "[2001:db8::1]:4500",
// "vpn.example:4500".
struct HostPort {
    std::string host;  // IPv6 without brackets
    std::uint16_t port = 0;

    friend bool operator==(const HostPort&, const HostPort&) = default;
};
std::optional<HostPort> parse_host_port(std::string_view text);
std::string to_text(const HostPort& where);

struct PeerConfig {
    std::string name;  // for people; the key where there is none
    PublicKey public_key{};
    std::string shared_secret_file;          // empty: none
    std::optional<SecretKey> shared_secret;  // what was in it
    std::optional<HostPort> endpoint;
    path::Endpoint resolved;  // its address, once that was looked up
    std::vector<path::Prefix> allowed;
    std::uint32_t keepalive = 0;  // seconds; 0: none
    int line = 0;                 // where it stands
};

// What is used of the kernel where it is there; each can be turned off, as kernels are known to
// break them.
struct Switches {
    bool tun_offloads = true;  // super-packets from and to the interface
    bool udp_gso = true, udp_gro = true;
    bool udp_filter = true;  // what is nobody's does not reach the socket
    bool copy_dscp = false;  // into the outer header, where others see it
    bool clamp_mss = true;   // of TCP connections through the tunnel
    bool sandbox = true;     // seccomp
};

struct Config {
    std::string interface = "dael0";
    std::vector<path::Prefix> addresses;  // of the interface, with the network that each stands in
    std::uint32_t mtu = kUsualMtu;
    std::optional<path::Address> listen_address;
    std::uint16_t port = 0;  // 0: any
    std::string private_key_file;
    std::optional<SecretKey> private_key;  // what was in it
    bool routes = true;                    // to what the peers may have
    std::uint32_t mark = 0;                // of sealed packets; 0: aside.hpp says
    bool between_peers = false;            // whether packets may go from one peer to another
    std::uint32_t queues = 1;
    std::string user;     // whose rights are left after the start; empty: see rights.hpp
    std::string metrics;  // path of a socket for Prometheus; empty: none
    std::string state;    // path of a file in which timestamps go on over a restart; empty: none
    Time timestamp_floor{0};
    std::string keystream;  // backend that makes it ahead of time; empty: none is
    std::string key_log;    // path of a file for session keys; empty: none, as it should be
    std::uint64_t rekey_seconds = 0, rekey_packets = 0, rekey_bytes = 0;  // 0: as usual
    Switches switches;
    std::vector<PeerConfig> peers;
};

struct Fault {
    int line = 0;         // 0: of the file as a whole
    std::string message;  // what is wrong, and the mend
};

// Of text alone: no file is read, and secrets are left to load_keys(). Faults go by line.
Config parse_config(std::string_view text, std::vector<Fault>& faults);

// The files that the configuration names, by paths that begin in `folder`. Adds faults.
void load_keys(Config& config, const std::string& folder, std::vector<Fault>& faults);

// All of it, from a file. Errors: io. What is wrong with its content are the faults.
Result<Config> read_config(const std::string& path, std::vector<Fault>& faults);

// The interface that a configuration names, whatever else is wrong in it: what runs can be asked
// and ended by it. Errors: io; bad_format where that cannot be told.
Result<std::string> read_interface(const std::string& path);
std::string parse_interface(std::string_view text, std::vector<Fault>& faults);

// What is wrong with an endpoint at this address: it lies in the interface's own network, so that
// it could not be reached. (Of other networks see aside.hpp.) Empty: nothing.
std::string endpoint_fault(const Config& config, const std::string& host,
                           const path::Address& address);

// "FILE:LINE: MESSAGE", a line each.
std::string describe(const std::string& path, const std::vector<Fault>& faults);

// The short form: two ends and one secret, as the thesis had it. Errors: as keys_of_init().
Result<Config> server_config(std::uint16_t port, const std::string& init_file);
Result<Config> client_config(const HostPort& server, const std::string& init_file);

}  // namespace dael::vpn
