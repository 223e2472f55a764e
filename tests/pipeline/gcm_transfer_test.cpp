// SPDX-License-Identifier: Apache-2.0
// GCM batches in host memory through a device, on a device made of threads: slabs and their edges,
// forged messages, failures of every call, too little memory, many callers.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include <daelstrom/engine.hpp>

#include "pipeline/engine_state.hpp"
#include "support/gcm_test.hpp"
#include "support/host_device.hpp"

namespace {

using namespace dael;
using namespace dael::test;

constexpr std::size_t kSlab = 64 << 10;

Engine engine_on(HostDevice& device, std::size_t slab = kSlab) {
    return pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                 {.backend = "threads", .threads = 3, .chunk = slab});
}

void expect_clean(HostDevice& device) {
    EXPECT_EQ(device.live(), 0u);
    for (const auto& violation : device.violations()) ADD_FAILURE() << violation;
}

// Messages of given sizes under two keys, and what OpenSSL makes of them.
struct Messages {
    explicit Messages(const std::vector<std::size_t>& sizes, std::uint64_t seed = 1)
        : random(seed) {
        for (const std::size_t size : {16, 32}) {
            raw.push_back(random.bytes(size));
            keys.push_back(*Key::import(raw.back()));
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            plain.push_back(random.bytes(sizes[i]));
            aad.push_back(random.bytes(i % 40));
            nonce.push_back(random.bytes(kNonceSize));
            sealed.push_back(gcm_oracle(raw[i % 2], nonce[i], aad[i], plain[i]));
        }
        results.assign(sizes.size(), Code::internal);
    }
    std::span<const GcmMessage> to_seal() {
        out.clear();
        for (const Bytes& bytes : plain) out.emplace_back(bytes.size(), Poisoned::kPoison);
        tags.assign(plain.size(), Bytes(kTagSize, Poisoned::kPoison));
        return list(plain);
    }
    std::span<const GcmMessage> to_open() {
        from.clear();
        tags.clear();
        out.clear();
        for (const Sealed& s : sealed) {
            from.push_back(s.ciphertext);
            tags.push_back(s.tag);
            out.emplace_back(s.ciphertext.size(), Poisoned::kPoison);
        }
        return list(from);
    }
    std::span<const GcmMessage> list(const std::vector<Bytes>& in) {
        batch.clear();
        for (std::size_t i = 0; i < in.size(); ++i) {
            batch.push_back({in[i].data(),
                             out[i].data(),
                             in[i].size(),
                             aad[i].data(),
                             aad[i].size(),
                             tags[i].data(),
                             {},
                             static_cast<std::uint32_t>(i % 2)});
            std::ranges::copy(nonce[i], batch.back().nonce.begin());
        }
        return batch;
    }
    void expect_sealed() const {
        for (std::size_t i = 0; i < plain.size(); ++i) {
            ASSERT_EQ(results[i], Code::ok) << i;
            ASSERT_EQ(difference(sealed[i].ciphertext, out[i]), "") << i;
            ASSERT_EQ(difference(sealed[i].tag, tags[i]), "") << i;
        }
    }
    void expect_opened() const {
        for (std::size_t i = 0; i < plain.size(); ++i) {
            ASSERT_EQ(results[i], Code::ok) << i;
            ASSERT_EQ(difference(plain[i], out[i]), "") << i;
        }
    }

    Random random;
    std::vector<Bytes> raw, plain, aad, nonce, from, out, tags;
    std::vector<Key> keys;
    std::vector<Sealed> sealed;
    std::vector<GcmMessage> batch;
    std::vector<Code> results;
};

std::vector<std::size_t> mixed_sizes(std::size_t count, std::size_t longest) {
    Random random(7);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < count; ++i) sizes.push_back(random.below(longest));
    return sizes;
}

