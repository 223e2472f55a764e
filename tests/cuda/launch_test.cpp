// SPDX-License-Identifier: Apache-2.0
// A few messages of GCM that travel with their launch, against OpenSSL: every length and alignment
// up to a row of a thread block's and around all edges, AAD of either memory, forgeries, keys of
// all sizes, streams and threads, and what may be captured.
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <thread>

#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

constexpr Cipher kSeal{Mode::gcm, Direction::encrypt}, kOpen{Mode::gcm, Direction::decrypt},
    kCtr{Mode::gcm_ctr};

// Batches as launches of 1 to kMaxLaunched messages, with codes in either memory and AAD in either
// where it may travel along.
class LaunchCalls final : public DeviceCalls {
  public:
    explicit LaunchCalls(std::unique_ptr<core::Backend> backend)
        : backend_(std::move(backend)), device_(*backend_->device()), info_(device_.info()) {
        info_.reads_lists = false;  // lists lie on the host here
    }
    const DeviceInfo& info() const override { return info_; }
    Memory& memory() override { return device_.memory(); }
    Order& order() override { return device_.order(); }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        return backend_->can(cipher, key_bits);
    }
    Result<> one(const Cipher& cipher, const Key& key, const Message& message,
                 Stream stream) override {
        return device_.run(cipher, {std::span(&key, 1), nullptr}, message, stream);
    }
    Result<> batch(const Cipher& cipher, std::span<const Key> keys, const Messages& messages,
                   Stream stream, std::span<Code> codes) override {
        DAEL_LET(tables, backend_->tables(keys));
        DAEL_LET(pinned, memory().allocate_pinned(kMaxLaunched * 4));
        DAEL_LET(there, memory().allocate(kMaxLaunched * 4));
        auto done = all(cipher, {keys, tables.get()}, {messages.list, messages.count}, stream,
                        static_cast<std::uint32_t*>(pinned), there, codes);
        memory().release(there);
        memory().release_pinned(pinned);
        return done;
    }

  private:
    Result<> all(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 Stream stream, std::uint32_t* pinned, void* there, std::span<Code> codes) {
        std::size_t most = 1;
        for (std::size_t at = 0; at < messages.size();) {
            const std::size_t count = std::min(most, messages.size() - at);
            std::vector<Message> list(messages.begin() + at, messages.begin() + at + count);
            std::vector<Bytes> aad;
            LaunchOptions options;
            DAEL_TRY(take_aad(list, aad, options, stream));
            const bool on_device = random_.below(2) == 0;
            std::ranges::fill(std::span(pinned, count), std::uint32_t{0x5a5a5a5a});
            options.codes = on_device ? static_cast<std::uint32_t*>(there) : pinned;
            DAEL_TRY(device_.run(cipher, keys, list, options, stream));
            // Nothing of the caller's is read later.
            std::ranges::fill(list, Message{});
            for (Bytes& bytes : aad) std::ranges::fill(bytes, std::uint8_t{0xee});
            if (on_device) DAEL_TRY(memory().copy_out(pinned, there, count * 4, stream));
            DAEL_TRY(order().wait(stream));
            for (std::size_t i = 0; i < count; ++i) codes[at + i] = static_cast<Code>(pinned[i]);
            at += count;
            most = most % kMaxLaunched + 1 + random_.below(5);
            most = std::min<std::size_t>(most, kMaxLaunched);
        }
        return {};
    }
    // AAD into the host's memory, of every second list that has little.
    Result<> take_aad(std::vector<Message>& list, std::vector<Bytes>& aad, LaunchOptions& options,
                      Stream stream) {
        std::uint64_t size = 0;
        for (const Message& m : list) size += m.aad_size;
        if (size == 0 || size > kMaxLaunchedAad || random_.below(2) == 0) return {};
        for (Message& m : list) {
            Bytes& bytes = aad.emplace_back(m.aad_size);
            DAEL_TRY(memory().copy_out(bytes.data(), m.aad, m.aad_size, stream));
            m.aad = bytes.data();
        }
        options.host_aad = true;
        return order().wait(stream);
    }

    std::unique_ptr<core::Backend> backend_;
    core::Device& device_;
    DeviceInfo info_;
    Random random_{4711};
};

