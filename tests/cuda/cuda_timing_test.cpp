// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels' time must not depend on what they process: the attack of Jiang, Fei and Kaeli
// (HPCA 2016) reads keys from bank conflicts. Every layout, and a kernel with conflicts as the
// control.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "backends/cuda/device.hpp"
#include "cuda/leaky_kernel.hpp"
#include "measure/timed.hpp"

namespace {

using namespace dael;

constexpr std::size_t kSize = std::size_t{1}
                              << 20;  // bytes of a message: long against the clock's tick
constexpr int kBuffers = 8;           // of each kind, so that caches serve both alike
constexpr int kSamples = 6000;
constexpr Cipher kSeal{Mode::gcm, Direction::encrypt}, kOpen{Mode::gcm, Direction::decrypt};
constexpr int kAttempts = 3;

class CudaTiming : public testing::TestWithParam<int> {  // the parameter: tables, 4, 2 or 1
  protected:
    void SetUp() override {
        std::string why;
        if (cuda::count_devices(&why) == 0) GTEST_SKIP() << "needs an NVIDIA GPU: " << why;
        device_ = std::move(*cuda::CudaDevice::open(0, GetParam()));
        stream_ = *device_->order().create_stream();
        from_ = *device_->order().create_event();
        to_ = *device_->order().create_event();
        out_ = *device_->memory().allocate(kSize);
        std::mt19937 random(7);
        std::vector<std::uint32_t> bytes(kSize / 4, 0x5a5a5a5au);
        for (int kind = 0; kind < 2; ++kind)  // fixed, then random
            for (int b = 0; b < kBuffers; ++b) {
                if (kind == 1)
                    for (auto& word : bytes) word = static_cast<std::uint32_t>(random());
                in_[kind].push_back(*device_->memory().allocate(kSize));
                ASSERT_TRUE(
                    device_->memory().copy_in(in_[kind].back(), bytes.data(), kSize, stream_));
                ASSERT_TRUE(device_->order().wait(stream_));
            }
    }
    void TearDown() override {
        if (!device_) return;
        for (auto& kind : in_)
            for (void* memory : kind) device_->memory().release(memory);
        device_->memory().release(out_);
        device_->order().destroy_event(from_);
        device_->order().destroy_event(to_);
        device_->order().destroy_stream(stream_);
    }

    // Times launch(kind, buffer, sample) on the device, the kind by the toss of a coin.
    template <class Launch>
    measure::Samples time(Launch launch) {
        std::mt19937 random(11);
        return measure::collect(kSamples, [&](bool is_fixed) {
            const unsigned kind = is_fixed ? 0 : 1;
            const void* in = in_[kind][random() % kBuffers];
            EXPECT_TRUE(device_->order().record(from_, stream_));
            launch(kind, static_cast<const std::uint8_t*>(in));
            EXPECT_TRUE(device_->order().record(to_, stream_));
            EXPECT_TRUE(device_->order().wait(to_));
            return static_cast<double>(*device_->order().elapsed_ms(from_, to_));
        });
    }

    void expect_below(double t, const std::string& what) {
        RecordProperty(what, std::to_string(t));
        EXPECT_LT(t, measure::kThreshold) << what;
    }

