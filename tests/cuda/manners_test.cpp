// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend does to the process around it: no context on a GPU that is not used, the
// caller's own left as it was, work on a device that is not the thread's, and errors that tell the
// truth after a kernel has faulted.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include <daelstrom/plan.hpp>

#include <cuda_runtime_api.h>

#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

constexpr Cipher kCtr{Mode::ctr}, kSeal{Mode::gcm};

// For a process of its own, in which nothing of CUDA has happened yet: its end, with what is wrong.
[[noreturn]] void finish(const std::string& fault) {
    std::fputs(fault.c_str(), stderr);
    std::_Exit(fault.empty() ? 0 : 1);
}

class CudaManners : public ::testing::Test {
  protected:
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        DAEL_NEEDS_GPUS(1);
    }
};

// The driver's calls that the library under test has no use for.
struct Driver {
    template <class Function>
    static Function* find(const char* name) {
        static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
        return reinterpret_cast<Function*>(dlsym(library, name));
    }
    static void* current() {
        void* context = nullptr;
        find<int(void**)>("cuCtxGetCurrent")(&context);
        return context;
    }
    static void* create(int device) {
        void* context = nullptr;
        const int status = find<int(void**, unsigned, int)>("cuCtxCreate_v2")(&context, 0, device);
        return status == 0 ? context : nullptr;
    }
};

// The numbers of the GPUs on which this process has a context.
std::string contexts() {
    std::string list;
    std::string why;
    for (int i = 0; i < cuda::count_devices(&why); ++i)
        if (cuda::has_context(i)) list += (list.empty() ? "" : " ") + std::to_string(i);
    return list;
}

// Every kind of use; "" or what was wrong. `after` is called after each step.
template <class After>
std::string use(int index, After after) {
    auto backend = cuda::open_cuda_backend(index);
    if (!backend) return backend.error().message;
    if (auto fault = after("opening"); !fault.empty()) return fault;
    Random random(7);
    const KeyRing ring(random, 3);
    {
        auto subject = device_subject(std::move(*backend));
        for (const Cipher& cipher :
             {kCtr, kSeal, Cipher{Mode::cbc}, Cipher{Mode::cbc, Direction::decrypt}}) {
            TestBatch batch(random, ring, cipher);
            batch.add_sizes({16, 160, 16000, 1600000});
            if (auto fault = fault_of(*subject, batch); !fault.empty()) return fault;
            if (auto fault = after(std::string(name(cipher.mode))); !fault.empty()) return fault;
        }
    }
    if (auto fault = after("closing"); !fault.empty()) return fault;
    auto engine = Engine::open({.backend = "cuda:" + std::to_string(index)});
    if (!engine) return engine.error().message;
    const Bytes in = random.bytes(5 << 20);
    Bytes out(in.size());
    const auto ran =
        engine->run(kCtr, ring.keys[0], {.in = in.data(), .out = out.data(), .size = in.size()});
    if (!ran) return ran.error().message;
    if (auto fault = after("an engine"); !fault.empty()) return fault;
    auto pieces = engine->begin(kSeal, ring.keys[0], {});
    if (!pieces) return pieces.error().message;
    Bytes tag(16);
    if (!pieces->update(in, out) || !pieces->finish(tag)) return "pieces failed";
    if (auto fault = after("pieces"); !fault.empty()) return fault;
    void* const pinned = allocate_pinned(1 << 20);
    if (!pinned) return "no page-locked memory";
    release_pinned(pinned);
    return after("page-locked memory");
}