class CudaLaunch : public testing::TestWithParam<Form> {
  protected:
    void SetUp() override {
        DAEL_NEEDS_GPUS(1);
        auto opened = cuda::open_cuda_backend(0, GetParam().tables, GetParam().hashing);
        if (opened.code() == Code::invalid_argument) GTEST_SKIP() << opened.error().message;
        ASSERT_TRUE(opened) << opened.error().message;
        device_ = static_cast<cuda::CudaDevice*>((*opened)->device());
        subject_ = device_subject(std::make_unique<LaunchCalls>(std::move(*opened)));
    }
    template <class Fill>
    void check(const KeyRing& ring, std::initializer_list<Cipher> ciphers, Fill fill) {
        for (const Cipher& cipher : ciphers) {
            TestBatch batch(random_, ring, cipher);
            fill(batch);
            ASSERT_EQ(fault_of(*subject_, batch), "");
        }
    }

    cuda::CudaDevice* device_ = nullptr;  // of the subject
    std::unique_ptr<Subject> subject_;
    Random random_{12345};
};

TEST_P(CudaLaunch, EveryLengthAndAlignment) {
    check(KeyRing(random_, 3), {kSeal, kOpen, kCtr}, [](TestBatch& batch) {
        for (std::size_t size = 0; size <= 4200; ++size)
            batch.add({.size = size,
                       .in_at = size % 16,
                       .out_at = size * 5 % 16,
                       .in_place = size % 4 == 3,
                       .aad_size = !authenticates(batch.cipher.mode) ? 0
                                   : size % 3 == 0                   ? size * 7 % 97
                                                                     : 0});
    });
}

TEST_P(CudaLaunch, AroundEveryEdge) {
    check(KeyRing(random_, 3), {kSeal, kOpen, kCtr}, [](TestBatch& batch) {
        for (const std::size_t edge : {8192, 16384, 32768, 65536, 1 << 20})
            for (const int by : {-33, -16, -1, 0, 1, 15, 16, 33})
                batch.add({.size = edge + static_cast<std::size_t>(by),
                           .in_at = by == 1 ? 1u : 0u,
                           .in_place = by == 15,
                           .aad_size = authenticates(batch.cipher.mode) && by < 0 ? 13u : 0u});
    });
}

// Nothing through device memory, and all that may.
TEST_P(CudaLaunch, BothWaysOfTheSameMessages) {
    for (const std::uint64_t most : {std::uint64_t{0}, std::uint64_t{1} << 20}) {
        device_->force_team_message(most);
        check(KeyRing(random_, 2), {kSeal, kOpen, kCtr}, [](TestBatch& batch) {
            const bool tags = authenticates(batch.cipher.mode);
            for (const std::size_t size : {0, 1, 16, 100, 4096, 8192, 8193, 30000, 200001})
                batch.add({.size = size, .aad_size = tags ? size % 50 : 0})
                    .add({.size = size, .aad_size = tags ? 20u : 0u});
        });
        if (HasFatalFailure()) return;
    }
}

TEST_P(CudaLaunch, AadOfEverySize) {
    check(KeyRing({random_.bytes(32)}), {kSeal, kOpen}, [](TestBatch& batch) {
        for (const std::size_t aad : {0, 1, 15, 16, 17, 255, 256, 257, 1023, 1024, 1025, 4096, 8193,
                                      16384, 32768, 40000, 1 << 20})
            for (const std::size_t size : {0, 1, 100, 4096, 8192, 40001})
                batch.add({.size = size, .aad_size = aad});
    });
}

TEST_P(CudaLaunch, StartsThatAreOfNoNonceAndCountersThatWrap) {
    check(KeyRing({random_.bytes(16)}), {kSeal, kOpen}, [&](TestBatch& batch) {
        for (const std::uint32_t left : {0u, 1u, 2u, 5u, 100u, 255u, 256u, 600u, 3000u})
            for (const std::size_t size : {1000, 8000, 60000}) {
                Block j0 = random_.block();
                for (std::size_t i = 0; i < 4; ++i)
                    j0[15 - i] = static_cast<std::uint8_t>(~left >> (8 * i));
                batch.add({.size = size, .aad_size = 5, .start = j0});
            }
    });
}

TEST_P(CudaLaunch, ShortTags) {
    const KeyRing ring(random_, 3);
    for (const auto tag : std::to_array<std::uint8_t>({4, 8, 12, 13, 14, 15}))
        check(ring, {{Mode::gcm, Direction::encrypt, tag}, {Mode::gcm, Direction::decrypt, tag}},
              [](TestBatch& batch) {
                  batch.add_sizes({0, 1, 100, 8192, 8193, 70000});
              });
}

