// SPDX-License-Identifier: Apache-2.0
// What calls of the host backends may count on, beside right answers: with keys made ready, or with
// one expanded for the call, GCM allocates nothing; a child of fork() may go on with the keys;
// messages in pieces are cloned and begun anew; keys are replaced; what is forged leaves nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/registry.hpp"
#include "support/child.hpp"
#include "support/test_batch.hpp"
#include "support/thorough.hpp"

#if defined(DAEL_SANITIZED) || !defined(__GLIBC__)
constexpr bool kCountsAllocations = false;  // malloc is the sanitizer's
#else
constexpr bool kCountsAllocations = true;
extern "C" void* __libc_malloc(std::size_t size);
#endif

namespace {
std::atomic<int> allocations{0};
}

#if !defined(DAEL_SANITIZED) && defined(__GLIBC__)
// Of the library, of libcrypto and of the standard library alike.
extern "C" void* malloc(std::size_t size) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(size);
}
#endif

namespace {

using namespace dael;
using test::Bytes;
using test::KeyRing;
using test::Random;
using test::TestBatch;

constexpr Cipher kSeal{Mode::gcm, Direction::encrypt}, kOpen{Mode::gcm, Direction::decrypt};

struct HostForm {
    std::string backend, form;
};
std::vector<HostForm> host_forms() {
    std::vector<HostForm> all;
    for (const core::BackendEntry& entry : core::backend_list()) {
        std::string why;
        if (entry.device_name || entry.count(&why) == 0) continue;
        for (const std::string& form :
             entry.forms ? entry.forms() : std::vector<std::string>{std::string()})
            all.push_back({entry.name, form});
    }
    return all;
}
void PrintTo(const HostForm& form, std::ostream* stream) {
    *stream << form.backend << " " << form.form;
}

class HostCalls : public testing::TestWithParam<HostForm> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend(GetParam().backend, {.form = GetParam().form});
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
        auto tables = backend_->tables(ring_.keys);
        ASSERT_TRUE(tables) << tables.error().message;
        tables_ = std::move(*tables);
    }
    // Of one message of 48 bytes, whose start is `start`.
    Result<> call(const Cipher& cipher, bool prepared, Block start, std::uint8_t* data,
                  std::uint8_t* tag, Code& code, std::uint32_t key = 0) {
        const Message message{
            .in = data, .out = data, .size = 48, .tag = tag, .start = start, .key = key};
        return backend_->run(cipher, {ring_.keys, prepared ? tables_.get() : nullptr},
                             std::span(&message, 1), std::span(&code, 1));
    }
    std::string fault_of(TestBatch& batch, bool prepared) {
        return batch.fault_of([&](const Cipher& cipher, std::span<const Key> keys,
                                  std::span<const Message> messages, std::span<Code> codes) {
            return backend_->run(cipher, {keys, prepared ? tables_.get() : nullptr}, messages,
                                 codes);
        });
    }

    std::unique_ptr<core::Backend> backend_;
    std::unique_ptr<core::KeyTables> tables_;
    Random random_{22};
    KeyRing ring_{random_, 6};
};

TEST_P(HostCalls, GcmWithAndWithoutTables) {
    for (const Direction direction : test::kDirections)
        for (const bool prepared : {false, true})
            for (const std::uint8_t tag : std::vector<std::uint8_t>{16, 12, 4}) {
                TestBatch batch(random_, ring_, {Mode::gcm, direction, tag});
                for (std::size_t size = 0; size < 300; size += 1 + random_.below(9))
                    batch.add_sizes(std::vector<std::size_t>{size});
                if (direction == Direction::decrypt)
                    for (std::size_t i = 0; i < batch.size(); i += 3) batch.forge(i);
                ASSERT_EQ(fault_of(batch, prepared), "");
            }
}

TEST_P(HostCalls, GcmAllocatesNothing) {
    if (!kCountsAllocations) GTEST_SKIP() << "malloc is a sanitizer's";
    if (GetParam().backend == "reference") GTEST_SKIP() << "it need not be fast";
    for (const bool prepared : {true, false})
        for (int round = 0; round < 3; ++round) {
            Bytes data(48), tag(16);
            Code code = Code::ok;
            Block start = gcm::start({1, 2, 3});
            if (round == 2) start = random_.block();  // of no nonce
            const int before = allocations;
            bool done = true;
            for (std::uint32_t i = 0; i < 6; ++i)
                done = done && call(kSeal, prepared, start, data.data(), tag.data(), code, i);
            const int counted = allocations - before;
            ASSERT_TRUE(done);
            if (round == 0) continue;  // of each key's and thread's first time
            EXPECT_EQ(counted, 0) << (prepared ? "with tables" : "without");
        }
}

// A lock that another thread holds when the process forks stays locked in the child for good.
TEST_P(HostCalls, AChildOfForkGoesOnWithTheKeys) {
    const Block start = gcm::start({7});
    Bytes expected = random_.bytes(48), plain = expected, tag(16);
    Code code = Code::ok;
    ASSERT_TRUE(call(kSeal, true, start, expected.data(), tag.data(), code));
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            Bytes data(48), mine(16);
            Code its = Code::ok;
            for (std::uint8_t i = 0; !over; ++i)
                (void)call(kSeal, i % 2 == 0, gcm::start({9, static_cast<std::uint8_t>(t), i}),
                           data.data(), mine.data(), its, i % 2);
        });
    const int children = GetParam().backend == "reference" ? 20 : 200;
    for (int i = 0; i < children && !HasFailure(); ++i)
        test::expect_in_a_child([&] {
            Bytes data = plain, own(16);
            const bool sealed = call(kSeal, true, start, data.data(), own.data(), code) &&
                                data == expected && own == tag;
            const bool opened = call(kOpen, false, start, data.data(), own.data(), code) &&
                                data == plain && code == Code::ok;
            return sealed && opened;
        });
    over = true;
    for (auto& thread : threads) thread.join();
}

