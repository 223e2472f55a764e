// SPDX-License-Identifier: Apache-2.0
// From TOML to a Config. toml++ is here alone.
#include "vpn/config.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

// toml++ 3.3 asserts of a file's text what it then finds a fault itself ("[!]" for one), and under
// NDEBUG has clang assume it: so neither.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "io/text.hpp"
#include "vpn/allowed.hpp"

namespace dael::vpn {
namespace {

int line_of(const toml::node& node) {
    return static_cast<int>(node.source().begin.line);
}

// How many single letters two words are apart, to guess what was meant.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t corner = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t change = corner + (a[i] != b[j]);
            corner = row[j + 1];
            row[j + 1] = std::min({change, corner + 1, row[j] + 1});
        }
    }
    return row[b.size()];
}

// One table of the file, whose settings are asked for by name; what was asked for by nobody is a
// fault in the end.
class Table {
  public:
    Table(const toml::table& table, std::string name, std::vector<Fault>& faults)
        : table_(table), name_(std::move(name)), faults_(faults) {}

    int line() const { return line_of(table_); }
    void fault(int line, std::string message) { faults_.push_back({line, std::move(message)}); }

    const toml::node* find(std::string_view key) {
        known_.emplace_back(key);
        return table_.get(key);
    }

    void text(std::string_view key, std::string& value) {
        const auto* node = find(key);
        if (!node) return;
        if (const auto* found = node->as_string(); found && !found->get().empty())
            value = found->get();
        else
            fault(line_of(*node), named(key) + " must be a text in quotes, and not empty");
        if (value.find('\0') != value.npos) {
            fault(line_of(*node), named(key) + " has a zero byte in it");
            value.clear();
        }
    }
    void flag(std::string_view key, bool& value) {
        const auto* node = find(key);
        if (!node) return;
        if (const auto* found = node->as_boolean())
            value = found->get();
        else
            fault(line_of(*node), named(key) + " must be true or false");
    }
    template <class Number>
    void number(std::string_view key, Number& value, std::uint64_t least, std::uint64_t most) {
        const auto* node = find(key);
        if (!node) return;
        const auto* found = node->as_integer();
        if (found && found->get() >= 0 && static_cast<std::uint64_t>(found->get()) >= least &&
            static_cast<std::uint64_t>(found->get()) <= most)
            value = static_cast<Number>(found->get());
        else
            fault(line_of(*node), named(key) + " must be a whole number from " +
                                      std::to_string(least) + " to " + std::to_string(most));
    }
    // `read(text, line)` for each of a list of texts; one text alone is a list of one.
    template <class Read>
    void texts(std::string_view key, Read&& read) {
        const auto* node = find(key);
        if (!node) return;
        if (const auto* one = node->as_string()) return read(one->get(), line_of(*node));
        const auto* list = node->as_array();
        if (!list) return fault(line_of(*node), named(key) + " must be a list of texts in quotes");
        for (const toml::node& item : *list) {
            if (const auto* one = item.as_string())
                read(one->get(), line_of(item));
            else
                fault(line_of(item), named(key) + " must be a list of texts in quotes");
        }
    }
    std::string named(std::string_view key) const {
        return (name_.empty() ? "" : name_ + ".") + std::string(key);
    }

    void end() {
        for (const auto& [key, node] : table_) {
            const std::string_view word = key.str();
            if (std::ranges::find(known_, word) != known_.end()) continue;
            std::string guess;
            std::size_t nearest = 1 + word.size() / 3;
            for (const std::string& known : known_)
                if (const std::size_t apart = distance(known, word); apart < nearest) {
                    nearest = apart;
                    guess = "; is " + known + " meant?";
                }
            fault(line_of(node),
                  "there is no setting " + app::in_quotes(named(word.substr(0, 60))) + guess);
        }
    }

  private:
    const toml::table& table_;
    std::string name_;
    std::vector<Fault>& faults_;
    std::vector<std::string> known_;
};