    // One message, input and output so far past a multiple of 16.
    void expect_constant(const Cipher& cipher, const Key& key, std::size_t size = kSize,
                         std::size_t in_at = 0, std::size_t out_at = 0) {
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                run(cipher, key, in + in_at, size, out_at);
            });
        });
        expect_below(t, std::string(name(cipher.mode)) + "-" + std::string(name(cipher.direction)) +
                            "-" + std::to_string(size) + "-" + std::to_string(in_at) + "-" +
                            std::to_string(out_at));
    }
    void run(const Cipher& cipher, const Key& key, const std::uint8_t* in, std::size_t size = kSize,
             std::size_t out_at = 0) {
        const Message message{.in = in, .out = out() + out_at, .size = size};
        EXPECT_TRUE(device_->run(cipher, {std::span(&key, 1)}, message, stream_));
    }

    // As many messages of `size` bytes as there is data, under `keys` keys in turn.
    std::vector<Message> messages(const void* in, void* to, void* tags, std::size_t size,
                                  std::size_t count, std::size_t keys) {
        std::vector<Message> list(count);
        for (std::size_t i = 0; i < count; ++i) {
            Message& m = list[i];
            m.in = static_cast<const std::uint8_t*>(in) + i * size;
            m.out = static_cast<std::uint8_t*>(to) + i * size;
            m.size = size;
            m.tag = static_cast<std::uint8_t*>(tags) + i * 16;
            m.key = static_cast<std::uint32_t>(i % keys);
        }
        return list;
    }
    std::unique_ptr<core::Prepared> prepared(const Cipher& cipher, const core::KeyList& keys,
                                             const std::vector<Message>& list) {
        auto batch =
            device_->prepare(cipher, keys, {list.data(), static_cast<std::uint32_t>(list.size())});
        EXPECT_TRUE(batch) << batch.error().message;
        return batch ? std::move(*batch) : nullptr;
    }
    void seal(const core::KeyList& keys, const std::vector<Message>& list) {
        const auto batch = prepared(kSeal, keys, list);
        ASSERT_TRUE(batch && device_->run(*batch, stream_));
        ASSERT_TRUE(device_->order().wait(stream_));
    }

    // What the tags of messages of `size` bytes are, if their ciphertext is the input: what comes
    // of sealing it is the plaintext of which it comes.
    std::map<const std::uint8_t*, void*> tags_of_inputs(const core::KeyList& keys,
                                                        std::size_t size) {
        std::map<const std::uint8_t*, void*> tags;
        void* const sealed = *device_->memory().allocate(kSize);
        for (const auto& kind : in_)
            for (void* memory : kind) {
                void* const its = *device_->memory().allocate(kSize / size * 16);
                const std::size_t count = kSize / size;
                seal(keys, messages(memory, out_, its, size, count, keys.list.size()));
                seal(keys, messages(out_, sealed, its, size, count, keys.list.size()));
                tags[static_cast<const std::uint8_t*>(memory)] = its;
            }
        device_->memory().release(sealed);
        return tags;
    }
    static std::vector<Key> keys_of(const std::vector<std::uint8_t>& key_bytes) {
        std::vector<Key> list;
        for (const std::uint8_t byte : key_bytes)
            list.push_back(std::move(*Key::import(std::vector<std::uint8_t>(16, byte))));
        return list;
    }

    // All the data as messages of `size` bytes, under keys of these bytes in turn.
    void expect_constant_batches(const Cipher& cipher, const std::vector<std::uint8_t>& key_bytes,
                                 std::size_t size) {
        const std::vector<Key> list = keys_of(key_bytes);
        const auto tables = device_->tables(list);
        ASSERT_TRUE(tables) << tables.error().message;
        const core::KeyList keys{list, tables->get()};
        void* const new_tags = *device_->memory().allocate(kSize / size * 16);
        const bool opening = authenticates(cipher.mode) && cipher.direction == Direction::decrypt;
        std::map<const std::uint8_t*, void*> tags;
        if (opening) tags = tags_of_inputs(keys, size);
        std::map<const std::uint8_t*, std::unique_ptr<core::Prepared>> batches;
        for (const auto& kind : in_)
            for (void* memory : kind) {
                const auto* const in = static_cast<const std::uint8_t*>(memory);
                batches[in] = prepared(cipher, keys,
                                       messages(in, out_, opening ? tags[in] : new_tags, size,
                                                kSize / size, list.size()));
                ASSERT_TRUE(batches[in]);
                ASSERT_TRUE(device_->run(*batches[in], stream_));
                if (opening) expect_authentic(*batches[in], kSize / size);
            }
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                EXPECT_TRUE(device_->run(*batches[in], stream_));
            });
        });
        expect_below(t, std::string(name(cipher.mode)) + "-" + std::string(name(cipher.direction)) +
                            "-batch-" + std::to_string(size) + "-keys-" +
                            std::to_string(list.size()));
        batches.clear();
        for (const auto& [in, its] : tags) device_->memory().release(its);
        device_->memory().release(new_tags);
    }
    // Else nothing would be decrypted.
    void expect_authentic(const core::Prepared& batch, std::size_t count) {
        std::vector<std::uint32_t> codes(count, ~0u);
        EXPECT_TRUE(device_->memory().copy_out(codes.data(), batch.results(), count * 4, stream_));
        EXPECT_TRUE(device_->order().wait(stream_));
        EXPECT_EQ(codes, std::vector<std::uint32_t>(count, 0));
    }

    // A few messages whose list travels with the launch.
    void expect_constant_launches(const Cipher& cipher, std::size_t size, std::size_t count,
                                  const std::vector<std::uint8_t>& key_bytes) {
        const std::vector<Key> list = keys_of(key_bytes);
        const auto tables = device_->tables(list);
        ASSERT_TRUE(tables) << tables.error().message;
        const core::KeyList keys{list, tables->get()};
        void* const new_tags = *device_->memory().allocate(count * 16);
        const bool opening = cipher.direction == Direction::decrypt;
        std::map<const std::uint8_t*, void*> tags;
        if (opening) tags = tags_of_inputs(keys, size);
        void* const codes = *device_->memory().allocate(count * 4);
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                EXPECT_TRUE(device_->run(
                    cipher, keys,
                    messages(in, out_, opening ? tags[in] : new_tags, size, count, list.size()),
                    {.codes = static_cast<std::uint32_t*>(codes)}, stream_));
            });
        });
        expect_below(t, std::string(name(cipher.direction)) + "-launch-" + std::to_string(count) +
                            "-of-" + std::to_string(size));
        for (const auto& [in, its] : tags) device_->memory().release(its);
        device_->memory().release(codes);
        device_->memory().release(new_tags);
    }

    // Modes whose output is not the input and something beside it: what is opened was sealed
    // before, from the same plaintexts. All of them lie in the list as in expect_constant_batches.
    struct SealedData {
        void *data = nullptr, *tags = nullptr;
    };
    // Messages with a nonce each: a tag may say where a counter begins, and is no secret, but those
    // of messages that are alike should not all say the same.
    std::vector<Message> numbered(const void* in, void* to, void* tags, std::size_t size,
                                  std::size_t count, std::size_t keys, std::size_t from = 0) {
        std::vector<Message> list = messages(in, to, tags, size, count, keys);
        for (std::size_t i = 0; i < list.size(); ++i) {
            list[i].start[0] = static_cast<std::uint8_t>(i);
            list[i].start[1] = static_cast<std::uint8_t>(i >> 8);
            list[i].start[2] = static_cast<std::uint8_t>(from);
        }
        return list;
    }
    SealedData sealed_of(Mode mode, const core::KeyList& keys, const void* memory,
                         std::size_t size) {
        const SealedData sealed{*device_->memory().allocate(kSize),
                                *device_->memory().allocate(kSize / size * 16)};
        const auto batch =
            prepared({mode, Direction::encrypt}, keys,
                     numbered(memory, sealed.data, sealed.tags, size, kSize / size, 1));
        EXPECT_TRUE(batch && device_->run(*batch, stream_));
        EXPECT_TRUE(device_->order().wait(stream_));
        return sealed;
    }
    void release(const SealedData& sealed) {
        device_->memory().release(sealed.data);
        device_->memory().release(sealed.tags);
    }
    static Key key_for(Mode mode, std::uint8_t byte) {
        const bool long_key = mode == Mode::aegis256 || mode == Mode::xaes256gcm;
        return std::move(*Key::import(std::vector<std::uint8_t>(long_key ? 32 : 16, byte)));
    }

    // Messages of 1 KiB as a batch: their plaintexts, and, sealing, their key.
    void expect_constant_aead(const Cipher& cipher, const std::string& how) {
        constexpr std::size_t kEach = 1024, kCount = kSize / kEach;
        const bool opens = cipher.direction == Direction::decrypt;
        std::vector<Key> list;  // one, and others in its place
        for (std::uint32_t k = 0; k < (opens ? 1 : kBuffers); ++k)
            list.push_back(key_for(cipher.mode, static_cast<std::uint8_t>(0x3c + 23 * k)));
        std::vector<std::unique_ptr<core::KeyTables>> tables;
        for (const Key& key : list) tables.push_back(std::move(*device_->tables({&key, 1})));
        const auto keys_at = [&](std::size_t k) {
            return core::KeyList{std::span(&list[k], 1), tables[k].get()};
        };
        void* const tags = *device_->memory().allocate(kCount * 16);
        std::map<const std::uint8_t*, SealedData> sealed;
        std::map<const std::uint8_t*, std::unique_ptr<core::Prepared>> batches;
        for (const auto& kind : in_)
            for (void* memory : kind) {
                const auto* const in = static_cast<const std::uint8_t*>(memory);
                if (opens) sealed[in] = sealed_of(cipher.mode, keys_at(0), memory, kEach);
                batches[in] = prepared(cipher, keys_at(0),
                                       numbered(opens ? sealed[in].data : memory, out_,
                                                opens ? sealed[in].tags : tags, kEach, kCount, 1));
                ASSERT_TRUE(batches[in] && device_->run(*batches[in], stream_));
                expect_authentic(*batches[in], kCount);
            }
        const std::string what =
            std::string(name(cipher.mode)) + "-" + std::string(name(cipher.direction)) + "-" + how;
        expect_below(measure::smallest_of(kAttempts,
                                          [&] {
                                              return time([&](unsigned, const std::uint8_t* in) {
                                                  EXPECT_TRUE(device_->run(*batches[in], stream_));
                                              });
                                          }),
                     what + "-data");
        batches.clear();
        for (const auto& [in, its] : sealed) release(its);
        if (!opens) {
            // The first key and the others by turns, each with nonces of its own.
            std::vector<std::unique_ptr<core::Prepared>> by_key;
            for (std::size_t k = 0; k < 2 * list.size(); ++k) {
                by_key.push_back(prepared(cipher, keys_at(k % 2 == 0 ? 0 : k / 2),
                                          numbered(in_[1][0], out_, tags, kEach, kCount, 1, k)));
                ASSERT_TRUE(by_key.back());
            }
            std::mt19937 random(5);
            expect_below(
                measure::smallest_of(kAttempts,
                                     [&] {
                                         return time([&](unsigned kind, const std::uint8_t*) {
                                             EXPECT_TRUE(device_->run(
                                                 *by_key[random() % kBuffers * 2 + kind], stream_));
                                         });
                                     }),
                what + "-key");
        }
        device_->memory().release(tags);
    }
    // A few of 4 KiB, whose list travels with the launch.
    void expect_constant_aead_launches(const Cipher& cipher) {
        constexpr std::size_t kEach = 4096;
        const bool opens = cipher.direction == Direction::decrypt;
        const Key key = key_for(cipher.mode, 0x3c);
        const auto tables = std::move(*device_->tables({&key, 1}));
        const core::KeyList keys{std::span(&key, 1), tables.get()};
        void* const tags = *device_->memory().allocate(kMaxLaunched * 16);
        void* const codes = *device_->memory().allocate(kMaxLaunched * 4);
        std::map<const std::uint8_t*, SealedData> sealed;
        for (const auto& kind : in_)
            for (void* memory : kind)
                if (opens)
                    sealed[static_cast<const std::uint8_t*>(memory)] =
                        sealed_of(cipher.mode, keys, memory, kEach);
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned, const std::uint8_t* in) {
                EXPECT_TRUE(
                    device_->run(cipher, keys,
                                 numbered(opens ? sealed[in].data : in, out_,
                                          opens ? sealed[in].tags : tags, kEach, kMaxLaunched, 1),
                                 {.codes = static_cast<std::uint32_t*>(codes)}, stream_));
            });
        });
        expect_below(t, std::string(name(cipher.mode)) + "-" + std::string(name(cipher.direction)) +
                            "-launch");
        for (const auto& [in, its] : sealed) release(its);
        device_->memory().release(codes);
        device_->memory().release(tags);
    }

    std::uint8_t* out() const { return static_cast<std::uint8_t*>(out_); }

    std::unique_ptr<cuda::CudaDevice> device_;
    Stream stream_;
    Event from_, to_;
    void* out_ = nullptr;
    std::vector<void*> in_[2];
};

