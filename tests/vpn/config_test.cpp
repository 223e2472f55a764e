// SPDX-License-Identifier: Apache-2.0
// Configurations: what they mean, and every fault of one at once, with its line and what mends it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "vpn/aside.hpp"
#include "vpn/config.hpp"

namespace dael::vpn {
namespace {

constexpr const char* kKey1 = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
constexpr const char* kKey2 = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=";

std::string good() {
    return std::string(
               "interface = \"tun7\"\n"
               "address = [\"10.1.0.1/24\", \"fd00::1/64\"]\n"
               "port = 4500\n"
               "mtu = 1300\n"
               "private_key_file = \"own.key\"\n"
               "queues = 2\n"
               "[switches]\n"
               "udp_gso = false\n"
               "[rekey]\n"
               "seconds = 60\n"
               "[[peer]]\n"
               "name = \"one\"\n"
               "public_key = \"") +
           kKey1 +
           "\"\n"
           "endpoint = \"[2001:db8::1]:4501\"\n"
           "allowed = [\"10.1.0.2\", \"10.2.0.0/16\", \"fd00::2\"]\n"
           "keepalive = 25\n"
           "[[peer]]\n"
           "public_key = \"" +
           kKey2 +
           "\"\n"
           "endpoint = \"vpn.example:4500\"\n"
           "allowed = \"10.3.0.0/16\"\n"
           "shared_secret_file = \"/etc/secret\"\n";
}

std::vector<Fault> faults_of(std::string_view text) {
    std::vector<Fault> faults;
    (void)parse_config(text, faults);
    return faults;
}

// `good()` with one line in the place of another; says which line that is.
int changed(std::string& text, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
    return 1 +
           static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

TEST(Config, SaysWhatItSays) {
    std::vector<Fault> faults;
    const Config config = parse_config(good(), faults);
    ASSERT_TRUE(faults.empty()) << describe("f", faults);
    EXPECT_EQ(config.interface, "tun7");
    ASSERT_EQ(config.addresses.size(), 2u);
    EXPECT_EQ(config.addresses[0].text(), "10.1.0.1/24");
    EXPECT_EQ(config.addresses[1].text(), "fd00::1/64");
    EXPECT_EQ(config.port, 4500);
    EXPECT_EQ(config.mtu, 1300u);
    EXPECT_EQ(config.queues, 2u);
    EXPECT_FALSE(config.switches.udp_gso);
    EXPECT_TRUE(config.keystream.empty());
    EXPECT_TRUE(config.switches.udp_gro);
    EXPECT_EQ(config.rekey_seconds, 60u);
    ASSERT_EQ(config.peers.size(), 2u);
    EXPECT_EQ(config.peers[0].name, "one");
    EXPECT_EQ(to_text(config.peers[0].public_key), kKey1);
    EXPECT_EQ(config.peers[0].keepalive, 25u);
    EXPECT_EQ(*config.peers[0].endpoint, (HostPort{"2001:db8::1", 4501}));
    EXPECT_EQ(*config.peers[1].endpoint, (HostPort{"vpn.example", 4500}));
    EXPECT_EQ(config.peers[0].allowed.size(), 3u);
    EXPECT_EQ(config.peers[1].allowed.size(), 1u) << "one text alone is a list of one";
    EXPECT_EQ(config.peers[1].shared_secret_file, "/etc/secret");
}

TEST(Config, EachFaultHasItsLineAndItsMend) {
    const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"interface = \"tun7\"", "interface = \"a/b\"", "interface must be a name"},
        {"interface = \"tun7\"", "interface = \"sixteen_letters_\"", "at most 15"},
        {"interface = \"tun7\"", "interface = 7", "must be a text in quotes"},
        {"interface = \"tun7\"", "interfaces = \"tun7\"", "is interface meant?"},
        {"\"10.1.0.1/24\"", "\"10.1.0.1/33\"", "no address with its network"},
        {"\"10.1.0.1/24\"", "10", "must be a list of texts"},
        {"port = 4500", "port = 0", "from 1 to 65535"},
        {"port = 4500", "port = 65536", "from 1 to 65535"},
        {"port = 4500", "port = -1", "from 1 to 65535"},
        {"port = 4500", "port = \"4500\"", "must be a whole number"},
        {"mtu = 1300", "mtu = 100", "from 576 to 9000"},
        {"mtu = 1300", "mtu = 1279", "IPv6 needs 1280"},
        {"queues = 2", "queues = 17", "from 1 to 16"},
        {"queues = 2", "keystream = \"cuda\"", "set sandbox = false"},
        {"queues = 2", "mark = 0", "from 1 to 4294967295"},
        {"queues = 2", "mark = 4294967296", "from 1 to 4294967295"},
        {"queues = 2", "mark = 254", "the kernel's own"},
        {"udp_gso = false", "udp_gso = 0", "true or false"},
        {"udp_gso = false", "udp_gs0 = false", "is udp_gso meant?"},
        {"seconds = 60", "seconds = 600", "from 1 to 120"},
        {"name = \"one\"", "name = \"\"", "not empty"},
        {"keepalive = 25", "keepalive = 1.5", "must be a whole number"},
        {"endpoint = \"vpn.example:4500\"", "endpoint = \"vpn.example\"", "HOST:PORT"},
        {"endpoint = \"vpn.example:4500\"", "endpoint = \"2001:db8::1:45\"", "HOST:PORT"},
        {"allowed = \"10.3.0.0/16\"", "allowed = \"10.3.0.1/16\"", "10.3.0.0/16 meant?"},
        {"allowed = \"10.3.0.0/16\"", "allowed = \"10.3/16\"", "neither an address"},
        {"port = 4500", "port = ", "this is no TOML"},
        {"[switches]", "[!]", "this is no TOML"},
        {"port = 4500", "p\xc3\xb6rt = 4500", "beyond ASCII"},
        {"port = 4500", "\xc4\x93", "beyond ASCII"},
        {"\"one\"", "\"\\\xc4\x93\"", "beyond ASCII"},
        {"\"one\"", "\"\xc4\"", "beyond ASCII"},
    };
    for (const auto& each : cases) {
        std::string text = good();
        const int line = changed(text, each.from, each.to);
        const auto faults = faults_of(text);
        ASSERT_FALSE(faults.empty()) << each.to;
        EXPECT_EQ(faults[0].line, line) << each.to << ": " << faults[0].message;
        EXPECT_NE(faults[0].message.find(each.says), std::string::npos)
            << each.to << ": " << faults[0].message;
    }
}

TEST(Config, PeopleAreCalledWhatTheyAreCalled) {
    std::string text = good();
    changed(text, "\"one\"", "\"Z\xc3\xbcrich \\\" '\"  # \xc3\xbc");
    std::vector<Fault> faults;
    const Config config = parse_config(text, faults);
    ASSERT_TRUE(faults.empty()) << describe("f", faults);
    EXPECT_EQ(config.peers[0].name, "Z\xc3\xbcrich \" '");
}

TEST(Config, AllFaultsAreSaidAtOnce) {
    std::string text = good();
    changed(text, "port = 4500", "port = 0");
    changed(text, "mtu = 1300", "mtu = 1");
    changed(text, "udp_gso", "nonsense");
    changed(text, kKey1, "short");
    changed(text, "10.2.0.0/16", "10.2.0.0/40");
    const auto faults = faults_of(text);
    ASSERT_EQ(faults.size(), 5u) << describe("f", faults);
    for (std::size_t i = 1; i < faults.size(); ++i) EXPECT_LE(faults[i - 1].line, faults[i].line);
    EXPECT_NE(describe("f", faults).find("f:3: port must be"), std::string::npos);
}

TEST(Config, PeersAreTheirOwn) {
    std::string text = good();
    changed(text, kKey2, kKey1);
    EXPECT_NE(describe("f", faults_of(text)).find("has this public_key"), std::string::npos);
    text = good();
    changed(text, "10.3.0.0/16", "10.2.0.0/16");
    EXPECT_NE(describe("f", faults_of(text)).find("is another peer's"), std::string::npos);
    text = good();
    changed(text, "[2001:db8::1]:4501", "[fd00::7]:4501");
    EXPECT_NE(describe("f", faults_of(text)).find("goes into the tunnel"), std::string::npos);
    changed(text, "mtu = 1300", "mtu = 1300\nroutes = false");
    EXPECT_TRUE(faults_of(text).empty()) << "it is for others to have a route there";
    EXPECT_NE(describe("f", faults_of("")).find("no peer"), std::string::npos);
    EXPECT_NE(describe("f", faults_of("")).find("private_key_file"), std::string::npos);
}

TEST(Config, NetworksWithAnEndpointGoAside) {
    std::string text = good();
    changed(text, "10.2.0.0/16",
            "10.2.0.0/16\", \"0.0.0.0/0\", \"2001:db8::/32\", \"2001:db8:1::/48");
    std::vector<Fault> faults;
    Config config = parse_config(text, faults);
    ASSERT_TRUE(faults.empty()) << describe("f", faults);
    const auto texts = [](const Aside& aside) {
        std::string all;
        for (const path::Prefix& network : aside.networks()) all += network.text() + " ";
        return all;
    };
    EXPECT_EQ(texts(Aside(config)), "0.0.0.0/0 ") << "no endpoint is known yet";
    config.peers[0].resolved = *path::Endpoint::parse("[2001:db8::1]:4501");
    const Aside aside(config);
    EXPECT_EQ(texts(aside), "0.0.0.0/0 2001:db8::/32 ");
    EXPECT_EQ(aside.mark(), kUsualMark);
    EXPECT_TRUE(aside.has(*path::Prefix::parse("2001:db8::/32")));
    EXPECT_FALSE(aside.has(*path::Prefix::parse("10.2.0.0/16")));
    config.mark = 7;
    EXPECT_EQ(Aside(config).mark(), 7u);
    config.routes = false;
    EXPECT_TRUE(Aside(config).empty());
    EXPECT_EQ(Aside(config).mark(), 7u) << "for rules of one's own";
    config.mark = 0;
    EXPECT_EQ(Aside(config).mark(), 0u);
}

TEST(Config, AnythingAtAllIsReadToItsEnd) {
    const std::string text = good();
    for (std::size_t size = 0; size < text.size(); ++size)
        (void)faults_of(std::string_view(text).substr(0, size));
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        std::string damaged = text;
        for (int j = 0; j < 3; ++j)
            damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
        (void)faults_of(damaged);
    }
    EXPECT_FALSE(faults_of(std::string(5000, '[')).empty());
    EXPECT_FALSE(faults_of("a" + std::string(3000, '.') + " = 1").empty());
}