// One letter of UTF-8, whose size is known, as TOML escapes it in double quotes.
std::string escaped(std::string_view letter) {
    std::uint32_t value = static_cast<unsigned char>(letter[0]) & (0xffu >> (letter.size() + 1));
    for (const char c : letter.substr(1))
        value = value << 6 | (static_cast<unsigned char>(c) & 0x3f);
    char text[16];
    std::snprintf(text, sizeof text, "\\U%08X", static_cast<unsigned>(value));
    return text;
}

// The same in ASCII alone: toml++ 3.3 takes some letters in some places for what cannot be
// (is_non_ascii_horizontal_whitespace). TOML has letters beyond ASCII in comments and in quotes
// only; of single ones, where nothing can be escaped, they are refused here. Where that cannot be
// done: nothing, and `line` is where.
std::optional<std::string> in_ascii(std::string_view text, int& line) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
    std::string out;
    line = 1;
    char within = 0;  // the quote that ends where we are; '#': a line's end does; 0: in neither
    bool several = false;  // a text of several lines
    while (!text.empty()) {
        std::size_t size = app::utf8_size(text);
        const char c = text[0];
        if (size == 0) return {};
        if (size > 1) {
            if (within != '"' && within != '#') return {};
            out += within == '#' ? "?" : escaped(text.substr(0, size));
            text.remove_prefix(size);
            continue;
        }
        const bool three = text.size() >= 3 && text[1] == c && text[2] == c;
        if (within == 0 && (c == '"' || c == '\'' || c == '#')) {
            within = c;
            several = c != '#' && three;
            size = several ? 3 : 1;
        } else if (c == '\n') {
            ++line;
            if (!several) within = 0;
        } else if (c == '\\' && within == '"' && text.size() > 1 && text[1] != '\n') {
            if ((text[1] & 0x80) != 0) return {};  // no escape, and none shall come of it
            size = 2;
        } else if (within != 0 && c == within && within != '#' && (!several || three)) {
            size = several ? 3 : 1;
            within = 0, several = false;
        }
        out += text.substr(0, size);
        text.remove_prefix(size);
    }
    return out;
}

bool is_interface_name(std::string_view name) {
    // The kernel takes more; what has a meaning to shells, paths or sysctl is nobody's wish.
    return !name.empty() && name.size() < 16 && name[0] != '-' && name[0] != '.' &&
           std::ranges::all_of(name, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
           });
}

void read_listen(Table& table, Config& config) {
    std::string listen;
    table.text("listen", listen);
    table.number("port", config.port, 1, 65535);
    if (listen.empty()) return;
    const auto ip = path::Address::parse(listen);
    if (ip)
        config.listen_address = *ip;
    else
        table.fault(line_of(*table.find("listen")),
                    "listen must be an address of this machine, as \"192.0.2.1\"; the port is "
                    "`port = 4500`");
}

void read_switches(Table& top, Config& config, std::vector<Fault>& faults) {
    const auto* node = top.find("switches");
    if (!node) return;
    const auto* table = node->as_table();
    if (!table) return top.fault(line_of(*node), "switches must be a table: [switches]");
    Table switches(*table, "switches", faults);
    switches.flag("tun_offloads", config.switches.tun_offloads);
    switches.flag("udp_gso", config.switches.udp_gso);
    switches.flag("udp_gro", config.switches.udp_gro);
    switches.flag("udp_filter", config.switches.udp_filter);
    switches.flag("copy_dscp", config.switches.copy_dscp);
    switches.flag("clamp_mss", config.switches.clamp_mss);
    switches.flag("sandbox", config.switches.sandbox);
    switches.end();
}