TEST_P(CudaTiming, KernelsDoNotDependOnData) {
    const Key key = std::move(*Key::import(std::vector<std::uint8_t>(16, 0x3c)));
    for (const Cipher& cipher :
         {Cipher{Mode::ecb, Direction::encrypt}, Cipher{Mode::ecb, Direction::decrypt},
          Cipher{Mode::cbc, Direction::decrypt}, Cipher{Mode::cfb, Direction::decrypt},
          Cipher{Mode::ctr, Direction::encrypt}})
        expect_constant(cipher, key);
}

// XTS has tweaks besides, with shifts that depend on the lane and never on a tweak.
TEST_P(CudaTiming, XtsDoesNotDependOnData) {
    std::vector<std::uint8_t> raw(32, 0x3c);
    raw.back() = 0x3d;
    const Key key = std::move(*Key::import_xts(raw));
    for (const Direction direction : {Direction::encrypt, Direction::decrypt})
        expect_constant({Mode::xts, direction}, key);
}

// Little data has a kernel of its own, with one table.
TEST_P(CudaTiming, LittleDataInCtrDoesNotDependOnData) {
    const Key key = std::move(*Key::import(std::vector<std::uint8_t>(16, 0x3c)));
    expect_constant({Mode::ctr}, key, std::size_t{64} << 10);
    expect_constant({Mode::ctr}, key, 100'000, 1, 3);
}

// Keystream that is turned, and input that is cut out of two words.
TEST_P(CudaTiming, CtrAtAnyAddressDoesNotDependOnData) {
    const Key key = std::move(*Key::import(std::vector<std::uint8_t>(16, 0x3c)));
    expect_constant({Mode::ctr}, key, kSize - 16, 1, 1);
    expect_constant({Mode::ctr}, key, kSize - 16, 1, 3);
    expect_constant({Mode::ctr}, key, kSize - 16, 5, 0);
}

// GHASH has matrices or multiplications besides; one long message, several, and many short ones,
// a warp to each.
TEST_P(CudaTiming, GcmDoesNotDependOnData) {
    for (const Cipher& cipher : {kSeal, kOpen})
        for (const std::size_t size : {kSize, std::size_t{64} << 10, std::size_t{1024}})
            expect_constant_batches(cipher, {0x3c}, size);
    expect_constant_batches(kSeal, {0x3c, 0xa1}, std::size_t{64} << 10);
}

// 64 short messages to a warpgroup, where a GPU has that.
TEST_P(CudaTiming, GcmInGroupsDoesNotDependOnData) {
    if (GetParam() != 4) GTEST_SKIP() << "with four tables only";
    device_->force_quads();
    for (const Cipher& cipher : {kSeal, kOpen}) {
        expect_constant_batches(cipher, {0x3c}, 1024);
        expect_constant_batches(cipher, {0x3c, 0xa1, 0x77}, 1024);
        expect_constant_batches(cipher, {0x3c}, 256);
    }
}

// A thread block to a message, and long ones through device memory; with one table.
TEST_P(CudaTiming, GcmOfAFewMessagesDoesNotDependOnData) {
    if (GetParam() != 4) GTEST_SKIP() << "with four tables only: mostly they are the same kernels";
    for (const Cipher& cipher : {kSeal, kOpen}) {
        expect_constant_launches(cipher, 1024, 1, {0x3c});
        expect_constant_launches(cipher, 4096, kMaxLaunched, {0x3c, 0xa1});
        expect_constant_launches(cipher, std::size_t{256} << 10, 4, {0x3c});
    }
}

// Round keys in registers, not in the constant bank; a message to a thread.
TEST_P(CudaTiming, CbcWithAKeyForEachMessageDoesNotDependOnData) {
    expect_constant_batches({Mode::cbc, Direction::encrypt}, {0x3c, 0xa1}, 256);
}

// Where the key decides which entries are read: one key against many. In counter mode it does so
// alone, with the counter.
TEST_P(CudaTiming, KernelsDoNotDependOnTheKey) {
    std::mt19937 random(5);
    std::vector<Key> keys;
    for (int k = 0; k < 64; ++k) {
        std::vector<std::uint8_t> raw(16);
        for (auto& byte : raw) byte = static_cast<std::uint8_t>(random());
        keys.push_back(std::move(*Key::import(raw)));
    }
    const auto expect_constant = [&](Mode mode, std::size_t size, std::size_t at) {
        const auto* const in = static_cast<const std::uint8_t*>(in_[1][0]);
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned kind, const std::uint8_t*) {
                const Key& key = keys[random() % 63 * kind];  // both kinds draw
                run({mode}, key, in + at, size, 3 * at);
            });
        });
        expect_below(t, std::string(name(mode)) + "-" + std::to_string(size));
    };
    expect_constant(Mode::ecb, kSize, 0);
    expect_constant(Mode::ctr, kSize, 0);
    expect_constant(Mode::ctr, kSize - 16, 1);
    expect_constant(Mode::ctr, std::size_t{64} << 10, 0);
}