TEST_P(CudaLaunch, AForgeryReleasesNothingAndDisturbsNobody) {
    const KeyRing ring(random_, 3);
    for (const std::size_t longest : {5000, 30000, 70000})
        for (int round = 0; round < 4; ++round)
            check(ring, {kOpen}, [&](TestBatch& batch) {
                for (std::size_t i = 0; i < 60; ++i)
                    batch.add({.size = i % 3 == 0 ? longest - i : i * 16,
                               .in_place = i % 6 == 5,
                               .aad_size = i % 2 ? 9u : 0u});
                for (std::size_t i = static_cast<std::size_t>(round); i < batch.size(); i += 3)
                    batch.forge(i);
            });
}

// Too many keys for the host to keep them all, and for matrices.
TEST_P(CudaLaunch, ALargeSetOfKeys) {
    const KeyRing ring(random_, 4200);
    check(ring, {kSeal, kOpen, kCtr}, [](TestBatch& batch) {
        for (std::uint32_t i = 0; i < 40; ++i)
            batch.add({.size = i % 4 == 0 ? 50000u : 200u, .key = i % 2 ? 4199 - i : 4199});
    });
}

INSTANTIATE_TEST_SUITE_P(Forms, CudaLaunch,
                         testing::Values(Form{4}, Form{4, cuda::Hashing::mma},
                                         Form{1, cuda::Hashing::rows}),
                         form_name);

// Through the engine, on streams of its own.
class CudaEngineLaunch : public CudaTest {
  protected:
    void SetUp() override {
        CudaTest::SetUp();
        if (!device_) return;
        auto opened = Engine::open({.backend = "cuda"});
        ASSERT_TRUE(opened) << opened.error().message;
        engine_.emplace(std::move(*opened));
        auto keys = engine_->keys(ring_.keys);
        ASSERT_TRUE(keys) << keys.error().message;
        keys_.emplace(std::move(*keys));
    }
    cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.handle); }

    Random random_{99};
    const KeyRing ring_{random_, 3};
    std::optional<Engine> engine_;
    std::optional<KeySet> keys_;
};

// Sealed and opened again in place, over and over, by threads on streams of their own.
TEST_F(CudaEngineLaunch, ManyThreadsAndStreams) {
    constexpr std::size_t kThreads = 6, kEach = 5, kRounds = 60;
    constexpr std::size_t kSizes[] = {4096, 0, 60000, 17, 300000};
    std::vector<std::thread> threads;
    std::vector<std::string> faults(kThreads);
    std::vector<Bytes> plain;
    std::vector<std::uint8_t*> memory;
    for (std::size_t t = 0; t < kThreads * kEach; ++t) {
        plain.push_back(random_.bytes(kSizes[t % kEach]));
        memory.push_back(put(plain.back()));
    }
    std::uint8_t* const tags = allocate(16 * plain.size());
    for (std::size_t t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            const auto run = [&]() -> Result<> {
                DAEL_LET(stream, device_->order().create_stream());
                DAEL_LET(words, device_->memory().allocate_pinned(4 * kEach));
                auto* const codes = static_cast<std::uint32_t*>(words);
                std::vector<Message> list;
                // Two launches: one that is long, and one that is not.
                const bool long_too = t % 3 != 0;
                for (std::size_t i = 0; i < kEach; ++i) {
                    const std::size_t at = t * kEach + i;
                    if (!long_too && plain[at].size() > 4096) continue;
                    list.push_back({.in = memory[at],
                                    .out = memory[at],
                                    .size = plain[at].size(),
                                    .tag = tags + 16 * at,
                                    .key = static_cast<std::uint32_t>(at % 3)});
                }
                for (std::size_t round = 0; round < kRounds; ++round) {
                    for (std::size_t i = 0; i < list.size(); ++i) {
                        list[i].start = {};
                        list[i].start[0] = static_cast<std::uint8_t>(round);
                        list[i].start[1] = static_cast<std::uint8_t>(t);
                        list[i].start[2] = static_cast<std::uint8_t>(i);
                    }
                    DAEL_TRY(engine_->launch(kSeal, *keys_, list, stream));
                    std::ranges::fill(std::span(codes, list.size()), ~0u);
                    DAEL_TRY(engine_->launch(kOpen, *keys_, list, stream, {.codes = codes}));
                    DAEL_TRY(device_->order().wait(stream));
                    for (std::size_t i = 0; i < list.size(); ++i)
                        if (codes[i] != 0)
                            return Error{static_cast<Code>(codes[i]), "not authentic"};
                }
                device_->memory().release_pinned(words);
                device_->order().destroy_stream(stream);
                return {};
            };
            if (const auto done = run(); !done) faults[t] = done.error().message;
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& fault : faults) EXPECT_EQ(fault, "");
    for (std::size_t i = 0; i < plain.size(); ++i)
        EXPECT_EQ(difference(plain[i], get(memory[i], plain[i].size())), "") << i;
}

