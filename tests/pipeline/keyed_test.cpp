// SPDX-License-Identifier: Apache-2.0
// Batches with a key for each message, outside GCM: counter mode and CBC encryption in host memory,
// on every host backend and through a device made of threads, against OpenSSL; the same batches in
// that device's memory.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <utility>

#include "pipeline/engine_state.hpp"
#include "pipeline/host.hpp"
#include "support/host_device.hpp"
#include "support/keyed_job.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr Mode kBoth[] = {Mode::ctr, Mode::cbc};

struct Place {
    const char* name;
    const char* backend;  // "threads": the device made of them
    const char* isa = "";
    int threads = 1;
    std::size_t longest = 2048;
};
void PrintTo(const Place& place, std::ostream* stream) {
    *stream << place.name;
}
constexpr Place kPlaces[] = {{"reference", "reference", "", 2, 200},
                             {"openssl", "openssl"},
                             {"openssl_3_threads", "openssl", "", 3},
                             {"cpu_sse", "cpu", "sse"},
                             {"cpu_avx2", "cpu", "avx2", 2},
                             {"cpu_avx512", "cpu", "avx512", 4},
                             {"automatic", "auto", "", 3},
                             {"device", "threads", "", 2, 500}};

class KeyedBatches : public testing::TestWithParam<Place> {
  protected:
    void SetUp() override {
        const Place& place = GetParam();
        if (std::string(place.backend) == "threads") {
            engine_ = std::make_unique<Engine>(pipeline::make_engine(
                std::make_unique<HostDeviceBackend>(device_),
                {.backend = "threads", .threads = place.threads, .chunk = 64 << 10}));
            return;
        }
        auto opened =
            Engine::open({.backend = place.backend, .isa = place.isa, .threads = place.threads});
        if (!opened && opened.code() == Code::backend_absent)
            GTEST_SKIP() << opened.error().message;
        ASSERT_TRUE(opened) << opened.error().message;
        engine_ = std::make_unique<Engine>(std::move(*opened));
    }
    void TearDown() override {
        engine_.reset();
        EXPECT_EQ(device_.live(), 0u);
        for (const auto& violation : device_.violations()) ADD_FAILURE() << violation;
    }
    void check(Mode mode, const std::vector<std::size_t>& sizes, std::size_t key_count,
               bool in_place) {
        const KeyRing ring(random_, key_count);
        const auto keys = engine_->prepare_keys(ring.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        KeyedJob job(random_, ring, mode, sizes, in_place);
        const auto ran = job.run(*engine_, *keys);
        ASSERT_TRUE(ran) << ran.error().message;
        for (std::size_t i = 0; i < sizes.size(); ++i)
            ASSERT_EQ(job.fault(i), "") << name(mode) << ", message " << i;
    }

    HostDevice device_;
    std::unique_ptr<Engine> engine_;
    Random random_{20260801};
};

TEST_P(KeyedBatches, EveryLengthUnderKeysOfEverySize) {
    std::vector<std::size_t> sizes(GetParam().longest + 1);
    std::iota(sizes.begin(), sizes.end(), std::size_t{0});
    for (const Mode mode : kBoth)
        for (const bool in_place : {false, true}) check(mode, sizes, 7, in_place);
}

TEST_P(KeyedBatches, NoMessagesOneAndManyKeys) {
    for (const Mode mode : kBoth) {
        check(mode, {}, 1, false);
        check(mode, {48}, 1, false);
        check(mode, {0}, 3, true);
        check(mode, std::vector<std::size_t>(40, 100), 90, false);
    }
}

// Long ones are cut where the mode allows it, between threads and chunks, in place too.
TEST_P(KeyedBatches, LongOnesAmongShortOnes) {
    if (GetParam().longest == 200) GTEST_SKIP() << "the reference takes too long for this";
    std::vector<std::size_t> sizes(60, 1000);
    sizes[7] = (std::size_t{1} << 20) + 16;
    sizes[8] = 300007;
    for (const Mode mode : kBoth)
        for (const bool in_place : {false, true}) check(mode, sizes, 3, in_place);
}

TEST_P(KeyedBatches, ABadMessageFailsAlone) {
    for (const Mode mode : kBoth) {
        const KeyRing ring(random_, 3);
        const auto keys = engine_->prepare_keys(ring.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        KeyedJob job(random_, ring, mode, std::vector<std::size_t>(40, 160));
        std::vector<Code> expected(40, Code::ok);
        job.cbc[1].key = job.ctr[1].key = 3;
        job.cbc[5].in = job.ctr[5].in = nullptr;
        job.cbc[6].out = job.ctr[6].out = nullptr;
        expected[1] = expected[5] = expected[6] = Code::invalid_argument;
        job.cbc[9].in = job.ctr[9].in = job.cbc[9].out + 1;
        expected[9] = Code::overlap;
        job.cbc[20].size = 33;
        job.ctr[20].size = kGcmCtrMostData + 1;
        expected[20] = mode == Mode::cbc ? Code::ragged_length : Code::limit;
        if (mode == Mode::ctr) {
            job.ctr[39].aad = job.plain[0].data();
            job.ctr[39].aad_size = 1;
            expected[39] = Code::invalid_argument;
        }
        const auto ran = job.run(*engine_, *keys);
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(job.results, expected);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            if (expected[i] == Code::ok)
                EXPECT_EQ(job.fault(i), "") << name(mode) << ", message " << i;
            else
                EXPECT_EQ(job.out[i].bytes(), Bytes(160, Poisoned::kPoison)) << i;
        }
    }
}

TEST_P(KeyedBatches, WhatIsWrongWithTheCall) {
    const KeyRing ring(random_, 2);
    const auto keys = engine_->prepare_keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    Engine other = *Engine::open({.backend = "openssl"});
    for (const Mode mode : kBoth) {
        KeyedJob job(random_, ring, mode, {16, 32});
        EXPECT_EQ(job.run(other, *keys).code(), Code::invalid_argument);
        EXPECT_EQ(job.results, std::vector<Code>(2, Code::internal));
        job.results.pop_back();
        EXPECT_EQ(job.run(*engine_, *keys).code(), Code::invalid_argument);
    }
    EXPECT_EQ(other.prepare_cbc_encrypt(*keys, nullptr, 0).code(), Code::invalid_argument);
}

TEST_P(KeyedBatches, FourCallersWithOneSetOfKeys) {
    const KeyRing ring(random_, 5);
    const auto keys = engine_->prepare_keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    std::vector<std::thread> threads;
    for (std::uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            Random random(t);
            std::vector<std::size_t> sizes;
            for (int i = 0; i < 60; ++i) sizes.push_back(random.below(GetParam().longest));
            for (const Mode mode : kBoth) {
                KeyedJob job(random, ring, mode, sizes);
                const auto ran = job.run(*engine_, *keys);
                ASSERT_TRUE(ran) << ran.error().message;
                for (std::size_t i = 0; i < sizes.size(); ++i) ASSERT_EQ(job.fault(i), "") << i;
            }
        });
    for (auto& thread : threads) thread.join();
}