TEST(GcmTransfer, SlabsOfManySizes) {
    for (const auto& sizes : {std::vector<std::size_t>{0},
                              {1},
                              {kSlab},
                              {5 * kSlab + 3},
                              {0, 3 * kSlab, 0, 1},
                              mixed_sizes(300, 3000),
                              mixed_sizes(2000, 64),
                              mixed_sizes(20, 2 * kSlab)}) {
        HostDevice device({.delay = std::chrono::microseconds(50)});
        {
            Engine engine = engine_on(device);
            Messages messages(sizes);
            const auto keys = engine.prepare_keys(messages.keys);
            ASSERT_TRUE(keys) << keys.error().message;
            auto ran = engine.seal_batch(*keys, messages.to_seal(), messages.results);
            ASSERT_TRUE(ran) << ran.error().message;
            EXPECT_EQ(ran->backend, "threads:0");
            EXPECT_GE(ran->chunks, 1u);
            messages.expect_sealed();
            ran = engine.open_batch(*keys, messages.to_open(), messages.results);
            ASSERT_TRUE(ran) << ran.error().message;
            messages.expect_opened();
        }
        expect_clean(device);
        if (sizes.size() > 100) {
            EXPECT_GE(device.kernels(), 4u);
        }
    }
}

TEST(GcmTransfer, SlabsOverlap) {
    HostDevice device({.delay = std::chrono::milliseconds(2)});
    {
        Engine engine = engine_on(device);
        Messages messages(std::vector<std::size_t>(200, 4000));
        const auto keys = engine.prepare_keys(messages.keys);
        ASSERT_TRUE(keys);
        ASSERT_TRUE(engine.seal_batch(*keys, messages.to_seal(), messages.results));
        messages.expect_sealed();
    }
    EXPECT_GE(device.most_at_once(), 2);
    expect_clean(device);
}

TEST(GcmTransfer, OneMessageWithALongIv) {
    HostDevice device;
    {
        Engine engine = engine_on(device);
        const Bytes raw = random_bytes(24, 1), iv = random_bytes(100, 2), aad = random_bytes(50, 3);
        const Bytes plain = random_bytes(100000, 4);
        const Key key = *Key::import(raw);
        const Sealed expected = gcm_oracle(raw, iv, aad, plain);
        Bytes data = plain, tag(12);
        ASSERT_TRUE(engine.gcm_seal(key, iv, aad, data, data, tag));
        EXPECT_EQ(data, expected.ciphertext);
        EXPECT_TRUE(std::equal(tag.begin(), tag.end(), expected.tag.begin()));
        ASSERT_TRUE(engine.gcm_open(key, iv, aad, data, data, tag));
        EXPECT_EQ(data, plain);
        tag[3] ^= 4;
        EXPECT_EQ(engine.gcm_open(key, iv, aad, expected.ciphertext, data, tag).code(),
                  Code::authentication);
    }
    expect_clean(device);
}

// What failed is left as it was, and no plaintext crossed the bus; its neighbours are right.
TEST(GcmTransfer, ForgedAndInvalidMessagesFailAlone) {
    HostDevice device;
    {
        Engine engine = engine_on(device);
        Messages messages(mixed_sizes(200, 2000));
        const auto keys = engine.prepare_keys(messages.keys);
        ASSERT_TRUE(keys);
        messages.to_open();
        std::vector<Code> expected(messages.batch.size(), Code::ok);
        for (std::size_t i = 0; i < expected.size(); i += 5) {
            messages.tags[i][i % 16] ^= 1;
            expected[i] = Code::authentication;
        }
        messages.batch[7].key = 2;
        messages.batch[33].tag = nullptr;
        messages.batch[34].size = kGcmMostData + 1;
        expected[7] = expected[33] = Code::invalid_argument;
        expected[34] = Code::limit;
        ASSERT_TRUE(engine.open_batch(*keys, messages.batch, messages.results));
        EXPECT_EQ(messages.results, expected);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const Bytes untouched(messages.plain[i].size(), Poisoned::kPoison);
            EXPECT_EQ(messages.out[i], expected[i] == Code::ok ? messages.plain[i] : untouched)
                << i;
        }
    }
    expect_clean(device);
}