// Opening by one kernel may be captured and replayed; nothing else may.
TEST_F(CudaEngineLaunch, WhatMayBeCaptured) {
    const Bytes plain = random_.bytes(100000);
    std::uint8_t *const sealed = put(plain), *const out = allocate(plain.size()),
                        *const tag = allocate(16);
    auto words = device_->memory().allocate_pinned(4);
    ASSERT_TRUE(words) << words.error().message;
    auto* const code = static_cast<std::uint32_t*>(*words);
    for (const std::size_t size : {4096, 100000}) {
        Message message{.in = sealed, .out = sealed, .size = size, .tag = tag};
        message.start = random_.block();
        put(sealed, plain.data(), size);
        ASSERT_TRUE(engine_->launch(kSeal, *keys_, {&message, 1}, stream_));
        wait();
        message.out = out;
        ASSERT_EQ(cudaStreamBeginCapture(handle(), cudaStreamCaptureModeGlobal), cudaSuccess);
        EXPECT_EQ(engine_->launch(kSeal, *keys_, {&message, 1}, stream_).code(), Code::limit);
        const auto captured = engine_->launch(kOpen, *keys_, {&message, 1}, stream_, {code});
        EXPECT_EQ(captured.code(), size == 4096 ? Code::ok : Code::unsupported);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        ASSERT_EQ(cudaStreamEndCapture(handle(), &graph), cudaSuccess);
        ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
        for (int replay = 0; replay < 3 && captured; ++replay) {
            put(out, Bytes(size, Poisoned::kPoison).data(), size);
            *code = ~0u;
            ASSERT_EQ(cudaGraphLaunch(exec, handle()), cudaSuccess);
            wait();
            EXPECT_EQ(*code, 0u);
            EXPECT_EQ(difference({plain.begin(), plain.begin() + size}, get(out, size)), "");
        }
        EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
        EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    device_->memory().release_pinned(*words);
}

// The set's end waits for what was launched with it, and wipes the keys then.
TEST_F(CudaEngineLaunch, KeysMayGoAtOnce) {
    const Bytes plain = random_.bytes(4 << 20);
    std::uint8_t *const in = put(plain), *const out = allocate(plain.size()),
                        *const tags = allocate(16);
    for (const std::size_t size : {std::size_t{3000}, std::size_t{30000}, plain.size()})
        for (int round = 0; round < 5; ++round) {
            Message message{.in = in, .out = out, .size = size, .tag = tags};
            message.start = random_.block();
            {
                auto keys = engine_->keys({ring_.keys.data(), 1});
                ASSERT_TRUE(keys) << keys.error().message;
                ASSERT_TRUE(engine_->launch(kSeal, *keys, {&message, 1}, stream_));
            }
            message.in = plain.data();
            const Answer answer = oracle(ring_.raw[0], kSeal, message);
            ASSERT_EQ(difference(answer.out, get(out, size)), "") << size;
            ASSERT_EQ(difference(answer.tag, get(tags, 16)), "") << size;
        }
}

// By one of another size, in the stream's order.
TEST_F(CudaEngineLaunch, KeysAreReplaced) {
    const Bytes plain = random_.bytes(50000);
    std::uint8_t *const in = put(plain), *const out = allocate(2 * plain.size()),
                        *const tags = allocate(32);
    for (const std::size_t size : {std::size_t{4000}, plain.size()}) {
        Message first{.in = in, .out = out, .size = size, .tag = tags},
            second{.in = in, .out = out + plain.size(), .size = size, .tag = tags + 16};
        ASSERT_TRUE(keys_->replace(0, ring_.keys[0], stream_));
        ASSERT_TRUE(engine_->launch(kSeal, *keys_, {&first, 1}, stream_));
        ASSERT_TRUE(keys_->replace(0, ring_.keys[2], stream_));
        ASSERT_TRUE(engine_->launch(kSeal, *keys_, {&second, 1}, stream_));
        for (Message* m : {&first, &second}) {
            const Bytes made = get(m->out, size), tag = get(m->tag, 16);
            m->in = plain.data();
            const Answer answer = oracle(ring_.raw[m == &first ? 0 : 2], kSeal, *m);
            EXPECT_EQ(difference(answer.out, made), "") << size;
            EXPECT_EQ(difference(answer.tag, tag), "") << size;
        }
    }
}

}  // namespace
}  // namespace dael::test