// RFC 3686 section 6 counts as this does: nonce and IV, 12 bytes, then a 32-bit counter from 1.
TEST_P(KeyedBatches, PublishedCounterModeVectors) {
    const Bytes key_1{0xae, 0x68, 0x52, 0xf8, 0x12, 0x10, 0x67, 0xcc,
                      0x4b, 0xf7, 0xa5, 0x76, 0x55, 0x77, 0xf3, 0x9e};
    const Bytes key_9{0xff, 0x7a, 0x61, 0x7c, 0xe6, 0x91, 0x48, 0xe4, 0xf1, 0x72, 0x6e,
                      0x2f, 0x43, 0x58, 0x1d, 0xe2, 0xaa, 0x62, 0xd9, 0xf8, 0x05, 0x53,
                      0x2e, 0xdf, 0xf1, 0xee, 0xd6, 0x87, 0xfb, 0x54, 0x15, 0x3d};
    const std::string single = "Single block msg";
    Bytes first(single.begin(), single.end()), ninth(36);
    std::iota(ninth.begin(), ninth.end(), std::uint8_t{0});
    std::vector<Key> keys;
    keys.push_back(std::move(*Key::import(key_1)));
    keys.push_back(std::move(*Key::import(key_9)));
    const auto set = engine_->prepare_keys(keys);
    ASSERT_TRUE(set) << set.error().message;
    GcmMessage messages[2];
    messages[0].in = messages[0].out = first.data();
    messages[0].size = first.size();
    messages[0].nonce = {0x00, 0x00, 0x00, 0x30};
    messages[1].in = messages[1].out = ninth.data();
    messages[1].size = ninth.size();
    messages[1].nonce = {0x00, 0x1c, 0xc5, 0xb7, 0x51, 0xa5, 0x1d, 0x70, 0xa1, 0xc1, 0x11, 0x48};
    messages[1].key = 1;
    Code results[2];
    const auto ran = engine_->ctr_batch(*set, messages, results);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(first, (Bytes{0xe4, 0x09, 0x5d, 0x4f, 0xb7, 0xa7, 0xb3, 0x79, 0x2d, 0x61, 0x75, 0xa3,
                            0x26, 0x13, 0x11, 0xb8}));
    EXPECT_EQ(ninth,
              (Bytes{0xeb, 0x6c, 0x52, 0x82, 0x1d, 0x0b, 0xbb, 0xf7, 0xce, 0x75, 0x94, 0x46,
                     0x2a, 0xca, 0x4f, 0xaa, 0xb4, 0x07, 0xdf, 0x86, 0x65, 0x69, 0xfd, 0x07,
                     0xf4, 0x8c, 0xc0, 0xb5, 0x83, 0xd6, 0x07, 0x1f, 0x1e, 0xc0, 0xe6, 0xb8}));
}