TEST_P(HostCalls, PiecesAreClonedAndBegunAnew) {
    for (const Direction direction : test::kDirections)
        for (const std::uint32_t key : {0u, 1u, 2u})
            for (const bool of_nonce : {true, false}) {
                const Cipher cipher{Mode::gcm, direction};
                const core::KeyList keys{ring_.keys, tables_.get()};
                const auto start = [&] {
                    const Block block = random_.block();
                    return of_nonce ? gcm::start({block[0], block[1]}) : block;
                };
                const Block first = start(), second = start();
                const Bytes aad = random_.bytes(random_.below(40)), in = random_.bytes(200);
                auto begun = backend_->begin(cipher, keys, key, first);
                ASSERT_TRUE(begun) << begun.error().message;
                const auto expected = [&](const Block& from) {
                    Bytes out(in.size());
                    return test::oracle(ring_.raw[key], cipher,
                                        {.in = in.data(),
                                         .out = out.data(),
                                         .size = in.size(),
                                         .aad = aad.data(),
                                         .aad_size = aad.size(),
                                         .start = from});
                };
                const auto rest = [&](core::Pieces& pieces, std::size_t aad_at, std::size_t at,
                                      Bytes out, const Block& from) {
                    if (at == 0) {
                        ASSERT_TRUE(pieces.aad(HostIn(aad).subspan(aad_at)));
                    }
                    ASSERT_TRUE(pieces.update(in.data() + at, out.data() + at, in.size() - at));
                    const auto tag = pieces.finish();
                    ASSERT_TRUE(tag);
                    const auto answer = expected(from);
                    ASSERT_EQ(test::difference(answer.out, out), "");
                    ASSERT_EQ(Bytes(tag->begin(), tag->end()), answer.tag);
                };
                core::Pieces& pieces = **begun;
                Bytes out(in.size());
                const std::size_t aad_at = random_.below(aad.size() + 1),
                                  at = 1 + random_.below(99);
                ASSERT_TRUE(pieces.aad(HostIn(aad).first(aad_at)));
                const auto in_aad = pieces.clone();
                if (in_aad.code() == Code::unsupported)  // by early versions of OpenSSL 3.0
                    GTEST_SKIP() << in_aad.error().message;
                ASSERT_TRUE(in_aad) << in_aad.error().message;
                ASSERT_TRUE(pieces.aad(HostIn(aad).subspan(aad_at)));
                ASSERT_TRUE(pieces.update(in.data(), out.data(), at));
                const auto in_data = pieces.clone();
                ASSERT_TRUE(in_data);
                rest(pieces, 0, at, out, first);
                rest(**in_aad, aad_at, 0, out, first);
                ASSERT_TRUE((*in_data)->restart(second));
                rest(**in_data, 0, 0, out, second);
                // Wherever it stands.
                ASSERT_TRUE((*in_data)->restart(first));
                ASSERT_TRUE((*in_data)->aad(HostIn(aad).first(aad_at)));
                const int before = allocations;
                const auto restarted = (*in_data)->restart(second);
                const int counted = allocations - before;
                ASSERT_TRUE(restarted);
                EXPECT_EQ(counted, 0);
                rest(**in_data, 0, 0, out, second);
            }
}

TEST_P(HostCalls, KeysAreReplacedByOthersOfAnySize) {
    const Block start = gcm::start({5});
    Random other_random(23);
    KeyRing others(other_random, 6);
    Bytes data(48), tag(16);
    Code code = Code::ok;
    ASSERT_TRUE(call(kSeal, true, start, data.data(), tag.data(), code, 0));
    std::swap(ring_.keys[0], others.keys[1]);
    std::swap(ring_.raw[0], others.raw[1]);
    ASSERT_TRUE(tables_->replace(0, ring_.keys[0], {}));
    for (const Direction direction : test::kDirections) {
        TestBatch batch(random_, ring_, {Mode::gcm, direction});
        for (int i = 0; i < 20; ++i) batch.add_sizes(std::vector<std::size_t>{random_.below(100)});
        ASSERT_EQ(fault_of(batch, true), "");
    }
}

TEST_P(HostCalls, WhatIsForgedInPlaceStaysCiphertext) {
    for (const bool prepared : {false, true})
        for (const bool of_nonce : {false, true}) {
            const Block start = of_nonce ? gcm::start({3}) : random_.block();
            const Bytes sealed = random_.bytes(48);
            Bytes data = sealed, tag(16);
            Code code = Code::ok;
            ASSERT_TRUE(call(kOpen, prepared, start, data.data(), tag.data(), code));
            EXPECT_EQ(code, Code::authentication);
            EXPECT_EQ(data, sealed);
            EXPECT_EQ(tag, Bytes(16));
        }
}

INSTANTIATE_TEST_SUITE_P(Host, HostCalls, testing::ValuesIn(host_forms()), [](const auto& form) {
    return form.param.backend + (form.param.form.empty() ? "" : "_" + form.param.form);
});

}  // namespace