void read_rekey(Table& top, Config& config, std::vector<Fault>& faults) {
    const auto* node = top.find("rekey");
    if (!node) return;
    const auto* table = node->as_table();
    if (!table) return top.fault(line_of(*node), "rekey must be a table: [rekey]");
    constexpr auto most = std::uint64_t{1} << 62;
    Table rekey(*table, "rekey", faults);
    // Longer than 2 minutes is not for asking: what a key that is stolen opens grows with it.
    rekey.number("seconds", config.rekey_seconds, 1, 120);
    rekey.number("packets", config.rekey_packets, 1000, most);
    rekey.number("bytes", config.rekey_bytes, 1 << 20, most);
    rekey.end();
}

PeerConfig read_peer(Table& table) {
    PeerConfig peer;
    peer.line = table.line();
    table.text("name", peer.name);
    std::string key, endpoint;
    table.text("public_key", key);
    if (const auto parsed = parse_public_key(key); parsed && *parsed != PublicKey{})
        peer.public_key = *parsed;
    else if (parsed)
        table.fault(line_of(*table.find("public_key")), "public_key: nobody has this one, all 0");
    else if (key.empty())
        table.fault(peer.line,
                    "a peer needs public_key = \"...\": what `daelstrom vpn pubkey` "
                    "prints of its private key");
    else
        table.fault(line_of(*table.find("public_key")),
                    "public_key is no key: 44 characters of base64, as `daelstrom vpn pubkey` "
                    "prints them");
    table.text("shared_secret_file", peer.shared_secret_file);
    table.text("endpoint", endpoint);
    if (!endpoint.empty()) {
        peer.endpoint = parse_host_port(endpoint);
        if (!peer.endpoint)
            table.fault(line_of(*table.find("endpoint")),
                        "endpoint must be HOST:PORT, or [ADDRESS]:PORT for one of IPv6");
    }
    table.texts("allowed", [&](const std::string& text, int line) {
        const auto prefix = path::Prefix::parse(text);
        if (!prefix)
            table.fault(line, "allowed: " + app::in_quotes(text.substr(0, 60)) +
                                  " is neither an address nor a prefix as 10.0.0.0/24");
        else if (prefix->masked() != *prefix)
            table.fault(line, "allowed: " + prefix->text() + " has bits behind its prefix; is " +
                                  prefix->masked().text() + " meant?");
        else
            peer.allowed.push_back(*prefix);
    });
    table.number("keepalive", peer.keepalive, 0, 65535);
    table.end();
    return peer;
}

void read_peers(Table& top, Config& config, std::vector<Fault>& faults) {
    const auto* node = top.find("peer");
    if (!node) return top.fault(0, "there is no peer; each is a table: [[peer]]");
    const auto* list = node->as_array();
    if (!list || list->empty())
        return top.fault(line_of(*node), "peers are tables of a list: [[peer]], in two brackets");
    Allowed allowed;
    std::set<PublicKey> keys;
    std::vector<std::string> names;
    for (const toml::node& item : *list) {
        const auto* table = item.as_table();
        if (!table) {
            top.fault(line_of(item), "a peer is a table: [[peer]]");
            continue;
        }
        Table peer_table(*table, "peer", faults);
        PeerConfig peer = read_peer(peer_table);
        if (peer.public_key != PublicKey{} && !keys.insert(peer.public_key).second)
            top.fault(peer.line, "another peer has this public_key; each has its own");
        if (!peer.name.empty() && std::ranges::find(names, peer.name) != names.end())
            top.fault(peer.line, "another peer is called " + app::in_quotes(peer.name));
        names.push_back(peer.name);
        const auto number = static_cast<std::uint32_t>(config.peers.size());
        for (const path::Prefix& prefix : peer.allowed)
            if (!allowed.add(prefix, number))
                top.fault(peer.line, "allowed: " + prefix.text() +
                                         " is another peer's, or stands there twice; an address is "
                                         "one peer's");
        config.peers.push_back(std::move(peer));
    }
}

void read_name(Table& top, std::string& interface) {
    top.text("interface", interface);
    if (!is_interface_name(interface))
        top.fault(line_of(*top.find("interface")),
                  "interface must be a name of at most 15 letters, digits, '-', '_' and '.'");
}