INSTANTIATE_TEST_SUITE_P(Host, KeyedBatches, testing::ValuesIn(kPlaces),
                         [](const auto& place) { return std::string(place.param.name); });

// The counter's last value is 2^32 - 1; one byte more would need it to wrap.
TEST(KeyedLimits, TheCounterNeverWraps) {
    std::uint8_t byte = 0;
    core::GcmSegment segment;
    segment.in = segment.out = &byte;
    segment.size = kGcmCtrMostData;
    EXPECT_EQ(kGcmCtrMostData / 16, (std::uint64_t{1} << 32) - 1);
    EXPECT_TRUE(modes::takes_ctr(segment, 1));
    EXPECT_TRUE(modes::check_ctr(segment, 1));
    ++segment.size;
    EXPECT_FALSE(modes::takes_ctr(segment, 1));
    EXPECT_EQ(modes::check_ctr(segment, 1).code(), Code::limit);
}

// 640 messages under 4 keys in turn: every backend call has one key's, and fills the lanes.
TEST(KeyedShares, CbcMessagesOfAKeyGoTogether) {
    std::vector<KeyedMessage> messages(640);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        messages[i].key = static_cast<std::uint32_t>(i % 4);
        messages[i].in = messages[i].out = reinterpret_cast<std::uint8_t*>(16 * (i + 1));
        messages[i].size = 16 * (i % 30);
    }
    std::vector<Code> results(messages.size(), Code::internal);
    const pipeline::KeyedWork work{std::span<const KeyedMessage>(messages)};
    const auto order = pipeline::sort_valid(work, 4, results);
    ASSERT_EQ(order.size(), messages.size());
    const auto runs = pipeline::share_out(work, order, 4);
    ASSERT_EQ(runs.segments.size(), messages.size());
    EXPECT_LE(runs.runs.size(), messages.size() / pipeline::kLanes);
    std::size_t covered = 0;
    for (const auto& share : runs.shares) covered += share.end - share.begin;
    EXPECT_EQ(covered, runs.runs.size());
    for (const auto& run : runs.runs)
        for (std::size_t i = 0; i < runs[run].size(); ++i) {
            EXPECT_EQ((reinterpret_cast<std::uintptr_t>(runs[run][i].in) / 16 - 1) % 4, run.key);
            if (i != 0) {
                EXPECT_LE(runs[run][i].size, runs[run][i - 1].size);
            }
        }
}

TEST(KeyedShares, ALongMessageInCounterModeIsCut) {
    Bytes data(std::size_t{8} << 20);
    GcmMessage message;
    message.in = message.out = data.data();
    message.size = data.size();
    Code result = Code::internal;
    const pipeline::KeyedWork work{std::span<const GcmMessage>(&message, 1)};
    const auto order = pipeline::sort_valid(work, 1, std::span(&result, 1));
    EXPECT_GE(pipeline::share_out(work, order, 4).shares.size(), 4u);
}

