// SPDX-License-Identifier: Apache-2.0
// One message that lies on several devices: each does its shard in place or apart, in the order of
// its stream, and the bytes and the tag are those of one message in one place.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <deque>
#include <list>

#include "core/registry.hpp"
#include "modes/traits.hpp"
#include "pipeline/engine_state.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael;
using namespace dael::test;

const Cipher kCiphers[] = {{Mode::ctr},
                           {Mode::ecb},
                           {Mode::ecb, Direction::decrypt},
                           {Mode::xts, Direction::encrypt, 16, 0, 512},
                           {Mode::xts, Direction::decrypt, 16, 0, 48},
                           {Mode::cbc, Direction::decrypt},
                           {Mode::cfb, Direction::decrypt},
                           {Mode::gcm_ctr},
                           gcm::sealing(),
                           gcm::opening(),
                           {Mode::gcm, Direction::encrypt, 12},
                           {Mode::gcm, Direction::decrypt, 13}};

constexpr std::uint8_t kPoison = 0xa5;

class Devices {
  public:
    explicit Devices(std::size_t count, HostDeviceOptions options = {},
                     const char* host = "openssl") {
        pipeline::Backends set;
        for (std::size_t i = 0; i < count; ++i) {
            options.name = "threads:" + std::to_string(i);
            all.emplace_back(options);
            set.push_back(std::make_unique<HostDeviceBackend>(all.back()));
            streams.push_back(*all.back().create_stream());
        }
        if (host) set.push_back(*core::open_backend(host));
        engine.emplace(pipeline::make_set_engine(std::move(set), {.threads = 2}));
    }
    ~Devices() {
        engine.reset();
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].destroy_stream(streams[i]);
            expect_clean(all[i]);
        }
    }
    std::deque<HostDevice> all;
    std::vector<Stream> streams;
    std::optional<Engine> engine;
};

// A message laid out over devices: `sizes` of its shards, on one device after the other.
class Laid {
  public:
    Laid(Devices& devices, const Bytes& data, const std::vector<std::size_t>& sizes, bool in_place)
        : data_(data) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            HostDevice& device = devices.all[i % devices.all.size()];
            Held held{&device, static_cast<std::uint8_t*>(*device.allocate(2 * sizes[i] + 32))};
            held.size = 2 * sizes[i] + 32;
            memory_.push_back(held);
            Shard shard{held.memory, held.memory, sizes[i],
                        devices.streams[i % devices.all.size()]};
            if (!in_place) shard.out += sizes[i] + 16;
            shards.push_back(shard);
        }
        again();
    }
    ~Laid() {
        for (const Held& held : memory_) {
            wipe(held.memory, held.size);
            held.device->release(held.memory);
        }
    }
    Laid(const Laid&) = delete;
    Laid& operator=(const Laid&) = delete;

    void again() {
        std::size_t at = 0;
        for (std::size_t i = 0; i < shards.size(); ++i) {
            std::memset(memory_[i].memory, kPoison, memory_[i].size);
            if (shards[i].size != 0) std::memcpy(memory_[i].memory, &data_[at], shards[i].size);
            at += shards[i].size;
        }
    }
    Bytes out() const {
        Bytes all;
        for (const Shard& shard : shards) all.insert(all.end(), shard.out, shard.out + shard.size);
        return all;
    }
    // Whether nothing but the output was written.
    bool kept_around(bool in_place) const {
        for (std::size_t i = 0; i < shards.size(); ++i) {
            const std::uint8_t* const end = memory_[i].memory + memory_[i].size;
            const std::uint8_t* const after = shards[i].out + shards[i].size;
            if (!std::all_of(after, end, [](std::uint8_t b) { return b == kPoison; })) return false;
            if (in_place) continue;
            const std::uint8_t* const gap = memory_[i].memory + shards[i].size;
            if (!std::all_of(gap, static_cast<const std::uint8_t*>(shards[i].out),
                             [](std::uint8_t b) { return b == kPoison; }))
                return false;
        }
        return true;
    }

    std::vector<Shard> shards;

  private:
    struct Held {
        HostDevice* device;
        std::uint8_t* memory;
        std::size_t size = 0;
    };
    const Bytes data_;
    std::vector<Held> memory_;
};