TEST(GcmTransfer, EveryCallMayFailAndNothingStaysBehind) {
    int calls = 0;
    for (int fail_at = 0;; ++fail_at) {
        HostDevice device({.fail_at = fail_at});
        bool failed = false;
        {
            Engine engine = engine_on(device);
            Messages messages(std::vector<std::size_t>(100, 4000));
            const auto keys = engine.prepare_keys(messages.keys);
            if (keys) {
                messages.to_open();
                for (std::size_t i = 0; i < 100; i += 2) messages.tags[i][0] ^= 1;
                const auto ran = engine.open_batch(*keys, messages.batch, messages.results);
                failed = !ran;
                if (failed) {
                    EXPECT_EQ(ran.code(), Code::device) << ran.error().message;
                }
                for (std::size_t i = 0; i < 100; i += 2)
                    EXPECT_EQ(messages.out[i], Bytes(4000, Poisoned::kPoison));
            } else {
                failed = true;
            }
        }
        EXPECT_EQ(device.live(), 0u) << device.failed_call();
        for (const auto& violation : device.violations())
            ADD_FAILURE() << violation << ", after " << device.failed_call();
        if (fail_at == 0) {
            ASSERT_FALSE(failed);
            calls = device.calls();
            continue;
        }
        // What fails while slots are wiped and released is passed over.
        EXPECT_EQ(
            failed || device.failed_call() == "fill" || device.failed_call() == "wait for stream",
            true)
            << device.failed_call();
        if (fail_at >= calls) break;
    }
    EXPECT_GT(calls, 100);
}

// Nothing is handed out of a batch whose kernels failed while every wait went well.
TEST(GcmTransfer, AFailureThatTheBatchAloneTells) {
    HostDevice device({.silent_failures = true});
    {
        Engine engine = engine_on(device);
        Messages messages(std::vector<std::size_t>(100, 4000));
        const auto keys = engine.prepare_keys(messages.keys);
        ASSERT_TRUE(keys);
        EXPECT_EQ(engine.seal_batch(*keys, messages.to_seal(), messages.results).code(),
                  Code::device);
        EXPECT_EQ(messages.out, std::vector(100, Bytes(4000, Poisoned::kPoison)));
        EXPECT_EQ(engine.open_batch(*keys, messages.to_open(), messages.results).code(),
                  Code::device);
        EXPECT_EQ(messages.out, std::vector(100, Bytes(4000, Poisoned::kPoison)));
        EXPECT_EQ(messages.results, std::vector(100, Code::internal));
    }
    expect_clean(device);
}

TEST(GcmTransfer, LittleMemoryMakesSmallerSlabs) {
    HostDevice device({.memory = 200 << 10});
    {
        Engine engine = engine_on(device, 128 << 10);
        Messages messages(mixed_sizes(300, 2000));
        const auto keys = engine.prepare_keys(messages.keys);
        ASSERT_TRUE(keys);
        const auto ran = engine.seal_batch(*keys, messages.to_seal(), messages.results);
        ASSERT_TRUE(ran) << ran.error().message;
        messages.expect_sealed();
        Messages large({std::size_t{150} << 10});
        EXPECT_EQ(engine.seal_batch(*keys, large.to_seal(), large.results).code(),
                  Code::out_of_memory);
    }
    expect_clean(device);
}

TEST(GcmTransfer, ManyCallersAtOnce) {
    HostDevice device;
    {
        Engine engine = engine_on(device);
        std::vector<std::thread> threads;
        for (std::uint64_t t = 0; t < 4; ++t)
            threads.emplace_back([&engine, t] {
                Messages messages(mixed_sizes(100, 3000), t);
                const auto keys = engine.prepare_keys(messages.keys);
                ASSERT_TRUE(keys);
                ASSERT_TRUE(engine.seal_batch(*keys, messages.to_seal(), messages.results));
                messages.expect_sealed();
            });
        for (auto& thread : threads) thread.join();
    }
    expect_clean(device);
}

}  // namespace