// GCM's lookups likewise, and the powers of H, which tensor cores take as matrices from shared
// memory. One key, in several places as the others are, against many.
TEST_P(CudaTiming, GcmDoesNotDependOnTheKey) {
    if (GetParam() != 4) GTEST_SKIP() << "the layouts differ in the cipher alone";
    std::vector<std::uint8_t> key_bytes;
    for (std::uint32_t k = 0; k < kBuffers; ++k)
        for (const std::uint32_t byte : {0x3cu, 0x3d + 23 * k})
            key_bytes.push_back(static_cast<std::uint8_t>(byte));
    const std::vector<Key> list = keys_of(key_bytes);
    const auto tables = device_->tables(list);
    ASSERT_TRUE(tables) << tables.error().message;
    const core::KeyList keys{list, tables->get()};
    void* const tags = *device_->memory().allocate(kSize / 64);
    const auto of_key = [&](std::size_t size, std::uint32_t key) {
        auto its = messages(in_[1][0], out_, tags, size, kSize / size, 1);
        for (Message& m : its) m.key = key;
        return its;
    };
    std::mt19937 random(5);
    const auto expect_constant = [&](std::size_t size, const char* what) {
        std::vector<std::unique_ptr<core::Prepared>> batches;
        for (std::uint32_t k = 0; k < list.size(); ++k) {
            batches.push_back(prepared(kSeal, keys, of_key(size, k)));
            ASSERT_TRUE(batches.back());
        }
        const double t = measure::smallest_of(kAttempts, [&] {
            return time([&](unsigned kind, const std::uint8_t*) {
                EXPECT_TRUE(device_->run(*batches[random() % kBuffers * 2 + kind], stream_));
            });
        });
        expect_below(t, what);
    };
    expect_constant(std::size_t{64} << 10, "long");
    expect_constant(1024, "a warp each");
    device_->force_quads();
    expect_constant(1024, "groups");
    std::vector<std::vector<Message>> few;
    for (std::uint32_t k = 0; k < list.size(); ++k) {
        few.push_back(of_key(4096, k));
        few.back().resize(kMaxLaunched);
    }
    const double t = measure::smallest_of(kAttempts, [&] {
        return time([&](unsigned kind, const std::uint8_t*) {
            EXPECT_TRUE(
                device_->run(kSeal, keys, few[random() % kBuffers * 2 + kind], {}, stream_));
        });
    });
    expect_below(t, "a few");
    device_->memory().release(tags);
}

