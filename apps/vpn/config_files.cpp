// SPDX-License-Identifier: Apache-2.0
// What a configuration names: its own file, and the secrets' files; and the short form, which has
// none.
#include <algorithm>
#include <array>
#include <filesystem>

#include "io/input.hpp"
#include "io/text.hpp"
#include "vpn/config.hpp"
#include "vpn/handshake/crypto.hpp"

namespace dael::vpn {
namespace {

constexpr std::size_t kMostText = 4u << 20;  // bytes of a configuration

// A path of the file, which begins where the file lies.
std::string beside(const std::string& folder, const std::string& path) {
    return path.starts_with('/') ? path : (std::filesystem::path(folder) / path).string();
}

Result<std::string> read_text(const std::string& path) {
    DAEL_LET(input, app::Input::open(path));
    std::string text;
    std::array<std::uint8_t, 16384> buffer;
    for (;;) {
        DAEL_LET(got, input.fill(buffer));
        if (got == 0) return text;
        if (text.size() + got > kMostText)
            return Error{Code::bad_format,
                         app::input_name(path) + " is longer than 4 MiB; is it a configuration?"};
        text.append(reinterpret_cast<const char*>(buffer.data()), got);
    }
}

path::Prefix prefix(const char* text) {
    return *path::Prefix::parse(text);
}

void one_peer(Config& config, const PublicKey& key, const SecretKey& shared, const char* v4,
              const char* v6) {
    PeerConfig peer;
    peer.public_key = key;
    peer.shared_secret = shared;
    peer.allowed = {prefix(v4), prefix(v6)};
    config.peers.push_back(std::move(peer));
}

// As RFC 1123 has names, with underscores, which people use.
bool may_be_name(std::string_view text) {
    return !text.empty() && text.size() <= 253 && text[0] != '-' && text[0] != '.' &&
           std::ranges::all_of(text, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '.' || c == '_';
           });
}

// The networks of the short form, both private (RFC 1918, RFC 4193).
constexpr const char* kServer4 = "10.86.41.1/24";
constexpr const char* kClient4 = "10.86.41.2/24";
constexpr const char* kServer6 = "fdda:e157:726f::1/64";
constexpr const char* kClient6 = "fdda:e157:726f::2/64";

}  // namespace

std::optional<HostPort> parse_host_port(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos) return {};
    // A port is spelt in one way everywhere.
    const std::string_view digits = text.substr(colon + 1);
    const auto port = path::Endpoint::parse("192.0.2.1:" + std::string(digits));
    if (!port || port->port == 0) return {};
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[')) {
        if (!path::Endpoint::parse(text)) return {};
        host = host.substr(1, host.size() - 2);
    } else if (!may_be_name(host)) {
        return {};
    }
    return HostPort{std::string(host), port->port};
}

std::string to_text(const HostPort& where) {
    const bool six = where.host.find(':') != where.host.npos;
    return (six ? "[" + where.host + "]" : where.host) + ":" + std::to_string(where.port);
}

void load_keys(Config& config, const std::string& folder, std::vector<Fault>& faults) {
    if (!config.private_key_file.empty()) {
        auto key = read_key(beside(folder, config.private_key_file), "private key");
        if (key)
            config.private_key = std::move(*key);
        else
            faults.push_back({0, key.error().message});
    }
    const auto crypto = Crypto::open();
    KeyPair any;  // a key of low order (RFC 7748 6.1) is one with whatever key of ours
    std::array<std::uint8_t, kKeySize> bytes{1};
    const bool able = crypto && any.set(SecretKey(bytes));
    std::optional<PublicKey> own;
    if (config.private_key)
        if (const auto key = public_key(*config.private_key)) own = *key;
    for (PeerConfig& peer : config.peers) {
        if (own && peer.public_key == *own)
            faults.push_back({peer.line, "public_key: this is our own, of private_key_file"});
        SecretKey agreed;
        if (able && peer.public_key != PublicKey{} && !crypto->agree(any, peer.public_key, agreed))
            faults.push_back({peer.line,
                              "public_key: nobody has this one: whatever our key is, what both "
                              "agree on would be 0"});
        if (peer.shared_secret_file.empty()) continue;
        auto key = read_key(beside(folder, peer.shared_secret_file), "shared secret");
        if (key)
            peer.shared_secret = std::move(*key);
        else
            faults.push_back({peer.line, key.error().message});
    }
    std::ranges::stable_sort(faults, {}, &Fault::line);
}

Result<Config> read_config(const std::string& path, std::vector<Fault>& faults) {
    DAEL_LET(text, read_text(path));
    Config config = parse_config(text, faults);
    const std::string folder = std::filesystem::path(path).parent_path().string();
    load_keys(config, folder, faults);
    for (std::string* each : {&config.metrics, &config.state, &config.key_log})
        if (!each->empty()) *each = beside(folder, *each);
    return config;
}

Result<std::string> read_interface(const std::string& path) {
    DAEL_LET(text, read_text(path));
    std::vector<Fault> faults;
    std::string interface = parse_interface(text, faults);
    if (faults.empty()) return interface;
    std::string said = describe(path, faults);
    said.pop_back();
    return Error{Code::bad_format, said};
}

std::string endpoint_fault(const Config& config, const std::string& host,
                           const path::Address& address) {
    // (With an interface said, as in fe80::1%eth0, it is reached by that one.)
    if (!config.routes || host.find('%') != host.npos) return {};
    for (const path::Prefix& own : config.addresses) {
        if (!own.holds(address)) continue;
        const std::string text = address.text();
        return "endpoint " + host + (host == text ? "" : " (" + text + ")") + " lies in " +
               own.masked().text() +
               ", the interface's own network, which goes into the tunnel; take an address from "
               "outside, or another network for `address`";
    }
    return {};
}

std::string describe(const std::string& path, const std::vector<Fault>& faults) {
    std::string out;
    for (const Fault& fault : faults) {
        out += app::shown_name(path) + ":";
        if (fault.line > 0) out += std::to_string(fault.line) + ":";
        out += " " + app::on_one_line(fault.message) + "\n";
    }
    return out;
}

Result<Config> server_config(std::uint16_t port, const std::string& init_file) {
    DAEL_LET(keys, keys_of_init(init_file));
    DAEL_LET(client, public_key(keys.client));
    Config config;
    config.port = port;
    config.private_key = std::move(keys.server);
    config.addresses = {prefix(kServer4), prefix(kServer6)};
    one_peer(config, client, keys.shared, "10.86.41.2/32", "fdda:e157:726f::2/128");
    return config;
}

Result<Config> client_config(const HostPort& server, const std::string& init_file) {
    DAEL_LET(keys, keys_of_init(init_file));
    DAEL_LET(server_key, public_key(keys.server));
    Config config;
    config.private_key = std::move(keys.client);
    config.addresses = {prefix(kClient4), prefix(kClient6)};
    one_peer(config, server_key, keys.shared, "10.86.41.1/32", "fdda:e157:726f::1/128");
    config.peers[0].endpoint = server;
    config.peers[0].keepalive = 25;
    return config;
}

}  // namespace dael::vpn
