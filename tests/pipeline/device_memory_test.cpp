// SPDX-License-Identifier: Apache-2.0
// Data in device memory, on devices made of threads: one launch for a message, batches from both
// kinds of list, what may be launched again, keys replaced in stream order, several devices, and
// who outlives whom. That every mode gives the right bytes there: xbackend, on
// engine_threads_memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <daelstrom/ctr.hpp>
#include <daelstrom/device.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/unauthenticated.hpp>
#include <daelstrom/xts.hpp>

#include "core/registry.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// Memory of a test device, which is the host's: tests read and write it while no stream does.
class OnDevice {
  public:
    OnDevice(HostDevice& device, std::size_t size)
        : device_(device), bytes(static_cast<std::uint8_t*>(*device.allocate(size)), size) {}
    OnDevice(HostDevice& device, const Bytes& content) : OnDevice(device, content.size()) {
        std::ranges::copy(content, bytes.begin());
    }
    ~OnDevice() {
        wipe(bytes.data(), bytes.size());
        device_.release(bytes.data());
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    std::uint8_t* data() const { return bytes.data(); }
    Bytes copy() const { return {bytes.begin(), bytes.end()}; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(bytes.data());
    }

  private:
    HostDevice& device_;

  public:
    const HostOut bytes;
};

class DeviceMemory : public testing::Test {
  protected:
    void SetUp() override {
        engine_.emplace(pipeline::make_engine(std::make_unique<HostDeviceBackend>(device_)));
        stream_ = *device_.create_stream();
        other_ = *device_.create_stream();
    }
    void TearDown() override {
        engine_.reset();
        device_.destroy_stream(stream_);
        device_.destroy_stream(other_);
        expect_clean(device_);
    }
    // One message of device memory under key 0, in place.
    static Message message(const Cipher& cipher, const OnDevice& memory, const Block& start = {}) {
        const std::size_t size = memory.bytes.size() - (authenticates(cipher.mode) ? 16 : 0);
        Message m{memory.data(), memory.data(), size};
        if (authenticates(cipher.mode)) m.tag = memory.data() + size;
        m.start = start;
        return m;
    }
    static Messages of(const Message& one) { return {&one, 1}; }

    HostDevice device_;
    std::optional<Engine> engine_;
    Stream stream_, other_;
    Random random_{42};
};

TEST_F(DeviceMemory, OneLaunchOnTheCallersStream) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const Cipher cipher{mode, direction, 16, 0, 520};
            if (authenticates(mode) || !parallel_within_message(mode, direction)) continue;
            const KeyRing keys(random_, 1, mode);
            const Bytes in = random_.bytes(fitting(cipher, 5 * 520 + 33));
            OnDevice memory(device_, in);
            Message m = message(cipher, memory, fitting_start(cipher, random_));
            if (makes_keystream(mode)) m.skip = 7;
            const Bytes expected = oracle(keys.raw[0], cipher, m).out;
            const int calls = device_.calls();
            const auto ran = engine_->run(cipher, keys.keys[0], m, stream_);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, "threads:0");
            EXPECT_EQ(ran->chunks, 0u);
            EXPECT_EQ(device_.calls() - calls, 1) << "the launch alone";
            ASSERT_TRUE(device_.wait(stream_));
            EXPECT_EQ(difference(expected, memory.bytes), "") << name(mode);
            if (makes_keystream(mode)) {
                m.in = nullptr;
                const Bytes keystream = oracle(keys.raw[0], cipher, m).out;
                ASSERT_TRUE(engine_->run(cipher, keys.keys[0], m, stream_));
                ASSERT_TRUE(device_.wait(stream_));
                EXPECT_EQ(difference(keystream, memory.bytes), "") << name(mode);
            }
        }
}

// Before anything is launched: kernels take what they are given for a mode that they have.
TEST_F(DeviceMemory, AModeThatTheBackendLacksIsRefused) {
    for (const Mode mode : kModes) {
        if (authenticates(mode)) continue;
        HostDevice without({.lacks = mode});
        {
            Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(without));
            const KeyRing ring(random_, 1, mode);
            const Cipher cipher{mode, Direction::decrypt};
            OnDevice memory(without, pattern(512));
            const Message m = message(cipher, memory, fitting_start(cipher, random_));
            const auto ran = engine.run(cipher, ring.keys[0], m, Stream{});
            ASSERT_EQ(ran.code(), Code::unsupported) << name(mode);
            EXPECT_NE(ran.error().message.find("'auto'"), std::string::npos) << ran.error().message;
            EXPECT_EQ(difference(pattern(512), memory.bytes), "");
            EXPECT_EQ(without.kernels(), 0u);
        }
        expect_clean(without);
    }
}