// Both kinds of list, in the memory of the device made of threads.
TEST(KeyedInDeviceMemory, CbcFromBothKindsOfList) {
    HostDevice device;
    {
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
        Random random(5);
        const KeyRing ring(random, 3);
        const auto keys = engine.prepare_keys(ring.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        KeyedJob job(random, ring, Mode::cbc, {0, 16, 160, 4096, 48});
        constexpr std::size_t kRoom = 8192;
        auto* memory = static_cast<std::uint8_t*>(*device.allocate(kRoom));
        const std::size_t list_size = job.cbc.size() * sizeof(KeyedMessage);
        auto* list = static_cast<KeyedMessage*>(*device.allocate(list_size));
        const Stream stream = *device.create_stream();
        for (const bool on_host : {true, false}) {
            std::size_t used = 0;
            for (std::size_t i = 0; i < job.cbc.size(); ++i) {  // its memory is the host's
                std::ranges::copy(job.plain[i], memory + used);
                job.cbc[i].in = job.cbc[i].out = memory + used;
                used += job.cbc[i].size;
            }
            std::vector<Code> expected(job.cbc.size(), Code::ok);
            if (on_host) {
                job.cbc[2].unused = std::exchange(job.cbc[2].key, 3u);
                const auto refused = engine.prepare_cbc_encrypt(*keys, job.cbc);
                EXPECT_EQ(refused.code(), Code::invalid_argument);
                EXPECT_EQ(refused.error().message.substr(0, 10), "message 2:");
                job.cbc[2].key = std::exchange(job.cbc[2].unused, 0u);
            } else {
                job.cbc[2].size -= 1;
                expected[2] = Code::ragged_length;
                std::memcpy(list, job.cbc.data(), list_size);
            }
            auto batch = on_host ? engine.prepare_cbc_encrypt(*keys, job.cbc)
                                 : engine.prepare_cbc_encrypt(
                                       *keys, list, static_cast<std::uint32_t>(job.cbc.size()));
            ASSERT_TRUE(batch) << batch.error().message;
            const auto ran = engine.run(*batch, stream);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, "threads:0");
            ASSERT_TRUE(device.wait(stream));
            for (std::size_t i = 0; i < job.cbc.size(); ++i) {
                EXPECT_EQ(batch->results()[i], static_cast<std::uint32_t>(expected[i])) << i;
                const Bytes& right = expected[i] == Code::ok ? job.expected[i] : job.plain[i];
                EXPECT_EQ(difference(right, {job.cbc[i].out, right.size()}), "") << i;
            }
        }
        EXPECT_EQ(engine.prepare_cbc_encrypt(*keys, nullptr, 1).code(), Code::invalid_argument);
        std::memset(memory, 0, kRoom);
        std::fill_n(list, job.cbc.size(), KeyedMessage{});
        device.release(memory);
        device.release(list);
        device.destroy_stream(stream);
    }
    EXPECT_EQ(device.live(), 0u);
    for (const auto& violation : device.violations()) ADD_FAILURE() << violation;
}

TEST(KeyedInDeviceMemory, AFailureThatTheBatchAloneTells) {
    HostDevice device({.silent_failures = true});
    Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device));
    const Key key = *Key::import(pattern(16));
    const auto keys = engine.prepare_keys(std::span(&key, 1));
    ASSERT_TRUE(keys) << keys.error().message;
    auto* const memory = static_cast<std::uint8_t*>(*device.allocate(64));
    const Stream stream = *device.create_stream();
    KeyedMessage message{};
    message.in = message.out = memory;
    message.size = 64;
    auto batch = engine.prepare_cbc_encrypt(*keys, std::span(&message, 1));
    ASSERT_TRUE(batch) << batch.error().message;
    ASSERT_TRUE(engine.run(*batch, stream));
    EXPECT_EQ(engine.results(*batch, stream).code(), Code::device);
    std::memset(memory, 0, 64);
    device.release(memory);
    device.destroy_stream(stream);
}

}  // namespace
