// SPDX-License-Identifier: Apache-2.0
// A tunnel's configuration may be anybody's text: whatever is in it, it is read to the end, and
// what has no fault is a tunnel that can be.
#include <set>

#include "fuzz/fuzz.hpp"
#include "vpn/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    using namespace dael::vpn;
    using dael::fuzz::require;
    std::vector<Fault> faults;
    const Config config = parse_config({reinterpret_cast<const char*>(input), size}, faults);
    for (const Fault& fault : faults) require(!fault.message.empty(), "a fault says what it is");
    (void)describe("file", faults);
    if (!faults.empty()) return 0;
    require(!config.peers.empty() && !config.private_key_file.empty(), "there is what must be");
    require(config.mtu >= kLeastMtu && config.mtu <= kMostMtu, "the MTU is within its bounds");
    require(config.queues >= 1 && config.queues <= 16, "there are queues");
    require(!config.interface.empty() && config.interface.size() < 16, "the kernel takes the name");
    std::set<PublicKey> keys;
    std::set<std::string> prefixes;
    for (const PeerConfig& peer : config.peers) {
        require(keys.insert(peer.public_key).second, "keys differ");
        for (const path::Prefix& prefix : peer.allowed)
            require(prefixes.insert(prefix.text()).second, "an address is one peer's");
    }
    return 0;
}