TEST_F(DeviceMemory, TheNamedCalls) {
    const Bytes raw = random_.bytes(32), in = random_.bytes(1000);
    const Key key = *Key::import(raw), xts_key = *Key::import_xts(raw);
    OnDevice memory(device_, in);
    const DeviceIn from{memory.data(), 1000};
    const DeviceOut to{memory.data(), 1000};
    const auto expect = [&](const Result<Ran>& ran, const Bytes& expected) {
        ASSERT_TRUE(ran) << ran.error().message;
        ASSERT_TRUE(device_.wait(stream_));
        EXPECT_EQ(difference(expected, memory.bytes), "");
        std::ranges::copy(in, memory.data());
    };
    const Block start = random_.block();
    expect(ctr::crypt(*engine_, key, start, from, to, stream_, 33),
           oracle(raw, {Mode::ctr, Direction::encrypt, start, 33}, in));
    expect(ctr::keystream(*engine_, key, start, to, stream_, 33),
           oracle(raw, {Mode::ctr, Direction::encrypt, start, 33}, Bytes(1000)));
    const xts::Sectors sectors{77, 520};
    expect(xts::encrypt(*engine_, xts_key, sectors, from, to, stream_),
           oracle_xts(raw, Direction::encrypt, sectors, in));
    expect(xts::decrypt(*engine_, xts_key, sectors, from, to, stream_),
           oracle_xts(raw, Direction::decrypt, sectors, in));
    EXPECT_EQ(
        xts::decrypt(*engine_, xts_key, {0, 512}, {from.data, 513}, {to.data, 513}, stream_).code(),
        Code::ragged_length);
    EXPECT_EQ(ctr::crypt(*engine_, key, start, {from.data, 9}, to, stream_).code(),
              Code::invalid_argument);
    EXPECT_EQ(ctr::crypt(*engine_, key, start, {nullptr, 1000}, to, stream_).code(),
              Code::invalid_argument);
    EXPECT_EQ(ctr::crypt(*engine_, key, start, from, to, stream_, ~std::uint64_t{0} - 500).code(),
              Code::limit);
    EXPECT_TRUE(xts::decrypt(*engine_, xts_key, {}, {}, {}, stream_));
    EXPECT_TRUE(ctr::crypt(*engine_, key, start, DeviceIn{}, DeviceOut{}, stream_));
    EXPECT_EQ(memory.copy(), in);
}

TEST_F(DeviceMemory, WhatOneMessageIsRefusedFor) {
    const Key key = *Key::import(random_.bytes(16));
    OnDevice memory(device_, 64);
    const auto run = [&](const Cipher& cipher, Message m) {
        return engine_->run(cipher, key, m, stream_);
    };
    Message m = message({Mode::ecb}, memory);
    m.size = 17;
    EXPECT_EQ(run({Mode::ecb}, m).code(), Code::ragged_length);
    const auto sequential = run({Mode::cbc}, message({Mode::cbc}, memory));
    EXPECT_EQ(sequential.code(), Code::unsupported);
    EXPECT_NE(sequential.error().message.find("many messages"), std::string::npos);
    const auto tagged = run(gcm::sealing(), message(gcm::sealing(), memory));
    EXPECT_EQ(tagged.code(), Code::unsupported);
    EXPECT_NE(tagged.error().message.find("launch()"), std::string::npos) << tagged.error().message;
    EXPECT_EQ(device_.kernels(), 0u);
}

TEST_F(DeviceMemory, AHostEngineSaysSo) {
    Engine engine = *Engine::open({.backend = "openssl"});
    const Key key = *Key::import(random_.bytes(16));
    std::uint8_t byte = 0;
    const auto ran = ctr::crypt(engine, key, {}, DeviceIn{&byte, 1}, DeviceOut{&byte, 1}, {});
    EXPECT_EQ(ran.code(), Code::unsupported);
    EXPECT_NE(ran.error().message.find("device memory"), std::string::npos);
    EXPECT_EQ(device(engine).code(), Code::unsupported);
    const auto set = engine.keys(std::span(&key, 1));
    EXPECT_EQ(engine.prepare({Mode::ctr}, *set, {}).code(), Code::unsupported);
}

