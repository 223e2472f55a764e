// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: what this library prepares and destroys must not break a capture in another thread,
// in the mode in which PyTorch captures; and what may be captured, and what must not.
#include <cuda_runtime_api.h>

#include <atomic>
#include <future>
#include <thread>

#include <daelstrom/engine.hpp>

#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

constexpr Cipher kSeal{Mode::gcm}, kOpen{Mode::gcm, Direction::decrypt};

// A thread that captures a stream, blocking towards stream 0 as streams are made by default, and
// forbids all threads what could break that, until end(): "" or what broke.
class Capture {
  public:
    Capture() : thread_([this] { fault_ = run(); }) { started_.get_future().wait(); }
    ~Capture() {
        if (thread_.joinable()) (void)end();
    }
    std::string end() {
        stop_ = true;
        thread_.join();
        return fault_;
    }

  private:
    std::string run() {
        cudaStream_t stream = nullptr;
        void* memory = nullptr;
        cudaGraph_t graph = nullptr;
        cudaError_t status = cudaSetDevice(0);
        if (status == cudaSuccess) status = cudaStreamCreate(&stream);
        if (status == cudaSuccess) status = cudaMalloc(&memory, 4096);
        if (status == cudaSuccess)
            status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
        if (status == cudaSuccess) status = cudaMemsetAsync(memory, 1, 4096, stream);
        started_.set_value();
        while (!stop_) std::this_thread::yield();
        if (status == cudaSuccess) status = cudaMemsetAsync(memory, 2, 4096, stream);
        const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
        if (status == cudaSuccess) status = ended;
        if (graph) (void)cudaGraphDestroy(graph);
        (void)cudaGetLastError();
        (void)cudaFree(memory);
        (void)cudaStreamDestroy(stream);
        return status == cudaSuccess ? "" : cudaGetErrorString(status);
    }

    std::promise<void> started_;
    std::atomic<bool> stop_ = false;
    std::string fault_;
    std::thread thread_;
};

class Captures : public CudaTest {
  protected:
    void begin() {
        ASSERT_EQ(cudaStreamBeginCapture(handle(), cudaStreamCaptureModeGlobal), cudaSuccess);
    }
    cudaGraphExec_t end() {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t exec = nullptr;
        EXPECT_EQ(cudaStreamEndCapture(handle(), &graph), cudaSuccess);
        EXPECT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
        EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
        return exec;
    }
    cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.handle); }
    Random random_{99};
};

TEST_F(Captures, OfOthersSurviveAllThatIsPreparedAndDestroyed) {
    for (int round = 0; round < 3; ++round) {  // the first loads kernels, too
        Capture capture;
        const KeyRing ring(random_, 5);
        {
            // On a stream of our own throughout: stream 0 is nobody's while another is captured.
            for (const Cipher& cipher : {kSeal, kOpen, Cipher{Mode::cbc}, Cipher{Mode::ecb}}) {
                auto tables = device_->tables(ring.keys);
                ASSERT_TRUE(tables) << tables.error().message;
                std::uint8_t* const memory = allocate(1 << 20);
                std::vector<Message> messages;
                for (const std::size_t size : {16, 4096, 160000})
                    messages.push_back({.in = memory,
                                        .out = memory + 200000,
                                        .size = size,
                                        .tag = memory + 400000 + size});
                auto prepared =
                    device_->prepare(cipher, {ring.keys, tables->get()}, {messages.data(), 3});
                ASSERT_TRUE(prepared) << prepared.error().message;
                const auto ran = device_->run(**prepared, stream_);
                ASSERT_TRUE(ran) << ran.error().message;
                const auto waited = device_->order().wait(stream_);
                ASSERT_TRUE(waited) << waited.error().message;
                auto pieces = device_->begin(kSeal, {ring.keys, tables->get()}, 0, {});
                ASSERT_TRUE(pieces) << pieces.error().message;
                const auto tag = (*pieces)->finish();
                ASSERT_TRUE(tag) << tag.error().message;
            }
        }
        void* const pinned = allocate_pinned(1 << 16);
        release_pinned(pinned);
        EXPECT_EQ(capture.end(), "") << "round " << round;
    }
}