TEST_F(CudaManners, LookingAroundMakesNoContext) {
    const auto look = []() -> std::string {
        std::string why;
        std::uint8_t byte = 0;
        for (int i = 0; i < cuda::count_devices(&why); ++i) {
            (void)cuda::device_name(i);
            auto later = cuda::open_cuda_backend(i, 0, cuda::Hashing::tiles, true);
            if (!later) return later.error().message;
            (void)(*later)->device()->memory().owns(&byte);
            (void)(*later)->device()->memory().is_pinned(&byte, 1);
        }
        auto engine = Engine::open({.backend = "auto"});
        if (!engine) return engine.error().message;
        (void)engine->explain({.cipher = kCtr, .size = std::uint64_t{1} << 30});
        return contexts().empty() ? "" : "contexts on " + contexts();
    };
    EXPECT_EXIT(finish(look()), ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaManners, OneGpuHasAContextAndTheThreadHasNone) {
    const auto one = []() -> std::string {
        std::string why;
        const int last = cuda::count_devices(&why) - 1;
        return use(last, [&](const std::string& step) -> std::string {
            if (contexts() != std::to_string(last))
                return "after " + step + ": contexts on " + contexts();
            return Driver::current() ? "after " + step + ": a context stayed current" : "";
        });
    };
    EXPECT_EXIT(finish(one()), ::testing::ExitedWithCode(0), "");
}

TEST_F(CudaManners, TheCallersContextStaysCurrent) {
    const auto stays = []() -> std::string {
        std::string why;
        (void)cuda::count_devices(&why);  // starts the driver
        void* const own = Driver::create(0);
        if (!own) return "no context of our own";
        return use(0, [&](const std::string& step) -> std::string {
            return Driver::current() == own ? "" : "after " + step + " another context was current";
        });
    };
    EXPECT_EXIT(finish(stays()), ::testing::ExitedWithCode(0), "");
}

// Where a process uses one GPU of several, memory is page-locked through that one.
TEST_F(CudaManners, PageLockedMemoryComesByTheGpuInUse) {
    DAEL_NEEDS_GPUS(2);
    const auto pins = []() -> std::string {
        auto backend = cuda::open_cuda_backend(1);
        if (!backend) return backend.error().message;
        void* const pinned = allocate_pinned(1 << 20);
        const bool known = (*backend)->device()->memory().is_pinned(pinned, 1 << 20);
        release_pinned(pinned);
        if (!known) return "the memory is not page-locked";
        return contexts() == "1" ? "" : "contexts on " + contexts();
    };
    EXPECT_EXIT(finish(pins()), ::testing::ExitedWithCode(0), "");
}

// The driver fails in all that it is asked then, also whose a pointer is: that must not be taken
// for "nobody's", and what is wrong must be named.
TEST_F(CudaManners, AfterAFaultTheErrorNamesIt) {
    const auto faulted = []() -> std::string {
        auto backend = cuda::open_cuda_backend(0);
        if (!backend) return backend.error().message;
        core::Device& device = *(*backend)->device();
        const auto memory = device.memory().allocate(4096);
        if (!memory) return memory.error().message;
        const Key key = std::move(*Key::import(Bytes(16, 1)));
        auto* const nowhere = reinterpret_cast<std::uint8_t*>(std::uintptr_t{4096});
        const Message bad{.in = nowhere, .out = nowhere, .size = 64};
        if (!device.run({Mode::ecb}, {std::span(&key, 1)}, bad, {}))
            return "the launch was refused";
        if (device.order().wait(Stream{})) return "a wild pointer did not fault";
        if (!device.memory().owns(*memory)) return "the device's own memory became nobody's";
        auto* const at = static_cast<std::uint8_t*>(*memory);
        const auto after =
            device.run({Mode::ecb}, {std::span(&key, 1)}, {.in = at, .out = at, .size = 64}, {});
        if (after) return "a launch succeeded after a fault";
        return after.code() == Code::device ? "" : after.error().message;
    };
    EXPECT_EXIT(finish(faulted()), ::testing::ExitedWithCode(0), "");
}

class SecondGpu : public ::testing::Test {
  protected:
    void SetUp() override {
        DAEL_NEEDS_GPUS(2);
        ASSERT_EQ(cudaSetDevice(0), cudaSuccess);  // current, and none of this test's business
        auto backend = cuda::open_cuda_backend(1);
        ASSERT_TRUE(backend) << backend.error().message;
        backend_ = std::move(*backend);
    }
    void TearDown() override {
        int current = -1;
        if (backend_) {
            EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
            EXPECT_EQ(current, 0);
        }
    }
    Random random_{2};
    std::unique_ptr<core::Backend> backend_;
};

TEST_F(SecondGpu, DoesEveryMode) {
    auto subject = device_subject(std::move(backend_));
    for (const Mode mode : kModes)
        for (const Direction direction : kDirections) {
            if (subject->can({mode, direction}, usual_bits(mode)).answer == core::Can::no) continue;
            const KeyRing ring(random_, 5, mode);
            TestBatch batch(random_, ring, {mode, direction});
            batch.add_sizes({0, 16, 512, 4096, 9008, 100000, 1600000, 16 << 20});
            EXPECT_EQ(fault_of(*subject, batch), "") << name(mode) << " " << name(direction);
        }
}

TEST_F(SecondGpu, DoesGcmInPieces) {
    const KeyRing ring({random_.bytes(32)});
    auto tables = backend_->tables(ring.keys);
    ASSERT_TRUE(tables) << tables.error().message;
    const Bytes in = random_.bytes(300001), aad = random_.bytes(777);
    const Block start = random_.block();
    const Answer answer = oracle(ring.raw[0], kSeal,
                                 {.in = in.data(),
                                  .size = in.size(),
                                  .aad = aad.data(),
                                  .aad_size = aad.size(),
                                  .start = start});
    auto pieces = backend_->begin(kSeal, {ring.keys, tables->get()}, 0, start);
    ASSERT_TRUE(pieces) << pieces.error().message;
    Bytes out(in.size());
    ASSERT_TRUE((*pieces)->aad(aad));
    for (std::size_t at = 0; at < in.size(); at += 100000) {
        const std::size_t size = std::min<std::size_t>(100000, in.size() - at);
        const auto done = (*pieces)->update(in.data() + at, out.data() + at, size);
        ASSERT_TRUE(done) << done.error().message;
        if (at == 100000) {  // a clone goes its own way, and ends as the first would have
            auto clone = (*pieces)->clone();
            ASSERT_TRUE(clone) << clone.error().message;
            pieces = std::move(clone);
        }
    }
    const auto tag = (*pieces)->finish();
    ASSERT_TRUE(tag) << tag.error().message;
    EXPECT_EQ(difference(answer.out, out), "");
    EXPECT_TRUE(std::ranges::equal(*tag, answer.tag));
    ASSERT_TRUE((*pieces)->restart(start));
    ASSERT_TRUE((*pieces)->aad(aad));
    ASSERT_TRUE((*pieces)->update(in.data(), out.data(), in.size()));
    EXPECT_EQ(difference(answer.out, out), "");
}

TEST_F(SecondGpu, KnowsItsMemory) {
    auto first = cuda::open_cuda_backend(0);
    ASSERT_TRUE(first) << first.error().message;
    Memory& memory = backend_->device()->memory();
    const auto here = memory.allocate(16);
    const auto there = (*first)->device()->memory().allocate(16);
    ASSERT_TRUE(here && there);
    EXPECT_TRUE(memory.owns(*here));
    EXPECT_FALSE(memory.owns(*there));
    memory.release(*here);
    (*first)->device()->memory().release(*there);
}

}  // namespace
}  // namespace dael::test