// A list of the host's with a message that makes no sense is refused as a whole, and names it; one
// in device memory is read when it runs, and the others are done.
TEST_F(DeviceMemory, ABadMessageInBothKindsOfList) {
    for (const Cipher& cipher :
         {Cipher{Mode::cbc}, Cipher{Mode::gcm_ctr}, gcm::sealing(), gcm::opening()}) {
        const bool tagged = authenticates(cipher.mode);
        const KeyRing ring(random_, 3);
        auto set = engine_->keys(ring.keys);
        ASSERT_TRUE(set) << set.error().message;
        const std::size_t sizes[] = {0, 16, 160, 4096, 48, 32, 32, 64};
        std::vector<Message> list;
        std::vector<Answer> answers;
        std::vector<Bytes> before;
        OnDevice memory(device_, 8192), place(device_, std::size(sizes) * sizeof(Message));
        std::size_t used = 0;
        for (const std::size_t size : sizes) {
            Message& m =
                list.emplace_back(Message{memory.data() + used, memory.data() + used, size});
            before.push_back(random_.bytes(size));
            std::ranges::copy(before.back(), m.out);
            m.start = fitting_start(cipher, random_);
            m.key = static_cast<std::uint32_t>(random_.below(3));
            answers.push_back(oracle(ring.raw[m.key], cipher, m));
            used += size;
            if (!tagged) continue;
            m.tag = memory.data() + used;
            std::ranges::copy(answers.back().tag, m.tag);
            used += 16;
        }
        std::vector<Message> bad = list;
        std::vector<Code> expected(list.size(), Code::ok);
        bad[2].key = 3;
        expected[2] = Code::invalid_argument;
        bad[3].out = nullptr;
        expected[3] = Code::invalid_argument;
        bad[4].in = bad[4].out + 8;
        expected[4] = Code::overlap;
        bad[5].in = nullptr;
        expected[5] = makes_keystream(cipher.mode) ? Code::ok : Code::invalid_argument;
        if (cipher.mode == Mode::gcm_ctr) answers[5] = oracle(ring.raw[bad[5].key], cipher, bad[5]);
        if (cipher.mode == Mode::cbc) {
            bad[1].size -= 1;
            expected[1] = Code::ragged_length;
        }
        if (tagged) {
            bad[1].tag = nullptr;
            expected[1] = Code::invalid_argument;
        }
        if (cipher == gcm::opening()) {
            bad[7].tag[3] ^= 1;
            expected[7] = Code::authentication;
        }
        const auto refused =
            engine_->prepare(cipher, *set, {bad.data(), static_cast<std::uint32_t>(bad.size())});
        ASSERT_EQ(refused.code(), expected[1] == Code::ok ? Code::invalid_argument : expected[1]);
        EXPECT_EQ(refused.error().message.substr(0, 10),
                  expected[1] == Code::ok ? "message 2:" : "message 1:");

        std::memcpy(place.data(), bad.data(), bad.size() * sizeof(Message));
        Messages on_device{place.as<Message>(), static_cast<std::uint32_t>(bad.size()),
                           Place::device};
        auto batch = engine_->prepare(cipher, *set, on_device);
        ASSERT_TRUE(batch) << batch.error().message;
        const auto ran = engine_->launch(*batch, stream_);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(ran->backend, "threads:0");
        const auto codes = batch->results(stream_);
        ASSERT_TRUE(codes) << codes.error().message;
        EXPECT_EQ(*codes, expected) << name(cipher.mode);
        ASSERT_NE(batch->codes(), nullptr);
        for (std::size_t i = 0; i < list.size(); ++i) {
            EXPECT_EQ(batch->codes()[i], static_cast<std::uint32_t>(expected[i]));
            const Bytes& right = expected[i] == Code::ok ? answers[i].out : before[i];
            EXPECT_EQ(difference(right, {list[i].out, list[i].size}), "") << i;
            if (!tagged || expected[i] != Code::ok) continue;
            EXPECT_EQ(difference(answers[i].tag, {list[i].tag, 16}), "") << i;
        }
        EXPECT_EQ(engine_->prepare(cipher, *set, {nullptr, 1, Place::device}).code(),
                  Code::invalid_argument);
    }
}

TEST_F(DeviceMemory, ListsThatADeviceCannotRead) {
    const KeyRing ring(random_, 1), xts_ring(random_, 1, true);
    auto set = engine_->keys(ring.keys), xts_set = engine_->keys(xts_ring.keys);
    ASSERT_TRUE(set && xts_set);
    OnDevice list(device_, sizeof(Message));
    *list.as<Message>() = {};
    const Messages messages{list.as<Message>(), 1, Place::device};
    for (const Cipher& cipher : {Cipher{Mode::ecb}, Cipher{Mode::ctr}, Cipher{Mode::ofb},
                                 Cipher{Mode::cbc, Direction::decrypt}, Cipher{Mode::xts}}) {
        const auto batch =
            engine_->prepare(cipher, cipher.mode == Mode::xts ? *xts_set : *set, messages);
        EXPECT_EQ(batch.code(), Code::unsupported) << name(cipher.mode);
    }
    HostDevice blind({.reads_lists = false});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(blind));
        OnDevice there(blind, sizeof(Message));
        *there.as<Message>() = {};
        auto keys = engine.keys(ring.keys);
        const auto batch =
            engine.prepare(gcm::sealing(), *keys, {there.as<Message>(), 1, Place::device});
        EXPECT_EQ(batch.code(), Code::unsupported);
        EXPECT_NE(batch.error().message.find("host memory"), std::string::npos);
    }
    expect_clean(blind);
}

