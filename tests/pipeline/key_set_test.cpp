// SPDX-License-Identifier: Apache-2.0
// Sets of keys that are used on the host and on a device at once: a replacement is done everywhere
// or nowhere, whatever fails; what is neither is used up; and what a child of fork() finds.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include <daelstrom/gcm.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/child.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kSize = 48;

// A set of two keys on an engine of two hosts and a device, all of which have tables of it.
struct Set {
    explicit Set(HostDevice& its_device) : device(its_device) {
        pipeline::Backends hosts;
        for (const char* name : {"openssl", "reference"})
            hosts.push_back(*core::open_backend(name));
        engine.emplace(pipeline::make_auto_engine(std::move(hosts), [this] {
            pipeline::Backends devices;
            devices.push_back(std::make_unique<HostDeviceBackend>(device));
            return devices;
        }));
        keys.emplace(*engine->keys(ring.keys));
        memory = static_cast<std::uint8_t*>(*device.allocate(2 * kSize));
        (void)on_host(gcm::sealing(), 0);
        (void)on_device(gcm::sealing(), 0);
    }
    ~Set() {
        batch.reset();
        keys.reset();
        engine.reset();
        std::memset(memory, 0, 2 * kSize);
        device.release(memory);
    }

    Message message(std::uint8_t* data, std::uint8_t* tag, const Cipher& cipher,
                    std::uint32_t key) const {
        Message m{data, data, kSize, nullptr, 0, authenticates(cipher.mode) ? tag : nullptr};
        m.start = gcm::start(gcm::Nonce{7});
        m.key = key;
        return m;
    }
    // What zeros become under a key of the set.
    Result<Bytes> on_host(const Cipher& cipher, std::uint32_t key) {
        Bytes data(kSize), tag(16);
        const Message m = message(data.data(), tag.data(), cipher, key);
        Code code = Code::internal;
        DAEL_TRY(engine->run(cipher, *keys, {&m, 1}, {&code, 1}));
        data.insert(data.end(), tag.begin(), tag.end());
        return data;
    }
    Result<Bytes> on_device(const Cipher& cipher, std::uint32_t key) {
        std::memset(memory, 0, 2 * kSize);
        const Message m = message(memory, memory + kSize, cipher, key);
        const Messages messages{&m, 1};
        DAEL_LET(made, engine->prepare(cipher, *keys, messages));
        batch.emplace(std::move(made));
        DAEL_TRY(engine->launch(*batch, {}));
        DAEL_TRY(device.wait(Stream{}));
        return Bytes(memory, memory + kSize + 16);
    }
    // Which of the keys, by number, is in every place of key 0: 0 or 2; -1: not the same one.
    int everywhere() {
        const Cipher ctr{Mode::ctr};
        int found = -2;
        for (const Cipher& cipher : {gcm::sealing(), ctr}) {
            const Bytes was = expected(cipher, ring.keys[0]), is = expected(cipher, other.keys[0]);
            for (const auto& bytes : {on_host(cipher, 0), on_device(cipher, 0)}) {
                if (!bytes) return -1;
                const int here = *bytes == was ? 0 : *bytes == is ? 2 : -1;
                if (found != -2 && found != here) return -1;
                found = here;
            }
        }
        return found;
    }
    Bytes expected(const Cipher& cipher, const Key& key) {
        Bytes data(kSize), tag(16);
        const Message m = message(data.data(), tag.data(), cipher, 0);
        EXPECT_TRUE(engine->run(cipher, key, m));
        data.insert(data.end(), tag.begin(), tag.end());
        return data;
    }

    HostDevice& device;
    const KeyRing ring{{Bytes(16, 1), Bytes(32, 2)}}, other{{Bytes(24, 3)}};
    std::optional<Engine> engine;
    std::optional<KeySet> keys;
    std::optional<Batch> batch;
    std::uint8_t* memory = nullptr;
};

TEST(KeySets, AReplacementIsDoneEverywhere) {
    HostDevice device;
    {
        Set set(device);
        EXPECT_EQ(set.everywhere(), 0);
        ASSERT_TRUE(set.keys->replace(0, set.other.keys[0], {}));
        EXPECT_EQ(set.everywhere(), 2);
        EXPECT_EQ(set.keys->bits(0), 192);
    }
    expect_clean(device);
}

