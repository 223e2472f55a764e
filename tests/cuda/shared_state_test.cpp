// SPDX-License-Identifier: Apache-2.0
// What launches share: the counter of nonces, keys and workspaces, reached from several streams, by
// replays of graphs, and by what is destroyed meanwhile.
#include <cuda_runtime_api.h>

#include <cstring>
#include <future>
#include <set>
#include <thread>

#include "backends/cuda/kept.hpp"
#include "cuda/fixture.hpp"
#include "support/short_memory.hpp"
#include "support/walks.hpp"

namespace dael::test {
namespace {

// Streams are held up here until this thread goes on. Loading a kernel at its first use, as CUDA
// does by default, may wait for all of them: for ever.
[[maybe_unused]] const int eager = setenv("CUDA_MODULE_LOADING", "EAGER", 0);

constexpr Cipher kSeal{Mode::gcm}, kOpen{Mode::gcm, Direction::decrypt};

// A stream that goes on when it is opened, and others that are made to wait for it.
class Gate {
  public:
    Gate() {
        EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
        EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
        EXPECT_EQ(cudaLaunchHostFunc(
                      stream_, [](void* gate) { static_cast<Gate*>(gate)->opened_.wait(); }, this),
                  cudaSuccess);
        EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
    }
    ~Gate() {
        open();
        EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
        EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
        EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
    void before(Stream stream) {
        EXPECT_EQ(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream.handle), event_, 0),
                  cudaSuccess);
    }
    void open() {
        if (!std::exchange(is_open_, true)) open_.set_value();
    }

  private:
    cudaStream_t stream_ = nullptr;
    cudaEvent_t event_ = nullptr;
    bool is_open_ = false;
    std::promise<void> open_;
    std::shared_future<void> opened_{open_.get_future()};
};

class SharedState : public CudaTest {
  protected:
    void SetUp() override {
        CudaTest::SetUp();
        if (!device_) return;
        auto made = device_->order().create_stream();
        ASSERT_TRUE(made) << made.error().message;
        other_ = *made;
    }
    void TearDown() override {
        if (other_.handle) device_->order().destroy_stream(other_);
        CudaTest::TearDown();
    }
    // Messages in device memory, their list too, with 16 bytes between them.
    struct List {
        std::vector<Message> messages;
        Message* there = nullptr;
        std::uint8_t *data = nullptr, *tags = nullptr;
        Bytes plain;
    };
    List make_list(std::uint32_t count, std::size_t size) {
        List list;
        const std::size_t room = size + 16;
        list.plain = random_.bytes(count * room);
        list.data = put(list.plain);
        list.tags = allocate(count * std::size_t{16});
        std::uint8_t* const out = allocate(count * room);
        for (std::uint32_t i = 0; i < count; ++i) {
            Message& m = list.messages.emplace_back();
            m.in = list.data + i * room;
            m.out = out + i * room;
            m.size = size;
            m.tag = list.tags + i * std::size_t{16};
        }
        list.there = reinterpret_cast<Message*>(allocate(count * sizeof(Message)));
        put(list.there, list.messages.data(), count * sizeof(Message));
        return list;
    }
    DeviceNonces* make_nonces(std::uint64_t next) {
        const DeviceNonces nonces{{1, 2, 3, 4}, 0, next};
        auto* const there = reinterpret_cast<DeviceNonces*>(allocate(sizeof nonces));
        put(there, &nonces, sizeof nonces);
        return there;
    }
    std::uint64_t next_of(const DeviceNonces* nonces) {
        DeviceNonces now;
        std::memcpy(&now, get(nonces, sizeof now).data(), sizeof now);
        return now.next;
    }
    std::unique_ptr<core::Prepared> prepare(const Cipher& cipher, const KeyRing& ring,
                                            const core::KeyTables& keys, const Messages& list) {
        auto batch = device_->prepare(cipher, {ring.keys, &keys}, list);
        EXPECT_TRUE(batch) << batch.error().message;
        return batch ? std::move(*batch) : nullptr;
    }
    static Messages placed(const List& list, DeviceNonces* nonces = nullptr) {
        Messages m{list.there, static_cast<std::uint32_t>(list.messages.size()), Place::device};
        m.nonces = nonces;
        return m;
    }
    // The starts of a list's messages, as they stand there now, into `all`: how many were there.
    std::size_t add_starts(const List& list, std::set<Block>& all) {
        const Bytes bytes = get(list.there, list.messages.size() * sizeof(Message));
        std::size_t repeated = 0;
        for (std::size_t i = 0; i < list.messages.size(); ++i) {
            Message m;
            std::memcpy(&m, bytes.data() + i * sizeof m, sizeof m);
            repeated += !all.insert(m.start).second;
        }
        return repeated;
    }
    // Whether message i was sealed by this key from the start that stands in the list.
    void expect_sealed(const List& list, std::size_t i, const Bytes& key) {
        Message m;
        std::memcpy(&m, get(&list.there[i], sizeof m).data(), sizeof m);
        Message host = m;
        host.in = list.plain.data() + (m.in - list.data);
        const Answer answer = oracle(key, kSeal, host);
        EXPECT_EQ(difference(answer.out, get(m.out, m.size)), "") << i;
        EXPECT_EQ(difference(answer.tag, get(m.tag, 16)), "") << i;
    }
    std::vector<Code> codes(const core::Prepared& batch, std::size_t count) {
        const Bytes bytes = get(batch.results(), count * 4);
        std::vector<Code> codes(count);
        for (std::size_t i = 0; i < count; ++i) {
            std::uint32_t raw;
            std::memcpy(&raw, bytes.data() + 4 * i, 4);
            codes[i] = static_cast<Code>(raw);
        }
        return codes;
    }
    std::unique_ptr<core::KeyTables> tables(const KeyRing& ring) {
        auto made = device_->tables(ring.keys);
        EXPECT_TRUE(made) << made.error().message;
        return made ? std::move(*made) : nullptr;
    }
    void run(core::Prepared& batch, Stream stream) {
        const auto ran = device_->run(batch, stream);
        EXPECT_TRUE(ran) << ran.error().message;
    }
    cudaGraphExec_t capture(core::Prepared& batch) {
        const auto handle = static_cast<cudaStream_t>(stream_.handle);
        EXPECT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        run(batch, stream_);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        EXPECT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess);
        EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
        EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
        return exec;
    }
    void replay(cudaGraphExec_t exec, Stream stream) {
        EXPECT_EQ(cudaGraphLaunch(exec, static_cast<cudaStream_t>(stream.handle)), cudaSuccess);
    }
    void wait_all() {
        wait();
        const auto waited = device_->order().wait(other_);
        EXPECT_TRUE(waited) << waited.error().message;
    }