// How many messages there are is read when the batch runs, and their starts are counted there.
TEST_F(DeviceMemory, NumbersAndNoncesThatLieOnTheDevice) {
    constexpr std::uint32_t kMax = 20;
    constexpr std::size_t kSize = 48;
    for (const Cipher& cipher : {gcm::sealing(), Cipher{Mode::gcm_ctr}, Cipher{Mode::aegis128l}}) {
        const KeyRing ring(random_, 2, cipher);
        auto set = engine_->keys(ring.keys);
        ASSERT_TRUE(set);
        OnDevice data(device_, kMax * (kSize + 16)), list(device_, kMax * sizeof(Message)),
            number(device_, 4), nonces(device_, sizeof(DeviceNonces));
        for (std::uint32_t i = 0; i < kMax; ++i) {
            Message& m = list.as<Message>()[i] = {};
            m.in = m.out = data.data() + i * (kSize + 16);
            m.size = kSize;
            if (authenticates(cipher.mode)) m.tag = m.out + kSize;
            m.key = i % 2;
        }
        *nonces.as<DeviceNonces>() = {{5, 6, 7, 8}, 0, 0xfffffffe};
        auto batch = engine_->prepare(cipher, *set,
                                      {list.as<Message>(), kMax, Place::device,
                                       number.as<std::uint32_t>(), nonces.as<DeviceNonces>()});
        ASSERT_TRUE(batch) << batch.error().message;
        NonceCounter same({5, 6, 7, 8}, 0xfffffffe);
        for (const std::uint32_t count : {3u, 0u, 20u, 7u, 1000u}) {
            const std::uint32_t done = std::min(count, kMax);
            const Bytes plain = random_.bytes(data.bytes.size());
            std::ranges::copy(plain, data.data());
            *number.as<std::uint32_t>() = count;
            ASSERT_TRUE(engine_->launch(*batch, stream_));  // as often as wanted
            const auto codes = batch->results(stream_);
            ASSERT_TRUE(codes);
            std::vector<Message> expected(done);
            ASSERT_TRUE(same.number(expected));
            for (Message& m : expected)
                if (is_aegis(cipher.mode)) m.start[15] = 0;  // where GCM counts blocks
            for (std::uint32_t i = 0; i < kMax; ++i) {
                const std::size_t at = i * (kSize + 16);
                if (i >= done) {
                    EXPECT_EQ(difference(std::span(plain).subspan(at, kSize + 16),
                                         data.bytes.subspan(at, kSize + 16)),
                              "");
                    continue;
                }
                EXPECT_EQ((*codes)[i], Code::ok);
                const Answer answer = oracle(
                    ring.raw[i % 2], cipher,
                    {plain.data() + at, nullptr, kSize, nullptr, 0, nullptr, expected[i].start});
                EXPECT_EQ(difference(answer.out, data.bytes.subspan(at, kSize)), "") << i;
                EXPECT_EQ(difference(answer.tag, data.bytes.subspan(at + kSize, answer.tag.size())),
                          "");
            }
            EXPECT_EQ(nonces.as<DeviceNonces>()->next, same.unused());
        }
        // For lists of the host's, and for what is not encrypted under nonces, they make no sense.
        Messages on_host{list.as<Message>(), 1, Place::host, number.as<std::uint32_t>()};
        EXPECT_EQ(engine_->prepare(cipher, *set, on_host).code(), Code::invalid_argument);
        const Messages wrong{list.as<Message>(), 1, Place::device, nullptr,
                             nonces.as<DeviceNonces>()};
        for (const Cipher& other : {gcm::opening(), Cipher{Mode::cbc}})
            EXPECT_EQ(engine_->prepare(other, *set, wrong).code(), Code::invalid_argument);
        // Nor has a promise of how long they are at most.
        Messages promised{.list = list.as<Message>(), .count = 1, .longest = 100};
        EXPECT_EQ(engine_->prepare(cipher, *set, promised).code(), Code::invalid_argument);
        promised.place = Place::device;
        EXPECT_EQ(engine_->prepare({Mode::cbc}, *set, promised).code(), Code::invalid_argument);
        for (const std::uint64_t longest : {kSize - 1, kSize}) {
            promised.longest = longest;
            auto bound = engine_->prepare(cipher, *set, promised);
            ASSERT_TRUE(bound && engine_->launch(*bound, stream_));
            EXPECT_EQ(bound->results(stream_)->front(), longest < kSize ? Code::limit : Code::ok);
        }
    }
}

// What encrypts from fixed starts is launched once; decryption, ECB and XTS as often as wanted.
TEST_F(DeviceMemory, WhatMayBeLaunchedAgain) {
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            const Cipher cipher{mode, direction};
            const KeyRing ring(random_, 1, mode);
            auto set = engine_->keys(ring.keys);
            ASSERT_TRUE(set);
            OnDevice memory(device_, random_.bytes(512 + 16));
            Message m = message(cipher, memory, fitting_start(cipher, random_));
            m.size = 512;
            auto batch = engine_->prepare(cipher, *set, of(m));
            ASSERT_TRUE(batch) << name(mode) << ": " << batch.error().message;
            const bool once = direction == Direction::encrypt && mode != Mode::ecb &&
                              mode != Mode::xts && mode != Mode::gcm_siv;
            device_.capture(stream_);
            EXPECT_EQ(engine_->launch(*batch, stream_).code(), once ? Code::limit : Code::ok)
                << name(mode) << ": a captured launch is replayed";
            device_.capture({});
            ASSERT_TRUE(engine_->launch(*batch, other_)) << name(mode);
            ASSERT_TRUE(device_.wait(other_));
            const Bytes after = memory.copy();
            const auto again = engine_->launch(*batch, stream_);
            EXPECT_EQ(again.code(), once ? Code::limit : Code::ok) << name(mode);
            ASSERT_TRUE(device_.wait(stream_));
            if (once) {
                EXPECT_EQ(memory.copy(), after);
                EXPECT_NE(again.error().message.find("again"), std::string::npos);
            }
            if (direction == Direction::encrypt && !authenticates(mode)) {
                EXPECT_EQ(batch->codes(), nullptr);
                EXPECT_EQ(*batch->results(stream_), std::vector(1, Code::ok));
            }
        }
}

