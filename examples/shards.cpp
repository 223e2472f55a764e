// SPDX-License-Identifier: Apache-2.0
// Seals one message that lies in parts in the memory of several devices, each part where it is,
// with one nonce and one tag over all of it; and opens it again.
#include <daelstrom/device.hpp>
#include <daelstrom/engine.hpp>
#include <daelstrom/gcm.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kPart = 1 << 20;

// Keys and nonces must come from a cryptographic source; std::random_device is one on Linux.
void fill_random(std::span<std::uint8_t> bytes) {
    std::random_device source;
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(source()); });
}

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 1;
}

}  // namespace

int main() {
    // Every GPU of CUDA's; else the first device of OpenCL's.
    std::string names;
    std::vector<std::string> present;
    for (const dael::BackendInfo& info : dael::list_backends())
        if (info.present && (info.name.starts_with("cuda:") ||
                             (present.empty() && info.name.starts_with("opencl:"))))
            present.push_back(info.name);
    for (const std::string& name : present) names += (names.empty() ? "" : "+") + name;
    if (present.empty()) {
        std::puts("no device is here");
        return 0;
    }
    auto engine = dael::Engine::open({.backend = names});  // "cuda:0+cuda:1"
    if (!engine) return report(engine.error());

    // Two parts on each, as if your program had left them there. Memory of OpenCL's belongs to the
    // engine that it was allocated with.
    std::vector<dael::Engine> others;
    std::vector<dael::DeviceAccess> devices;
    std::vector<dael::Shard> shards;
    std::vector<std::uint8_t> plain(kPart, 's'), again(kPart);
    for (const std::string& name : present) {
        if (!devices.empty()) {
            auto other = dael::Engine::open({.backend = name});
            if (!other) return report(other.error());
            others.push_back(std::move(*other));
        }
        auto device = dael::device(devices.empty() ? *engine : others.back());
        if (!device) return report(device.error());
        for (int part = 0; part < 2; ++part) {
            auto memory = device->memory.allocate(kPart);
            if (!memory) return report(memory.error());
            auto* const data = static_cast<std::uint8_t*>(*memory);
            if (auto copied = device->memory.copy_in(data, plain.data(), kPart, {}); !copied)
                return report(copied.error());
            shards.push_back({.in = data, .out = data, .size = kPart});  // the default stream
        }
        devices.push_back(*device);
    }
    std::array<std::uint8_t, 32> bytes;
    std::array<std::uint8_t, dael::gcm::kNonceSize> nonce;
    fill_random(bytes);
    fill_random(nonce);
    auto key = dael::Key::import(bytes);
    dael::wipe(bytes.data(), bytes.size());
    if (!key) return report(key.error());

    auto keys = engine->keys({&*key, 1});
    if (!keys) return report(keys.error());

    dael::Message message;  // what is not the shards': start, tag, additional data, key
    dael::Block tag;
    message.tag = tag.data();
    auto start = dael::gcm::start(*key, nonce);
    if (!start) return report(start.error());
    message.start = *start;

    auto sealed = engine->run_shards(dael::gcm::sealing(), *keys, message, shards);
    if (!sealed) return report(sealed.error());
    std::printf("sealed on %s\n", sealed->backend.data());  // "cuda:0+cuda:1"

    auto opened = engine->run_shards(dael::gcm::opening(), *keys, message, shards);
    if (!opened) return report(opened.error());

    bool same = true;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        auto& [info, memory, order, backend] = devices[i / 2];
        auto copied = memory.copy_out(again.data(), shards[i].out, kPart, {});
        if (copied) copied = order.wait(dael::Stream{});
        if (!copied) return report(copied.error());
        same &= again == plain;
        memory.release(shards[i].out);
    }
    std::puts(same ? "opened, and the same" : "opened, but NOT the same");
    return same ? 0 : 1;
}