// A whole message, what it becomes, and as a call over shards has it.
struct Whole {
    Whole(Random& random, const KeyRing& ring, const Cipher& the_cipher, std::size_t size)
        : cipher(the_cipher), data(random.bytes(size)), aad(random.bytes(random.below(40))) {
        Message m{data.data(), const_cast<std::uint8_t*>(data.data()), size};
        m.start = fitting_start(cipher, random);
        m.key = static_cast<std::uint32_t>(random.below(ring.keys.size()));
        if (makes_keystream(cipher.mode)) m.skip = static_cast<std::uint8_t>(random.below(16));
        if (authenticates(cipher.mode)) {
            m.aad = aad.data();
            m.aad_size = aad.size();
            m.tag = tag.data();
        }
        answer = oracle(ring.raw[m.key], cipher, m);
        tag.fill(kPoison);
        if (authenticates(cipher.mode) && !modes::encrypts(cipher))
            std::copy_n(answer.tag.begin(), cipher.tag, tag.begin());
        m.in = m.out = nullptr;
        m.size = 0;
        message = m;
    }
    Whole(const Whole&) = delete;
    std::string fault(const Laid& laid, bool in_place) const {
        if (auto wrong = difference(answer.out, laid.out()); !wrong.empty()) return wrong;
        if (!laid.kept_around(in_place)) return "written beside the output";
        if (!authenticates(cipher.mode)) return "";
        if (auto wrong = difference(std::span(answer.tag).first(cipher.tag),
                                    std::span(tag).first(cipher.tag));
            !wrong.empty())
            return "the tag: " + wrong;
        for (std::size_t i = cipher.tag; i < tag.size(); ++i)
            if (tag[i] != kPoison) return "more than the tag was written";
        return "";
    }
    const Cipher cipher;
    const Bytes data, aad;
    Block tag{};
    Answer answer;
    Message message;
};

// Cuts of a message of `size` bytes, at what the mode allows; some of them empty.
std::vector<std::size_t> cuts(Random& random, const Whole& whole, std::size_t count) {
    const std::size_t unit = modes::traits(whole.cipher.mode).unit(whole.cipher);
    std::vector<std::size_t> sizes;
    std::size_t left = whole.data.size(), at = 0;
    for (; count > 1; --count) {
        std::size_t end = at + random.below(left + 1);
        end = (end + whole.message.skip) / unit * unit;
        end = end < whole.message.skip ? 0 : end - whole.message.skip;
        if (end < at || random.below(5) == 0) end = at;
        sizes.push_back(end - at);
        left -= end - at;
        at = end;
    }
    sizes.push_back(left);
    return sizes;
}