// The two launches follow each other, whichever stream they are in: the second one works on what
// the first one left.
TEST_F(DeviceMemory, RunsOnTwoStreams) {
    HostDevice slow({.delay = std::chrono::milliseconds(1)});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(slow));
        const KeyRing ring(random_, 1);
        auto set = engine.keys(ring.keys);
        ASSERT_TRUE(set);
        const Stream streams[] = {*slow.create_stream(), *slow.create_stream()};
        Bytes expected = random_.bytes(4096);
        OnDevice memory(slow, expected);
        const Message m{memory.data(), memory.data(), 4096};
        auto batch = engine.prepare({Mode::ecb}, *set, of(m));
        ASSERT_TRUE(batch);
        for (int i = 0; i < 20; ++i) {
            ASSERT_TRUE(engine.launch(*batch, streams[i % 2]));
            expected = oracle(ring.raw[0], {Mode::ecb, Direction::encrypt}, expected);
        }
        for (const Stream stream : streams) ASSERT_TRUE(slow.wait(stream));
        EXPECT_EQ(difference(expected, memory.bytes), "");
        for (const Stream stream : streams) slow.destroy_stream(stream);
    }
    expect_clean(slow);
}

// Work that is in the stream has the old key, what follows the new one; prepared batches too, and
// whatever size the new key has.
TEST_F(DeviceMemory, AKeyIsReplacedInStreamOrder) {
    for (const Cipher& cipher : {Cipher{Mode::ecb}, Cipher{Mode::cbc, Direction::decrypt},
                                 Cipher{Mode::ctr, Direction::decrypt}}) {
        const KeyRing ring(random_, 3);
        auto set = engine_->keys(std::span(ring.keys).first(2));
        ASSERT_TRUE(set);
        const Bytes in = random_.bytes(1024);
        OnDevice from(device_, in), to(device_, 1024), first(device_, 1024);
        Message list[] = {{from.data(), to.data(), 512}, {from.data() + 512, to.data() + 512, 512}};
        list[0].start = random_.block();
        list[1].start = random_.block();
        list[1].key = 1;
        auto batch = engine_->prepare(cipher, *set, {list, 2});
        ASSERT_TRUE(batch) << batch.error().message;
        ASSERT_TRUE(engine_->launch(*batch, stream_));
        ASSERT_TRUE(device_.copy_within(first.data(), to.data(), 1024, stream_));
        const int calls = device_.calls();
        ASSERT_TRUE(set->replace(1, ring.keys[2], stream_));
        EXPECT_EQ(device_.calls() - calls, 4)
            << "two launches, an event that is made for the set and recorded; no wait";
        ASSERT_TRUE(engine_->launch(*batch, stream_));
        ASSERT_TRUE(device_.wait(stream_));
        EXPECT_EQ(set->bits(1), 256);
        const auto answer = [&](std::size_t key, const Message& m) {
            return oracle(ring.raw[key], cipher, m).out;
        };
        EXPECT_EQ(difference(answer(0, list[0]), first.bytes.first(512)), "");
        EXPECT_EQ(difference(answer(1, list[1]), first.bytes.subspan(512)), "");
        EXPECT_EQ(difference(answer(0, list[0]), to.bytes.first(512)), "");
        EXPECT_EQ(difference(answer(2, list[1]), to.bytes.subspan(512)), "");
    }
    const KeyRing ring(random_, 1), xts_ring(random_, 1, true);
    auto set = engine_->keys(ring.keys);
    ASSERT_TRUE(set);
    EXPECT_EQ(set->replace(1, ring.keys[0], stream_).code(), Code::invalid_argument);
    EXPECT_EQ(set->replace(0, xts_ring.keys[0], stream_).code(), Code::invalid_argument);
    EXPECT_EQ(set->bits(0), 128);
    EXPECT_EQ(set->bits(1), 0);
}