TEST(Keys, AreSpeltAsWireGuardSpellsThem) {
    std::mt19937 random(3);
    for (int i = 0; i < 300; ++i) {
        PublicKey key{};
        for (auto& byte : key) byte = static_cast<std::uint8_t>(random());
        if (i == 0) key.fill(0);
        if (i == 1) key.fill(0xff);
        const std::string text = to_text(key);
        ASSERT_EQ(text.size(), kKeyText);
        const auto back = parse_public_key(text);
        ASSERT_TRUE(back.has_value()) << text;
        EXPECT_EQ(*back, key);
    }
    EXPECT_EQ(to_text(PublicKey{}), std::string(43, 'A') + "=");
    PublicKey ones;
    ones.fill(0xff);
    EXPECT_EQ(to_text(ones), std::string(42, '/') + "8=");
}

TEST(Keys, OneTextIsOneKey) {
    const std::string text = kKey1;
    for (std::size_t at = 0; at < text.size(); ++at)
        for (int c = 0; c < 256; ++c) {
            std::string other = text;
            other[at] = static_cast<char>(c);
            if (other == text) continue;
            const auto key = parse_public_key(other);
            if (key) {
                EXPECT_EQ(to_text(*key), other);
            }
        }
    EXPECT_FALSE(parse_public_key(text.substr(0, 43)));
    EXPECT_FALSE(parse_public_key(text + "="));
    EXPECT_FALSE(parse_public_key(text.substr(0, 42) + "9="));  // bits that no byte has
}