TEST(Shards, WalkOverModesCutsAndFailures) {
    std::size_t good = 0, failed = 0, forged = 0;
    for (Walks walks("shards", thorough(400u, 80u)); walks.next();) {
        SCOPED_TRACE(walks.text());
        Random random(walks.seed());
        const Cipher cipher = kCiphers[random.below(std::size(kCiphers))];
        const KeyRing ring(random, 1 + random.below(3), cipher.mode);
        HostDeviceOptions options;
        options.reads_lists = random.below(3) != 0;
        options.gives_up = random.below(8) == 0;
        Devices devices(1 + random.below(3), options, random.below(3) != 0 ? "openssl" : nullptr);
        auto keys = devices.engine->keys(ring.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        Whole whole(random, ring, cipher, fitting(cipher, random.below(6000)));
        const bool in_place = random.below(2) != 0;
        Laid laid(devices, whole.data, cuts(random, whole, 1 + random.below(6)), in_place);
        for (int round = 0; round < 3; ++round) {
            walks.step();
            laid.again();
            if (modes::encrypts(cipher)) whole.tag.fill(kPoison);
            if (round == 1)
                devices.all[random.below(devices.all.size())].fail(
                    1 + static_cast<int>(random.below(20)));
            const auto ran = devices.engine->run_shards(cipher, *keys, whole.message, laid.shards);
            for (auto& device : devices.all) device.fail(0);
            if (ran) {
                ++good;
                ASSERT_EQ(whole.fault(laid, in_place), "")
                    << name(cipher.mode) << ", " << whole.data.size() << " bytes in "
                    << laid.shards.size();
            } else {
                ++failed;
                ASSERT_EQ(round, 1) << ran.error().message;
                ASSERT_EQ(ran.code(), Code::device) << ran.error().message;
                // What a wait gave up may still be written.
                for (std::size_t i = 0; i < devices.all.size(); ++i)
                    ASSERT_TRUE(devices.all[i].wait(devices.streams[i]));
            }
        }
        if (cipher.mode != Mode::gcm || modes::encrypts(cipher) || whole.data.empty()) continue;
        // One bit anywhere, and nothing is written.
        laid.again();
        std::size_t at = random.below(whole.data.size()), shard = 0;
        while (at >= laid.shards[shard].size) at -= laid.shards[shard++].size;
        const_cast<std::uint8_t*>(laid.shards[shard].in)[at] ^=
            static_cast<std::uint8_t>(1u << random.below(8));
        const Bytes before = laid.out();
        const auto ran = devices.engine->run_shards(cipher, *keys, whole.message, laid.shards);
        ASSERT_EQ(ran.code(), Code::authentication);
        ASSERT_EQ(difference(before, laid.out()), "");
        ++forged;
    }
    EXPECT_GT(good, 0u);
    EXPECT_GT(failed, 0u);
    EXPECT_GT(forged, 0u);
}

// Work that a stream has already comes first, and who did what is told.
TEST(Shards, AreInTheOrderOfTheirStreams) {
    Random random(2);
    const KeyRing ring(random, 1);
    for (const Cipher& cipher : {Cipher{Mode::ctr}, gcm::sealing(), gcm::opening(),
                                 Cipher{Mode::cbc, Direction::decrypt}}) {
        Devices devices(2, {.delay = std::chrono::milliseconds(2)});
        auto keys = devices.engine->keys(ring.keys);
        ASSERT_TRUE(keys);
        Whole whole(random, ring, cipher, 4096);
        whole.message.skip = 0;
        Message m = whole.message;
        m.in = m.out = const_cast<std::uint8_t*>(whole.data.data());
        m.size = whole.data.size();
        whole.answer = oracle(ring.raw[0], cipher, m);
        Laid laid(devices, whole.data, {3072, 1024}, true);
        std::vector<std::uint8_t*> held;
        std::size_t at = 0;
        for (std::size_t i = 0; i < 2; ++i) {
            HostDevice& device = devices.all[i];
            held.push_back(static_cast<std::uint8_t*>(*device.allocate_pinned(4096)));
            const Shard& shard = laid.shards[i];
            std::memset(shard.out, 0, shard.size);
            std::memcpy(held[i], &whole.data[at], shard.size);
            at += shard.size;
            ASSERT_TRUE(device.copy_in(shard.out, held[i], shard.size, shard.stream));
        }
        const auto ran = devices.engine->run_shards(cipher, *keys, whole.message, laid.shards);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(whole.fault(laid, true), "");
        EXPECT_EQ(ran->backend, "threads:0+threads:1");
        EXPECT_EQ(ran->percent[0], 75);
        EXPECT_EQ(ran->percent[1], 25);
        for (std::size_t i = 0; i < 2; ++i) {
            wipe(held[i], 4096);
            devices.all[i].release_pinned(held[i]);
        }
    }
}

TEST(Shards, WhatCannotBeIsRefusedAndNothingIsTouched) {
    Random random(3);
    const KeyRing ring(random, 1), xts(random, 1, true);
    Devices devices(2);
    auto keys = devices.engine->keys(ring.keys), xts_keys = devices.engine->keys(xts.keys);
    ASSERT_TRUE(keys && xts_keys);
    const auto refused = [&](const Cipher& cipher, const Message& message,
                             const std::vector<Shard>& shards, Code code, const char* words) {
        const KeySet& its = cipher.mode == Mode::xts ? *xts_keys : *keys;
        const auto ran = devices.engine->run_shards(cipher, its, message, shards);
        EXPECT_EQ(ran.code(), code) << name(cipher.mode);
        if (ran) return;
        EXPECT_NE(ran.error().message.find(words), std::string::npos) << ran.error().message;
    };
    const Bytes data = random.bytes(1000);
    Laid laid(devices, data, {480, 520}, true);
    const Bytes before = laid.out();
    Block tag{};
    Message message;
    message.start[11] = 1;
    const auto& shards = laid.shards;
    refused({Mode::cbc}, message, shards, Code::unsupported, "sequential");
    refused({Mode::ofb}, message, shards, Code::unsupported, "sequential");
    refused(gcm::sealing(), message, shards, Code::invalid_argument, "tag");
    refused({Mode::xts, Direction::encrypt, 16, 0, 512}, message, shards, Code::ragged_length,
            "shard 0: 480 bytes");
    auto ragged = shards;
    ragged[0].size = 479;
    message.tag = tag.data();
    refused(gcm::sealing(), message, ragged, Code::ragged_length, "multiple of 16");
    message.tag = nullptr;
    auto apart = shards;
    apart[1].out += 16;
    refused({Mode::ctr}, message, apart, Code::overlap, "shard 1");
    auto nowhere = shards;
    nowhere[1].in = nowhere[1].out = const_cast<std::uint8_t*>(data.data());
    refused({Mode::ctr}, message, nowhere, Code::invalid_argument, "no device's memory");
    auto both = shards;
    both[1].out = shards[0].out;
    both[1].size = 16;
    refused({Mode::ctr}, message, both, Code::invalid_argument, "one call works on one device");
    auto endless = shards;
    endless[0].size = ~std::uint64_t{0};
    refused({Mode::ctr}, message, endless, Code::limit, "2^64");
    devices.all[1].capture(devices.streams[1]);
    refused({Mode::ctr}, message, shards, Code::unsupported, "captured");
    devices.all[1].capture({});
    Message full = message;
    full.in = full.out = const_cast<std::uint8_t*>(data.data());
    full.size = 16;
    refused({Mode::ctr}, full, shards, Code::invalid_argument, "no data of its own");
    Devices others(1);
    EXPECT_EQ(others.engine->run_shards({Mode::ctr}, *keys, message, shards).code(),
              Code::invalid_argument);
    EXPECT_EQ(difference(before, laid.out()), "");
    const auto none = devices.engine->run_shards({Mode::ctr}, *keys, message, {});
    EXPECT_TRUE(none);
}

// The counter of an IV that is no nonce may wrap anywhere when a message is sealed, within a shard
// too; to open it takes counter mode, which may not.
TEST(Shards, WhereTheCounterWraps) {
    Random random(5);
    const KeyRing ring(random, 1);
    Devices devices(2);
    auto keys = devices.engine->keys(ring.keys);
    ASSERT_TRUE(keys);
    for (const std::size_t first : {64, 240, 512}) {
        Whole whole(random, ring, gcm::sealing(), 1024);
        std::ranges::copy(Bytes{255, 255, 255, 240}, whole.message.start.begin() + 12);
        Message m = whole.message;
        m.in = m.out = const_cast<std::uint8_t*>(whole.data.data());
        m.size = whole.data.size();
        whole.answer = oracle(ring.raw[0], whole.cipher, m);
        Laid laid(devices, whole.data, {first, 1024 - first}, true);
        const auto sealed =
            devices.engine->run_shards(whole.cipher, *keys, whole.message, laid.shards);
        ASSERT_TRUE(sealed) << sealed.error().message;
        EXPECT_EQ(whole.fault(laid, true), "") << first;
        const Bytes before = laid.out();
        const auto opened =
            devices.engine->run_shards(gcm::opening(), *keys, whole.message, laid.shards);
        EXPECT_EQ(opened.code(), Code::unsupported);
        EXPECT_EQ(difference(before, laid.out()), "");
    }
}

// A tag low in memory, as programs have it that are not position-independent, is in nobody's way.
TEST(Shards, ATagAtALowAddress) {
    void* const low = mmap(reinterpret_cast<void*>(std::uintptr_t{1} << 20), 4096,
                           PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(low, MAP_FAILED);
    Random random(6);
    const KeyRing ring(random, 1);
    Devices devices(1);
    auto keys = devices.engine->keys(ring.keys);
    ASSERT_TRUE(keys);
    Whole whole(random, ring, gcm::sealing(), 4 << 20);
    Laid laid(devices, whole.data, {4 << 20}, true);
    Message message = whole.message;
    message.tag = static_cast<std::uint8_t*>(low);
    const auto sealed = devices.engine->run_shards(whole.cipher, *keys, message, laid.shards);
    ASSERT_TRUE(sealed) << sealed.error().message;
    EXPECT_EQ(difference(whole.answer.tag, std::span(message.tag, 16)), "");
    munmap(low, 4096);
}

// Of nothing but additional data there is a tag, too.
TEST(Shards, ATagOfNoData) {
    Random random(4);
    const KeyRing ring(random, 1);
    Devices devices(2);
    auto keys = devices.engine->keys(ring.keys);
    ASSERT_TRUE(keys);
    Whole whole(random, ring, gcm::sealing(), 0);
    Laid laid(devices, whole.data, {0, 0}, true);
    ASSERT_TRUE(devices.engine->run_shards(whole.cipher, *keys, whole.message, laid.shards));
    EXPECT_EQ(whole.fault(laid, true), "");
}

}  // namespace
