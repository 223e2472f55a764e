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
    // Two parts on each device, as if your program had left them there.
    std::vector<dael::Engine> devices;
    std::vector<dael::Shard> shards;
    std::vector<std::uint8_t> plain(kPart, 's'), again(kPart);
    std::string names;
    for (const dael::BackendInfo& info : dael::list_backends()) {
        const bool is_gpu = info.name.starts_with("cuda:") || info.name.starts_with("opencl:");
        if (!info.present || !is_gpu) continue;
        auto engine = dael::Engine::open({.backend = info.name});
        if (!engine) return report(engine.error());
        auto device = dael::device(*engine);
        if (!device) return report(device.error());
        for (int part = 0; part < 2; ++part) {
            auto memory = device->memory.allocate(kPart);
            if (!memory) return report(memory.error());
            auto* const data = static_cast<std::uint8_t*>(*memory);
            if (auto copied = device->memory.copy_in(data, plain.data(), kPart, {}); !copied)
                return report(copied.error());
            shards.push_back({.in = data, .out = data, .size = kPart});  // the default stream
        }
        names += (names.empty() ? "" : "+") + info.name;
        devices.push_back(std::move(*engine));
    }
    if (shards.empty()) {
        std::puts("no device is here");
        return 0;
    }

    std::array<std::uint8_t, 32> bytes;
    std::array<std::uint8_t, dael::gcm::kNonceSize> nonce;
    fill_random(bytes);
    fill_random(nonce);
    auto key = dael::Key::import(bytes);
    dael::wipe(bytes.data(), bytes.size());
    if (!key) return report(key.error());

    auto engine = dael::Engine::open({.backend = names});  // "cuda:0+cuda:1"
    if (!engine) return report(engine.error());
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
        auto device = dael::device(devices[i / 2]);
        if (!device) return report(device.error());
        auto copied = device->memory.copy_out(again.data(), shards[i].out, kPart, {});
        if (copied) copied = device->order.wait(dael::Stream{});
        if (!copied) return report(copied.error());
        same &= again == plain;
        device->memory.release(shards[i].out);
    }
    std::puts(same ? "opened, and the same" : "opened, but NOT the same");
    return same ? 0 : 1;
}