    Random random_{2024};
    Stream other_;
};

TEST_F(SharedState, TwoBatchesWithOneCounterOnTwoStreams) {
    const KeyRing ring({random_.bytes(16)});
    const auto keys = tables(ring);
    const List a = make_list(16384, 256), b = make_list(16384, 256);
    DeviceNonces* const nonces = make_nonces(0xffff'f000);
    const auto first = prepare(kSeal, ring, *keys, placed(a, nonces)),
               second = prepare(kSeal, ring, *keys, placed(b, nonces));
    std::set<Block> starts;
    for (int turn = 0; turn < 20; ++turn) {
        {
            Gate gate;
            gate.before(stream_);
            gate.before(other_);
            run(*first, stream_);
            run(*second, other_);
        }
        wait_all();
        ASSERT_EQ(add_starts(a, starts) + add_starts(b, starts), 0u) << "turn " << turn;
        ASSERT_EQ(next_of(nonces), 0xffff'f000 + std::uint64_t(turn + 1) * 32768);
    }
    EXPECT_EQ(codes(*first, 16384), std::vector<Code>(16384, Code::ok));
    for (const std::size_t i : {0, 1, 9000, 16383}) {
        expect_sealed(a, i, ring.raw[0]);
        expect_sealed(b, i, ring.raw[0]);
    }
}

// Replays of a captured batch beside launches of it and of another with the same counter: those of
// one batch follow each other on whichever streams they are, and no nonce comes twice.
TEST_F(SharedState, ReplaysBesideLaunches) {
    const KeyRing ring({random_.bytes(16)});
    const auto keys = tables(ring);
    for (const std::size_t size : {100, 20000}) {
        const List a = make_list(size == 100 ? 9000 : 300, size), b = make_list(500, size);
        DeviceNonces* const nonces = make_nonces(7);
        const auto first = prepare(kSeal, ring, *keys, placed(a, nonces)),
                   second = prepare(kSeal, ring, *keys, placed(b, nonces));
        run(*first, stream_);
        const cudaGraphExec_t one = capture(*first), two = capture(*first);
        wait_all();
        std::set<Block> starts;
        ASSERT_EQ(add_starts(a, starts), 0u);
        std::uint64_t launched = a.messages.size();
        for (int turn = 0; turn < 20; ++turn) {
            {
                Gate gate;
                gate.before(stream_);
                gate.before(other_);
                replay(one, other_);
                run(*second, other_);
                if (turn % 3 == 0) run(*first, stream_);
                if (turn % 3 == 1) replay(two, stream_);
            }
            launched += (turn % 3 == 2 ? 1 : 2) * a.messages.size() + b.messages.size();
            wait_all();
            ASSERT_EQ(add_starts(a, starts) + add_starts(b, starts), 0u) << "turn " << turn;
            ASSERT_EQ(next_of(nonces), 7 + launched);
            ASSERT_EQ(codes(*first, a.messages.size()),
                      std::vector<Code>(a.messages.size(), Code::ok));
            for (const std::size_t i : {std::size_t{0}, a.messages.size() - 1})
                expect_sealed(a, i, ring.raw[0]);
            expect_sealed(b, 499, ring.raw[0]);
        }
        EXPECT_EQ(cudaGraphExecDestroy(one), cudaSuccess);
        EXPECT_EQ(cudaGraphExecDestroy(two), cudaSuccess);
    }
}

TEST_F(SharedState, TheCountersEndIsRefused) {
    const KeyRing ring({random_.bytes(16)});
    const auto keys = tables(ring);
    for (const std::size_t size : {100, 20000}) {
        const List list = make_list(300, size);
        const std::uint64_t last = ~std::uint64_t{0} - 299;
        DeviceNonces* const nonces = make_nonces(last);
        const auto batch = prepare(kSeal, ring, *keys, placed(list, nonces));
        const Bytes before = get(list.messages[0].out, size);
        run(*batch, stream_);
        wait();
        EXPECT_EQ(codes(*batch, 300), std::vector<Code>(300, Code::limit));
        EXPECT_EQ(next_of(nonces), last);
        EXPECT_EQ(get(list.messages[0].out, size), before);
    }
}

TEST_F(SharedState, WhatLiesBesideAListMustBeTheDevices) {
    const KeyRing ring({random_.bytes(16)});
    const auto keys = tables(ring);
    const List list = make_list(4, 100);
    DeviceNonces on_the_stack{};
    std::uint32_t number_here = 4;
    std::uint8_t* const there = allocate(64);
    const auto refused = [&](const Messages& messages, const char* what) {
        const auto batch = device_->prepare(kSeal, {ring.keys, keys.get()}, messages);
        EXPECT_EQ(batch.code(), Code::invalid_argument);
        if (!batch) EXPECT_NE(batch.error().message.find(what), std::string::npos);
    };
    Messages m = placed(list, &on_the_stack);
    refused(m, "nonces");
    m.nonces = reinterpret_cast<DeviceNonces*>(there + 4);
    refused(m, "nonces");
    m = placed(list);
    m.number = &number_here;
    refused(m, "number");
    m.number = reinterpret_cast<std::uint32_t*>(there + 2);
    refused(m, "number");
    m = placed(list);
    m.list = reinterpret_cast<const Message*>(reinterpret_cast<const char*>(list.there) + 4);
    refused(m, "list");
    wait();  // and nothing has faulted
}

// A graph has the key that it was captured with: the set refuses another one, in every mode.
TEST_F(SharedState, KeysOfCapturedLaunchesAreNotReplaced) {
    const KeyRing plain({random_.bytes(16)}), xts(random_, 1, true);
    for (const Cipher& cipher :
         {Cipher{Mode::ecb}, Cipher{Mode::ctr}, Cipher{Mode::cbc, Direction::decrypt},
          Cipher{Mode::xts}, kOpen, Cipher{Mode::gcm_ctr}}) {
        SCOPED_TRACE(name(cipher.mode));
        const KeyRing& ring = cipher.mode == Mode::xts ? xts : plain;
        auto keys = tables(ring);
        std::uint8_t* const memory = allocate(4096);
        Message m{.in = memory, .out = memory + 2048, .size = 1024, .start = {}};
        if (authenticates(cipher.mode)) m.tag = memory + 3500;
        auto batch = prepare(cipher, ring, *keys, {&m, 1});
        ASSERT_TRUE(keys->replace(0, ring.keys[0], stream_));  // as long as nothing is captured
        const cudaGraphExec_t exec = capture(*batch);
        const auto refused = keys->replace(0, ring.keys[0], stream_);
        EXPECT_EQ(refused.code(), Code::unsupported);
        if (!refused) EXPECT_NE(refused.error().message.find("captured"), std::string::npos);
        replay(exec, stream_);
        wait();
        EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
    }
    // A list that travels along.
    auto keys = tables(plain);
    std::uint8_t* const memory = allocate(4096);
    auto* const results = reinterpret_cast<std::uint32_t*>(allocate(4));
    const Message m{
        .in = memory, .out = memory + 2048, .size = 100, .tag = memory + 3500, .start = {}};
    const auto handle = static_cast<cudaStream_t>(stream_.handle);
    ASSERT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    const auto ran = device_->run(kOpen, {plain.keys, keys.get()}, std::span(&m, 1),
                                  {.codes = results}, stream_);
    EXPECT_TRUE(ran) << ran.error().message;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    EXPECT_EQ(keys->replace(0, plain.keys[0], stream_).code(), Code::unsupported);
    for (int i = 0; i < 3; ++i) replay(exec, stream_);
    keys.reset();  // waits for the replays
    wait();
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// What was ok before says nothing of now: a message whose key the kernels do not find has not run.
TEST_F(SharedState, NoResultIsLeftOfAnEarlierLaunch) {
    const KeyRing ring({random_.bytes(16)});
    for (const std::size_t size : {1000, 20000})
        for (const bool here : {false, true})
            for (const std::size_t other_size : {32, 16}) {
                const List list = make_list(3, size);
                const auto keys = tables(ring);
                run(*prepare(kSeal, ring, *keys, placed(list)), stream_);
                wait();
                List sealed = list;
                for (Message& m : sealed.messages) {
                    m.in = m.out;
                    m.out = allocate(size);
                }
                put(sealed.there, sealed.messages.data(), 3 * sizeof(Message));
                const auto open =
                    prepare(kOpen, ring, *keys,
                            here ? Messages{sealed.messages.data(), 3} : placed(sealed));
                run(*open, other_);
                wait_all();
                ASSERT_EQ(codes(*open, 3), std::vector<Code>(3, Code::ok));
                const Bytes poison(size, Poisoned::kPoison);
                put(sealed.messages[0].out, poison.data(), size);
                {
                    Gate gate;
                    gate.before(stream_);
                    const Key another = std::move(*Key::import(random_.bytes(other_size)));
                    const auto replaced = keys->replace(0, another, stream_);
                    ASSERT_TRUE(replaced) << replaced.error().message;
                    run(*open, other_);  // the caller's mistake: beside the stream of replace()
                    const auto waited = device_->order().wait(other_);
                    ASSERT_TRUE(waited) << waited.error().message;
                }
                wait_all();
                for (const Code code : codes(*open, 3))
                    EXPECT_EQ(code, Code::internal) << size << ", " << here;
                EXPECT_EQ(get(sealed.messages[0].out, size), poison);
            }
}

// Fused set-up that fails leaves memory behind, which is not taken for matrices.
TEST_F(SharedState, MatricesThatWereNotMadeAreNotUsed) {
    const KeyRing ring(random_, 2);
    auto keys = tables(ring);
    List list = make_list(2, 20000);
    list.messages[1].key = 1;
    put(list.there, list.messages.data(), 2 * sizeof(Message));
    const auto seal = [&] { return prepare(kSeal, ring, *keys, {list.messages.data(), 2}); };
    device_->fail_launches(cuda::gcm_fused_setup_kernel(), 1);
    run(*seal(), stream_);
    device_->fail_launches(cuda::gcm_fused_setup_kernel(), 0);
    wait();
    for (const std::size_t i : {0, 1}) expect_sealed(list, i, ring.raw[i]);
    const Bytes raw = random_.bytes(16);
    ASSERT_TRUE(keys->replace(0, *Key::import(raw), stream_));
    run(*seal(), stream_);
    wait();
    expect_sealed(list, 0, raw);
    expect_sealed(list, 1, ring.raw[1]);
}

// A replacement that the device takes in part: the set says so, and is used no more.
TEST_F(SharedState, AKeyThatIsReplacedInPartEndsTheSet) {
    const KeyRing ring(random_, 2);
    auto keys = tables(ring);
    const List list = make_list(2, 100);
    auto batch = prepare(kSeal, ring, *keys, placed(list));
    ASSERT_TRUE(keys->whole());
    device_->fail_launches(cuda::gcm_key_replace_kernel(), 1);  // before anything was launched
    EXPECT_FALSE(keys->replace(0, ring.keys[1], stream_));
    EXPECT_TRUE(keys->whole());
    device_->fail_launches(cuda::gcm_key_setup_kernel(), 1);
    EXPECT_FALSE(keys->replace(0, ring.keys[1], stream_));
    EXPECT_FALSE(keys->whole());
    device_->fail_launches(cuda::gcm_key_setup_kernel(), 0);
    EXPECT_EQ(device_->run(*batch, stream_).code(), Code::device);
    EXPECT_EQ(keys->replace(0, ring.keys[1], stream_).code(), Code::device);
    EXPECT_EQ(device_->prepare(kSeal, {ring.keys, keys.get()}, placed(list)).code(), Code::device);
    wait();
}

// What could not be waited for is kept, and goes later.
TEST_F(SharedState, WhatCannotBeWaitedForIsKept) {
    EXPECT_EQ(cuda::retry_kept(0), 0u);
    const KeyRing ring({random_.bytes(16)});
    const List list = make_list(100, 3000);
    for (const bool lent : {false, true}) {
        auto keys = tables(ring);
        DeviceNonces* const nonces = make_nonces(0);
        std::unique_ptr<core::Prepared> batch;
        if (!lent) batch = prepare(kSeal, ring, *keys, placed(list, nonces));
        Gate gate;
        gate.before(stream_);
        if (lent) {  // by a list, which has no share in the keys
            ASSERT_TRUE(device_->run(kSeal, {ring.keys, keys.get()},
                                     std::span(list.messages).first(1), {}, stream_));
        } else {
            run(*batch, stream_);
        }
        cuda::failing_waits = 1;
        batch.reset();
        keys.reset();
        EXPECT_EQ(cuda::failing_waits.exchange(0), 0);
        EXPECT_GE(cuda::retry_kept(0), 1u) << lent;  // the work has not even begun
        gate.open();
        wait();
        if (!lent) expect_sealed(list, 99, ring.raw[0]);
        EXPECT_EQ(cuda::retry_kept(0), 0u);
    }
}

// Nor is anything lost or ended too early where memory runs out meanwhile, at each allocation.
TEST_F(SharedState, WhatCannotBeWaitedForIsKeptWithoutMemory) {
    if (!kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
    const KeyRing ring({random_.bytes(16)});
    const List list = make_list(100, 3000);
    bool failed = true;
    long nth = 0;
    while (failed) {
        auto keys = tables(ring);
        auto batch = prepare(kSeal, ring, *keys, placed(list, make_nonces(0)));
        Gate gate;
        gate.before(stream_);
        run(*batch, stream_);
        cuda::failing_waits = 1;
        fail_here_alone(true);
        fail_allocation(++nth);
        batch.reset();
        keys.reset();
        failed = fail_allocation(0);
        fail_here_alone(false);
        EXPECT_EQ(cuda::failing_waits.exchange(0), 0);
        EXPECT_GE(cuda::retry_kept(0), 1u) << nth;  // the work has not even begun
        gate.open();
        wait();
        EXPECT_EQ(cuda::retry_kept(0), 0u) << nth;
    }
    EXPECT_GE(nth, 2);
}

// Random calls over two streams, against a model of which key and nonce each message must have been
// sealed under, and that none comes twice.
TEST_F(SharedState, Walks) {
    constexpr std::uint32_t kMessages = 40;
    for (class Walks walks("shared state on a GPU", 60); walks.next();) {
        SCOPED_TRACE(walks.text());
        Random random(walks.seed());
        struct Set {
            Bytes raw;
            std::unique_ptr<core::KeyTables> keys;
            std::unique_ptr<KeyRing> ring;
            bool captured = false;
        };
        struct One {
            List list;
            std::unique_ptr<core::Prepared> batch;
            std::vector<cudaGraphExec_t> graphs;
            std::size_t set = 0;
            bool ran = false;
        };
        std::vector<Set> sets(2);
        const auto renew = [&](Set& set) {
            set.raw = random.bytes(random.below(2) != 0 ? 16 : 32);
            set.ring = std::make_unique<KeyRing>(std::vector<Bytes>{set.raw});
            set.keys = tables(*set.ring);
            set.captured = false;
        };
        for (Set& set : sets) renew(set);
        DeviceNonces* const nonces = make_nonces(random.below(2) != 0 ? 0 : 0xffff'ffe0);
        std::vector<One> batches(3);
        std::set<std::pair<Bytes, Block>> used;
        const auto drop = [&](One& one) {
            wait_all();
            for (const cudaGraphExec_t graph : one.graphs)
                EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
            one.graphs.clear();
            one.batch.reset();
            one.ran = false;
        };
        const auto remake = [&](One& one) {
            drop(one);
            one.set = random.below(sets.size());
            if (one.list.messages.empty())
                one.list = make_list(kMessages, random.below(3) == 0 ? 9000 : 300);
            one.batch =
                prepare(kSeal, *sets[one.set].ring, *sets[one.set].keys, placed(one.list, nonces));
        };
        for (One& one : batches) remake(one);
        // The key that a batch's last run had, once all has ended.
        const auto check = [&](One& one) {
            wait_all();
            if (!std::exchange(one.ran, false)) return;
            ASSERT_EQ(codes(*one.batch, kMessages), std::vector<Code>(kMessages, Code::ok));
            const Bytes there = get(one.list.there, kMessages * sizeof(Message));
            for (std::uint32_t i = 0; i < kMessages; ++i) {
                Message m;
                std::memcpy(&m, there.data() + i * sizeof m, sizeof m);
                ASSERT_TRUE(used.emplace(sets[one.set].raw, m.start).second) << "a nonce twice";
            }
            expect_sealed(one.list, random.below(kMessages), sets[one.set].raw);
        };
        for (int call = 0; call < 30 && !HasFatalFailure(); ++call) {
            walks.step();
            One& one = batches[random.below(batches.size())];
            Set& set = sets[one.set];
            const Stream stream = random.below(2) != 0 ? stream_ : other_;
            switch (random.below(8)) {
                case 0:
                case 1:
                    check(one);  // what it left, before it is written over
                    run(*one.batch, stream);
                    one.ran = true;
                    break;
                case 2:
                    one.graphs.push_back(capture(*one.batch));
                    set.captured = true;
                    break;
                case 3:
                    if (one.graphs.empty()) break;
                    check(one);
                    replay(one.graphs[random.below(one.graphs.size())], stream);
                    one.ran = true;
                    break;
                case 4: {
                    for (One& any : batches)
                        if (any.set == one.set) check(any);
                    const Bytes raw = random.bytes(random.below(2) != 0 ? 16 : 24);
                    const auto replaced = set.keys->replace(0, *Key::import(raw), stream);
                    ASSERT_EQ(replaced.code(), set.captured ? Code::unsupported : Code::ok);
                    if (replaced) set.raw = raw;
                    wait_all();  // streams know nothing of each other
                    break;
                }
                case 5:
                    check(one);
                    remake(one);
                    break;
                case 6:
                    for (One& any : batches)
                        if (any.set == one.set) check(any);
                    for (One& any : batches)
                        if (any.set == one.set) drop(any);
                    renew(set);
                    for (One& any : batches)
                        if (!any.batch) remake(any);
                    break;
                default:  // a wait that fails, and memory that is kept for it
                    check(one);
                    cuda::failing_waits = static_cast<int>(random.below(2));
                    remake(one);
                    cuda::failing_waits = 0;
            }
        }
        for (One& one : batches) check(one);
        for (One& one : batches) drop(one);
        EXPECT_EQ(cuda::retry_kept(0), 0u);
    }
}

}  // namespace
}  // namespace dael::test