// Nor by the end of keys that lists were launched with, which waits for those.
TEST_F(Captures, OfOthersSurviveTheEndOfKeysThatWereLent) {
    const KeyRing ring({random_.bytes(16)});
    const Bytes plain = random_.bytes(100000);
    for (const std::size_t size : {4096, 100000}) {
        std::uint8_t *in = put(plain), *out = allocate(size), *tag = allocate(16);
        const Message message{.in = in, .out = out, .size = size, .tag = tag, .start = {}};
        auto tables = device_->tables(ring.keys);
        ASSERT_TRUE(tables) << tables.error().message;
        // What the set's first launch makes is there before the capture.
        ASSERT_TRUE(
            device_->run(kSeal, {ring.keys, tables->get()}, std::span(&message, 1), {}, stream_));
        wait();
        put(out, Bytes(size, Poisoned::kPoison).data(), size);
        Capture capture;
        for (int launch = 0; launch < 50; ++launch)
            ASSERT_TRUE(device_->run(kSeal, {ring.keys, tables->get()}, std::span(&message, 1), {},
                                     stream_));
        tables->reset();
        EXPECT_EQ(capture.end(), "") << size;
        Message host = message;
        host.in = plain.data();
        const Answer answer = oracle(ring.raw[0], kSeal, host);
        EXPECT_EQ(difference(answer.out, get(out, size)), "") << size;
        EXPECT_EQ(difference(answer.tag, get(tag, 16)), "") << size;
    }
}

// Opening from a list of the host's repeats nothing: it may be captured, and replayed.
TEST_F(Captures, OfOpeningAreReplayed) {
    const KeyRing ring({random_.bytes(16)});
    const Bytes plain = random_.bytes(100000);
    const Block start = random_.block();
    const Answer answer =
        oracle(ring.raw[0], kSeal, {.in = plain.data(), .size = plain.size(), .start = start});
    std::uint8_t *in = put(answer.out), *tag = put(answer.tag), *out = allocate(plain.size());
    const Message message{.in = in, .out = out, .size = plain.size(), .tag = tag, .start = start};
    auto tables = device_->tables(ring.keys);
    ASSERT_TRUE(tables) << tables.error().message;
    auto batch = device_->prepare(kOpen, {ring.keys, tables->get()}, {&message, 1});
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_FALSE(device_->order().is_capturing(stream_));
    begin();
    EXPECT_TRUE(device_->order().is_capturing(stream_));
    const auto ran = device_->run(**batch, stream_);
    EXPECT_TRUE(ran) << ran.error().message;
    EXPECT_EQ((*tables)->replace(0, ring.keys[0], stream_).code(), Code::unsupported);
    const cudaGraphExec_t exec = end();
    for (int replay = 0; replay < 3; ++replay) {
        put(out, Bytes(plain.size(), Poisoned::kPoison).data(), plain.size());
        ASSERT_EQ(cudaGraphLaunch(exec, handle()), cudaSuccess);
        wait();
        EXPECT_EQ(difference(plain, get(out, plain.size())), "") << replay;
    }
    batch->reset();  // which waits for what was captured, too
    EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
}

// A replay would encrypt from the same starts again.
TEST_F(Captures, OfSealingFixedStartsAreRefused) {
    auto engine = Engine::open({.backend = "cuda"});
    ASSERT_TRUE(engine) << engine.error().message;
    const KeyRing ring({random_.bytes(16)});
    auto keys = engine->keys(ring.keys);
    ASSERT_TRUE(keys) << keys.error().message;
    std::uint8_t* const memory = allocate(4096);
    const Message message{.in = memory, .out = memory + 1024, .size = 1000, .tag = memory + 2048};
    for (const Cipher& cipher :
         {kSeal, Cipher{Mode::gcm_ctr}, Cipher{Mode::ctr}, Cipher{Mode::cbc}}) {
        Message fitting = message;
        fitting.size = test::fitting(cipher, message.size);
        if (!authenticates(cipher.mode)) fitting.tag = nullptr;
        auto batch = engine->prepare(cipher, *keys, {&fitting, 1});
        ASSERT_TRUE(batch) << batch.error().message;
        begin();
        const auto refused = engine->launch(*batch, stream_);
        EXPECT_EQ(refused.code(), Code::limit) << name(cipher.mode);
        EXPECT_EQ(cudaGraphExecDestroy(end()), cudaSuccess);
        EXPECT_TRUE(engine->launch(*batch, stream_)) << name(cipher.mode);  // as before
        wait();
    }
}

}  // namespace
}  // namespace dael::test