// A call on host memory through the device has the key that its caller has put there, however long
// the stream of the replacement is busy.
TEST(KeySets, AReplacementIsBeforeWhatIsInHostMemory) {
    for (const Cipher& cipher : {gcm::sealing(), Cipher{Mode::gcm_ctr}, Cipher{Mode::ctr}}) {
        SCOPED_TRACE(name(cipher.mode));
        HostDevice device({.delay = std::chrono::microseconds(300)});
        {
            Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
            const KeyRing ring{{Bytes(16, 1), Bytes(16, 2)}}, other{{Bytes(16, 3)}};
            KeySet keys = *engine.keys(ring.keys);
            const auto run = [&](KeySet& set) {
                Bytes data(2 * kSize), tags(32);
                std::vector<Message> messages;
                for (std::uint32_t i = 0; i < 2; ++i) {
                    std::uint8_t* const at = data.data() + i * kSize;
                    Message& m = messages.emplace_back(Message{.in = at, .out = at, .size = kSize});
                    if (authenticates(cipher.mode)) m.tag = tags.data() + i * 16;
                    m.start = gcm::start(gcm::Nonce{7});
                    m.key = i;
                }
                std::vector<Code> codes(2);
                EXPECT_TRUE(engine.run(cipher, set, messages, codes));
                data.insert(data.end(), tags.begin(), tags.end());
                return data;
            };
            (void)run(keys);  // the device has tables of them
            const Stream stream = *device.create_stream();
            void* const others = *device.allocate(16);
            for (int work = 0; work < 40; ++work) ASSERT_TRUE(device.fill(others, 0, 16, stream));
            ASSERT_TRUE(keys.replace(0, other.keys[0], stream));
            const Bytes now = run(keys);
            ASSERT_TRUE(device.wait(stream));
            device.release(others);
            device.destroy_stream(stream);
            std::vector<Key> list;
            list.push_back(*other.keys[0].duplicate());
            list.push_back(*ring.keys[1].duplicate());
            KeySet fresh = *engine.keys(list);
            EXPECT_EQ(now, run(fresh));
        }
        expect_clean(device);
    }
}

TEST(KeySets, AReplacementThatIsRefusedIsDoneNowhere) {
    HostDevice device({.fail_at = 1, .fail_call = "replace"});
    {
        Set set(device);
        const auto refused = set.keys->replace(0, set.other.keys[0], {});
        ASSERT_EQ(refused.code(), Code::device);
        EXPECT_NE(refused.error().message.find("as it was"), std::string::npos);
        EXPECT_EQ(set.everywhere(), 0);
        EXPECT_EQ(set.keys->bits(0), 128);
        // And what does no harm may be tried again.
        ASSERT_TRUE(set.keys->replace(0, set.other.keys[0], {}));
        EXPECT_EQ(set.everywhere(), 2);
    }
    expect_clean(device);
}

TEST(KeySets, AReplacementThatFailsMidwayUsesTheSetUp) {
    HostDevice device({.fail_at = 1, .fail_call = "replace the hash key"});
    {
        Set set(device);
        ASSERT_TRUE(set.on_device({Mode::ecb}, 0));  // a batch that may be launched again
        const auto torn = set.keys->replace(0, set.other.keys[0], {});
        ASSERT_EQ(torn.code(), Code::device);
        EXPECT_NE(torn.error().message.find("used up"), std::string::npos);
        EXPECT_EQ(set.engine->launch(*set.batch, {}).code(), Code::device);
        for (const Cipher& cipher : {gcm::sealing(), Cipher{Mode::ctr}})
            for (const std::uint32_t key : {0u, 1u}) {
                EXPECT_EQ(set.on_host(cipher, key).code(), Code::device);
                EXPECT_EQ(set.on_device(cipher, key).code(), Code::device);
            }
        const Message m = set.message(set.memory, set.memory + kSize, gcm::sealing(), 1);
        EXPECT_EQ(set.engine->launch(gcm::sealing(), *set.keys, {&m, 1}, Stream{}).code(),
                  Code::device);
        EXPECT_EQ(set.keys->replace(0, set.other.keys[0], {}).code(), Code::device);
        EXPECT_TRUE(device.wait(Stream{}));
    }
    expect_clean(device);
}

TEST(KeySets, AChildFindsTheSetWholeOrIsTold) {
    std::latch inside(1), forked(1);
    std::atomic<bool> hold{false};
    HostDevice device({.at = [&](const char* call) {
        if (!hold || std::string_view(call) != "replace") return;
        inside.count_down();
        forked.wait();
    }});
    {
        Set set(device);
        expect_in_a_child([&] {  // nobody is at it
            return set.on_host(gcm::sealing(), 0) && set.keys->replace(0, set.other.keys[0], {}) &&
                   *set.on_host(gcm::sealing(), 0) ==
                       set.expected(gcm::sealing(), set.other.keys[0]);
        });
        hold = true;
        std::thread replacing([&] { EXPECT_TRUE(set.keys->replace(0, set.other.keys[0], {})); });
        inside.wait();
        expect_in_a_child([&] {
            return set.on_host(gcm::sealing(), 0).code() == Code::device &&
                   set.keys->replace(0, set.other.keys[0], {}).code() == Code::device;
        });
        forked.count_down();
        replacing.join();
        EXPECT_EQ(set.everywhere(), 2);
    }
    expect_clean(device);
}

TEST(KeySets, TablesAreMadeBesideAReplacement) {
    HostDevice device;
    for (int round = 0; round < 20; ++round) {
        Set made(device);
        KeySet keys = *made.engine->keys(made.ring.keys);  // without tables anywhere
        std::memset(made.memory, 0, 2 * kSize);
        const Message m = made.message(made.memory, made.memory + kSize, gcm::sealing(), 0);
        std::thread launching([&] {
            EXPECT_TRUE(made.engine->launch(gcm::sealing(), keys, {&m, 1}, Stream{}));
        });
        EXPECT_TRUE(keys.replace(0, made.other.keys[0], {}));
        launching.join();
        EXPECT_TRUE(device.wait(Stream{}));
        const Bytes got(made.memory, made.memory + kSize + 16);
        EXPECT_TRUE(got == made.expected(gcm::sealing(), made.ring.keys[0]) ||
                    got == made.expected(gcm::sealing(), made.other.keys[0]));
    }
    expect_clean(device);
}

}  // namespace