TEST(Replace, OnTheHostAtOnceInEveryMode) {
    Random random(4);
    for (const char* backend : {"reference", "openssl", "cpu"}) {
        auto engine = Engine::open({.backend = backend, .threads = 2});
        if (!engine) continue;
        for (const Mode mode : kModes) {
            const Cipher cipher{mode};
            const int bits = 8 * static_cast<int>(pattern_key(mode).size());
            if (!engine->explain({cipher, bits, 160, 12}).options.front().possible) continue;
            KeyRing ring(random, 5, mode);
            auto set = engine->keys(std::span(ring.keys).first(3));
            ASSERT_TRUE(set);
            const auto run = [&](TestBatch& batch) {
                return batch.fault_of([&](const Cipher& c, std::span<const Key>,
                                          std::span<const Message> messages,
                                          std::span<Code> codes) -> Result<> {
                    DAEL_TRY(engine->run(c, *set, messages, codes));
                    return {};
                });
            };
            std::vector<Bytes> raw(ring.raw.begin(), ring.raw.begin() + 3);
            for (const std::size_t fresh : {3, 4}) {
                const KeyRing now(raw, mode);
                TestBatch batch(random, now, cipher);
                for (std::uint32_t i = 0; i < 12; ++i) batch.add({.size = 160, .key = i % 3});
                EXPECT_EQ(run(batch), "") << backend;
                const auto at = static_cast<std::uint32_t>(fresh - 3);
                ASSERT_TRUE(set->replace(at, ring.keys[fresh]));
                raw[at] = ring.raw[fresh];
            }
            const KeyRing now(raw, mode);
            TestBatch batch(random, now, cipher);
            for (std::uint32_t i = 0; i < 12; ++i) batch.add({.size = 160, .key = i % 3});
            EXPECT_EQ(run(batch), "") << backend;
        }
    }
}

// Key sets, batches and pieces keep what they need of an engine alive, and go in any order.
TEST(Lifetime, WhatOutlivesItsEngine) {
    Random random(5);
    HostDevice device;
    {
        const Stream stream = *device.create_stream();
        OnDevice memory(device, random.bytes(64));
        const KeyRing ring(random, 2);
        auto engine = std::make_unique<Engine>(
            pipeline::make_engine(std::make_unique<HostDeviceBackend>(device)));
        auto other = *Engine::open({.backend = "openssl"});
        auto set = std::make_unique<KeySet>(*engine->keys(ring.keys));
        const Message m{memory.data(), memory.data(), 64};
        auto batch = std::make_unique<Batch>(
            *engine->prepare({Mode::ecb, Direction::decrypt}, *set, {&m, 1}));
        ASSERT_TRUE(engine->launch(*batch, stream));
        auto pieces = *engine->begin(gcm::sealing(), ring.keys[0], {});
        auto host_pieces = [&] {
            Engine gone = *Engine::open({.backend = "openssl"});
            return *gone.begin({Mode::ctr}, ring.keys[0], {});
        }();
        engine.reset();
        // A new engine in the old one's place is another.
        for (int i = 0; i < 10; ++i) {
            Engine next = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
            std::vector<Code> codes(1);
            EXPECT_EQ(next.run({Mode::ecb}, *set, {&m, 1}, codes).code(), Code::invalid_argument);
            EXPECT_EQ(next.prepare({Mode::ecb}, *set, {&m, 1}).code(), Code::invalid_argument);
        }
        EXPECT_EQ(set->size(), 2u);
        EXPECT_TRUE(set->replace(1, ring.keys[0], stream));
        set.reset();
        EXPECT_EQ(*batch->results(stream), std::vector(1, Code::ok));
        batch.reset();
        Bytes data(100), tag(16);
        EXPECT_TRUE(pieces.update(data, data));
        EXPECT_TRUE(pieces.clone()->finish(tag));
        EXPECT_TRUE(pieces.restart({}));
        EXPECT_TRUE(host_pieces.update(data, data));
        EXPECT_TRUE(host_pieces.finish());
        device.destroy_stream(stream);
    }
    expect_clean(device);
}

TEST(Lifetime, AFailureThatTheBatchAloneTells) {
    HostDevice device({.silent_failures = true});
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        const KeyRing ring({pattern(16)});
        const auto keys = engine.keys(ring.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        OnDevice memory(device, 64 + 16);
        const Stream stream = *device.create_stream();
        Message m{memory.data(), memory.data(), 64, nullptr, 0, memory.data() + 64};
        for (const Cipher& cipher : {gcm::sealing(), Cipher{Mode::cbc}}) {
            if (cipher.mode == Mode::cbc) m.tag = nullptr;
            auto batch = engine.prepare(cipher, *keys, {&m, 1});
            ASSERT_TRUE(batch) << batch.error().message;
            ASSERT_TRUE(engine.launch(*batch, stream));
            EXPECT_EQ(batch->results(stream).code(), Code::device);
        }
        device.destroy_stream(stream);
    }
    expect_clean(device);
}