// AEGIS is lookups alone, in every way of taking messages.
TEST_P(CudaTiming, AegisDoesNotDependOnDataOrKey) {
    if (GetParam() != 4) GTEST_SKIP() << "one table is among the ways";
    for (const Mode mode : {Mode::aegis128l, Mode::aegis256, Mode::aegis128x2, Mode::aegis128x4})
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            for (const cuda::AegisWay way : cuda::kAegisWays) {
                if (way == cuda::AegisWay::few || !cuda::has_way(mode, way)) continue;
                device_->force_aegis(way);
                expect_constant_aead({mode, direction},
                                     "way" + std::to_string(static_cast<int>(way)));
            }
            device_->force_aegis(std::nullopt);
            expect_constant_aead_launches({mode, direction});
        }
}

// Keys that kernels derive are as secret as those that they derive them from.
TEST_P(CudaTiming, XaesAndGcmSivDoNotDependOnDataOrKey) {
    if (GetParam() == 2) GTEST_SKIP() << "four tables or one";
    for (const Mode mode : {Mode::xaes256gcm, Mode::gcm_siv})
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            expect_constant_aead({mode, direction}, "batch");
            if (GetParam() == 4) expect_constant_aead_launches({mode, direction});
        }
}

TEST_P(CudaTiming, ControlFindsBankConflicts) {
    const double t = measure::smallest_of(kAttempts, [&] {
        return time([&](unsigned, const std::uint8_t* in) {
            EXPECT_EQ(test::launch_leaky_rounds(in, out_, kSize,
                                                static_cast<cudaStream_t>(stream_.handle)),
                      cudaSuccess);
        });
    });
    RecordProperty("t", std::to_string(t));
    EXPECT_GE(t, measure::kThreshold) << "bank conflicts went unseen: the rest proves nothing";
}

INSTANTIATE_TEST_SUITE_P(Layouts, CudaTiming, testing::Values(4, 2, 1), [](const auto& instance) {
    return std::to_string(instance.param * 32) + "KiB";
});

}  // namespace