struct Folder {
    std::string path;
    Folder() {
        char name[] = "/tmp/dael_vpn_config_XXXXXX";
        path = ::mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string write(const std::string& name, const std::string& text) const {
        const std::string whole = path + "/" + name;
        std::ofstream(whole) << text;
        ::chmod(whole.c_str(), 0600);
        return whole;
    }
};

TEST(Config, SecretsComeFromFilesBesideIt) {
    const Folder folder;
    folder.write("own.key", std::string("mGVCsmHpScKsPGeWn95klR7cSoV2y5xVbhh9aaF7IGg=") + "\n");
    folder.write("shared", std::string(kKey2) + "\n");
    std::string text = good();
    changed(text, "/etc/secret", "shared");
    std::vector<Fault> faults;
    auto config = read_config(folder.write("c.toml", text), faults);
    ASSERT_TRUE(config);
    EXPECT_TRUE(faults.empty()) << describe("f", faults);
    EXPECT_TRUE(config->private_key.has_value());
    EXPECT_FALSE(config->peers[0].shared_secret.has_value());
    EXPECT_TRUE(config->peers[1].shared_secret.has_value());

    folder.write("shared", "no key\n");
    faults.clear();
    ASSERT_TRUE(read_config(folder.path + "/c.toml", faults));
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_GT(faults[0].line, 10) << "it is that peer's";
    EXPECT_EQ(describe("f", faults).find("no key\n"), std::string::npos) << "a secret is not shown";
}

TEST(Config, AKeyThatNobodyHasIsNone) {
    const Folder folder;
    folder.write("own.key", std::string("mGVCsmHpScKsPGeWn95klR7cSoV2y5xVbhh9aaF7IGg=") + "\n");
    folder.write("shared", std::string(kKey2) + "\n");
    // Of order 1 and of order 8 (RFC 7748 6.1), and 0, which is what a peer without a key has.
    for (const char* key : {"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
                            "4Ot6fDtBuK4WVuP68Z/EatoJjeucMrH9hmIFFl9JuAA=",
                            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}) {
        std::string text = good();
        changed(text, "/etc/secret", "shared");
        const int line = changed(text, kKey1, key);
        std::vector<Fault> faults;
        ASSERT_TRUE(read_config(folder.write("c.toml", text), faults));
        ASSERT_EQ(faults.size(), 1u) << key;
        EXPECT_LE(std::abs(faults[0].line - line), 2) << "it is that peer's";
        EXPECT_NE(faults[0].message.find("nobody has"), std::string::npos) << faults[0].message;
    }
}

TEST(Config, WhatRunsIsFoundByAnyConfiguration) {
    const Folder folder;
    // Its keys are gone, a setting is none, a peer has no key.
    const std::string broken = folder.write("c.toml", good() + "mtuu = 1\n[[peer]]\n");
    const auto name = read_interface(broken);
    ASSERT_TRUE(name) << name.error().message;
    EXPECT_EQ(*name, "tun7");
    EXPECT_EQ(*read_interface(folder.write("c.toml", "port = 0\n")), "dael0");
    for (const char* text : {"interface = 1\n", "interface = \"\"\n", "interface = \"a b\"\n",
                             "interface = \"tun7\"\n[", "interface = \"tun\xff\"\n"})
        EXPECT_FALSE(read_interface(folder.write("c.toml", text))) << text;
    EXPECT_FALSE(read_interface(folder.path + "/nothing"));
}

TEST(Config, TheShortFormsEndsKnowEachOther) {
    const Folder folder;
    const std::string init = folder.write("init", "correct horse battery staple\n");
    const auto server = server_config(4500, init);
    const auto client = client_config({"192.0.2.1", 4500}, init);
    ASSERT_TRUE(server && client);
    EXPECT_EQ(*public_key(*server->private_key), client->peers[0].public_key);
    EXPECT_EQ(*public_key(*client->private_key), server->peers[0].public_key);
    EXPECT_TRUE(std::ranges::equal(server->peers[0].shared_secret->span(),
                                   client->peers[0].shared_secret->span()));
    EXPECT_TRUE(server->peers[0].allowed[0].holds(client->addresses[0].address));
    EXPECT_TRUE(client->peers[0].allowed[1].holds(server->addresses[1].address));
    EXPECT_FALSE(server_config(4500, folder.write("short", "fifteen letters\n")));
    EXPECT_FALSE(server_config(4500, folder.path + "/nothing"));
}

}  // namespace
}  // namespace dael::vpn