TEST(Lifetime, EveryFailureOfABatchIsReported) {
    std::set<std::string> failed;
    bool one_failed = true;
    for (int fail_at = 1; one_failed; ++fail_at) {
        HostDevice device({.fail_at = fail_at});
        {
            Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
            const KeyRing ring({pattern(16), pattern(32)});
            const auto work = [&](std::uint8_t* at) -> Result<> {
                DAEL_LET(set, engine.keys(ring.keys));
                const Message list[] = {{at, at, 64, nullptr, 0, at + 64, {{1}}, 1},
                                        {at + 96, at + 96, 64, nullptr, 0, at + 160}};
                const Messages messages{list, 2};
                DAEL_LET(batch, engine.prepare(gcm::sealing(), set, messages));
                const auto rest = [&]() -> Result<> {
                    DAEL_TRY(engine.launch(batch, {}));
                    DAEL_TRY(batch.results({}));
                    DAEL_TRY(set.replace(0, ring.keys[1], {}));
                    return {};
                };
                auto done = rest();
                (void)device.wait(Stream{});  // before anything is destroyed
                return done;
            };
            Result<> done = Error{Code::device, device.failed_call()};
            if (auto memory = device.allocate(512)) {
                done = work(static_cast<std::uint8_t*>(*memory));
                std::memset(*memory, 0, 512);
                device.release(*memory);
            } else {
                done = std::move(memory).error();
            }
            const std::string call = device.failed_call();
            one_failed = !call.empty();
            EXPECT_TRUE(one_failed == !done || call == "wait for stream" ||
                        call == "wait for event")  // at the end of what is asked twice
                << call;
            EXPECT_TRUE(done || done.error().message.find(call) != std::string::npos);
            failed.insert(call);
        }
        expect_clean(device);
    }
    for (const char* call : {"tables", "prepare", "run batch", "copy_out", "replace"})
        EXPECT_EQ(failed.count(call), 1u) << call;
}

// Two devices under "auto".
class TwoDevices : public testing::Test {
  protected:
    void SetUp() override {
        pipeline::Backends hosts;
        hosts.push_back(*core::open_backend("openssl"));
        engine_.emplace(pipeline::make_auto_engine(
            std::move(hosts),
            [this] {
                pipeline::Backends backends;
                backends.push_back(std::make_unique<HostDeviceBackend>(one_));
                backends.push_back(std::make_unique<HostDeviceBackend>(two_));
                return backends;
            },
            {.backend = "auto"}));
    }
    void TearDown() override {
        engine_.reset();
        expect_clean(one_);
        expect_clean(two_);
    }
    std::string run_on(const Message& message) {
        const auto ran = engine_->run({Mode::ctr}, keys_.keys[0], message, {});
        return ran ? std::string(ran->backend) : ran.error().message;
    }
    std::string batch_on(std::initializer_list<Message> messages, Code* code = nullptr) {
        std::vector<Message> list = messages;
        for (std::size_t i = 0; i < list.size(); ++i)
            list[i].start[0] = static_cast<std::uint8_t>(i);
        auto set = engine_->keys(keys_.keys);
        auto batch = engine_->prepare({Mode::ctr}, *set,
                                      {list.data(), static_cast<std::uint32_t>(list.size())});
        if (code) *code = batch.code();
        if (!batch) return batch.error().message;
        const auto ran = engine_->launch(*batch, {});
        for (HostDevice* device : {&one_, &two_}) (void)device->wait(Stream{});
        return ran ? std::string(ran->backend) : ran.error().message;
    }

    HostDevice one_{{.name = "one:0"}}, two_{{.name = "two:0"}};
    std::optional<Engine> engine_;
    const KeyRing keys_{{pattern(32)}};
};

TEST_F(TwoDevices, MemoryDecidesWhichOneWorks) {
    OnDevice first(one_, pattern(64)), second(two_, pattern(64));
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(run_on({first.data(), first.data(), 64}), "one:0");
        EXPECT_EQ(run_on({second.data(), second.data(), 64}), "two:0");
        EXPECT_EQ(run_on({nullptr, second.data(), 64}), "two:0");  // keystream
        EXPECT_EQ(run_on({second.data() + 3, second.data() + 3, 5}), "two:0");
    }
    EXPECT_EQ(batch_on({{first.data(), first.data(), 32}}), "one:0");
    EXPECT_EQ(batch_on({{second.data(), second.data(), 32},
                        {second.data() + 32, second.data() + 32, 32}}),
              "two:0");
    // Messages without a byte say nothing about where a batch belongs.
    EXPECT_EQ(batch_on({{}, {second.data(), second.data(), 32}}), "two:0");
    EXPECT_EQ(batch_on({{first.data(), first.data(), 0}, {second.data(), second.data(), 32}}),
              "two:0");
    (void)one_.wait(Stream{});
    (void)two_.wait(Stream{});
    const auto access = device(*engine_, second.data());
    ASSERT_TRUE(access);
    EXPECT_TRUE(access->memory.owns(second.data()));
    EXPECT_FALSE(access->memory.owns(first.data()));
    EXPECT_TRUE(device(*engine_)->memory.owns(first.data()));  // its first
}