void read_top(Table& top, Config& config, std::vector<Fault>& faults) {
    read_name(top, config.interface);
    top.texts("address", [&](const std::string& text, int line) {
        if (const auto prefix = path::Prefix::parse(text))
            config.addresses.push_back(*prefix);
        else
            top.fault(line, "address: " + app::in_quotes(text.substr(0, 60)) +
                                " is no address with its network, as 10.0.0.1/24");
    });
    top.number("mtu", config.mtu, kLeastMtu, kMostMtu);
    const bool six = std::ranges::any_of(
        config.addresses, [](const path::Prefix& p) { return p.address.family == 6; });
    if (six && config.mtu < 1280)
        top.fault(line_of(*top.find("mtu")),
                  "mtu: IPv6 needs 1280 at least (RFC 8200); leave the IPv6 address out, or take "
                  "more");
    read_listen(top, config);
    top.text("private_key_file", config.private_key_file);
    if (config.private_key_file.empty())
        top.fault(0,
                  "private_key_file = \"...\" is missing: the file that `daelstrom vpn genkey "
                  "-o FILE` writes");
    top.flag("routes", config.routes);
    top.number("mark", config.mark, 1, 0xffffffff);
    if (config.mark >= 253 && config.mark <= 255)
        top.fault(line_of(*top.find("mark")),
                  "mark: it is the number of a routing table too, and 253 to 255 are the kernel's "
                  "own; take another");
    top.flag("between_peers", config.between_peers);
    top.number("queues", config.queues, 1, 16);
    top.text("user", config.user);
    top.text("metrics", config.metrics);
    top.text("state", config.state);
    top.text("keystream", config.keystream);
    top.text("debug_log_session_keys", config.key_log);
    read_switches(top, config, faults);
    const bool on_host = config.keystream == "cpu" || config.keystream == "openssl";
    if (!config.keystream.empty() && !on_host && config.switches.sandbox)
        top.fault(
            line_of(*top.find("keystream")),
            "keystream: a device's driver makes calls that the sandbox refuses; set sandbox = "
            "false in [switches], or take \"cpu\"");
    read_rekey(top, config, faults);
    read_peers(top, config, faults);
    top.end();
}

// Those that are addresses; what names stand for is seen at the start.
void check_endpoints(const Config& config, std::vector<Fault>& faults) {
    for (const PeerConfig& peer : config.peers) {
        if (!peer.endpoint) continue;
        const std::string& host = peer.endpoint->host;
        const auto ip = path::Address::parse(host.substr(0, host.find('%')));
        if (!ip) continue;
        if (std::string fault = endpoint_fault(config, host, *ip); !fault.empty())
            faults.push_back({peer.line, std::move(fault)});
    }
}

std::optional<toml::table> parse(std::string_view text, std::vector<Fault>& faults) {
    int line = 0;
    const auto ascii = in_ascii(text, line);
    if (!ascii) {
        faults.push_back({line,
                          "this is no TOML: letters beyond ASCII, in UTF-8, stand in double quotes "
                          "or behind #"});
        return {};
    }
    auto parsed = toml::parse(*ascii);
    if (parsed) return std::move(parsed).table();
    const auto& error = parsed.error();
    faults.push_back({static_cast<int>(error.source().begin.line),
                      "this is no TOML: " + std::string(error.description())});
    return {};
}

}  // namespace

std::string parse_interface(std::string_view text, std::vector<Fault>& faults) {
    std::string interface = Config{}.interface;
    const auto table = parse(text, faults);
    if (!table) return interface;
    Table top(*table, "", faults);
    read_name(top, interface);
    return interface;
}

Config parse_config(std::string_view text, std::vector<Fault>& faults) {
    Config config;
    const auto table = parse(text, faults);
    if (!table) return config;
    Table top(*table, "", faults);
    read_top(top, config, faults);
    check_endpoints(config, faults);
    std::ranges::stable_sort(faults, {}, &Fault::line);
    return config;
}

}  // namespace dael::vpn