TEST_F(TwoDevices, MessagesOnDifferentDevicesAreRefused) {
    OnDevice first(one_, pattern(64)), second(two_, pattern(64));
    const auto expect = [&](const std::string& said) {
        for (const char* word : {"one:0", "two:0"})
            EXPECT_NE(said.find(word), std::string::npos) << said;
    };
    expect(run_on({first.data(), second.data(), 64}));
    expect(run_on({second.data(), first.data(), 64}));
    Code code = Code::ok;
    expect(batch_on({{first.data(), first.data(), 32}, {second.data(), second.data(), 32}}, &code));
    EXPECT_EQ(code, Code::invalid_argument);
    const std::string later = batch_on({{first.data(), first.data(), 32},
                                        {first.data() + 32, first.data() + 32, 32},
                                        {second.data(), first.data(), 32}},
                                       &code);
    expect(later);
    EXPECT_EQ(later.substr(0, 10), "message 2:");
    // Tags and additional data too.
    auto set = engine_->keys(keys_.keys);
    Message sealed{first.data(), first.data(), 32, nullptr, 0, second.data()};
    EXPECT_EQ(engine_->prepare(gcm::sealing(), *set, {&sealed, 1}).code(), Code::invalid_argument);
    sealed.tag = first.data() + 32;
    sealed.aad = second.data();
    sealed.aad_size = 1;
    EXPECT_EQ(engine_->prepare(gcm::sealing(), *set, {&sealed, 1}).code(), Code::invalid_argument);
    EXPECT_EQ(one_.kernels() + two_.kernels(), 0u);
}

TEST_F(TwoDevices, PointersOfNoDeviceAreRefused) {
    OnDevice first(one_, pattern(64));
    Bytes host(64);
    const auto refused = [&](const Message& message, const char* word) {
        const auto ran = engine_->run({Mode::ctr}, keys_.keys[0], message, {});
        ASSERT_EQ(ran.code(), Code::invalid_argument);
        EXPECT_NE(ran.error().message.find(word), std::string::npos) << ran.error().message;
        Code code = Code::ok;
        const std::string said = batch_on({message}, &code);
        EXPECT_EQ(code, Code::invalid_argument) << said;
        EXPECT_NE(said.find(word), std::string::npos) << said;
    };
    refused({host.data(), host.data(), 64}, "no device's memory");
    refused({first.data(), host.data(), 64}, "no device's memory");
    refused({host.data(), first.data(), 64}, "no device's memory");
    refused({first.data(), nullptr, 64}, "null");
    auto set = engine_->keys(keys_.keys);
    std::vector<Message> list(1);
    EXPECT_EQ(engine_->prepare(gcm::sealing(), *set, {list.data(), 1, Place::device}).code(),
              Code::invalid_argument);
    EXPECT_EQ(device(*engine_, host.data()).code(), Code::invalid_argument);
    EXPECT_EQ(host, Bytes(64));
    EXPECT_EQ(one_.kernels() + two_.kernels(), 0u);
}

// With one device alone nothing is taken for granted either.
TEST_F(DeviceMemory, HostPointersAreRefused) {
    const Key key = *Key::import(pattern(16));
    Bytes host(64);
    OnDevice there(device_, 64);
    for (const Message& m :
         {Message{host.data(), host.data(), 64}, Message{there.data(), host.data(), 64},
          Message{host.data(), there.data(), 64}}) {
        const auto ran = engine_->run({Mode::ctr}, key, m, stream_);
        ASSERT_EQ(ran.code(), Code::invalid_argument);
        EXPECT_NE(ran.error().message.find("threads:0"), std::string::npos) << ran.error().message;
    }
    EXPECT_EQ(device_.kernels(), 0u);
}

// An address that one device gave back and another one got is the other one's.
TEST_F(TwoDevices, AnAddressMayChangeHands) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        const std::uint8_t* before = nullptr;
        {
            OnDevice memory(one_, pattern(64));
            before = memory.data();
            ASSERT_EQ(run_on({memory.data(), memory.data(), 64}), "one:0");
            (void)one_.wait(Stream{});
        }
        OnDevice memory(two_, pattern(64));
        EXPECT_EQ(run_on({memory.data(), memory.data(), 64}), "two:0");
        (void)two_.wait(Stream{});
        (void)one_.wait(Stream{});
        if (memory.data() == before) return;
    }
    GTEST_SKIP() << "no address came back";
}

TEST_F(TwoDevices, KeysInUseOnBothAreNotReplaced) {
    OnDevice first(one_, pattern(64)), second(two_, pattern(64));
    auto set = engine_->keys(keys_.keys);
    ASSERT_TRUE(set);
    EXPECT_TRUE(set->replace(0, keys_.keys[0]));
    for (OnDevice* memory : {&first, &second}) {
        const Message m{memory->data(), memory->data(), 64};
        auto batch = engine_->prepare({Mode::ctr}, *set, {&m, 1});
        ASSERT_TRUE(batch);
        const auto replaced = set->replace(0, keys_.keys[0], {});
        EXPECT_EQ(replaced.code(), memory == &first ? Code::ok : Code::unsupported);
        (void)one_.wait(Stream{});
    }
}

}  // namespace
