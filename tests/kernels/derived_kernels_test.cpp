// SPDX-License-Identifier: Apache-2.0
// The kernels of XAES-256-GCM and AES-GCM-SIV, their own code, run by thread blocks on the host
// against the oracle: any size, address and AAD, keys of both sizes, forgeries apart and in place.
#include <gtest/gtest.h>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/memory_access.cuh"
#include "core/key_schedule.hpp"
#include "support/bytes.hpp"
#include "support/oracle.hpp"
#include "support/vectors.hpp"

#include "kernels/tensor_counts.hpp"

namespace dael::cuda {

// The instruction by its definition: a warp's registers by columns of memory.
inline void wgmma_b1(std::uint32_t (&counts)[64], const std::uint32_t (&a)[4],
                     std::uint64_t columns, int add) {
    auto& block = *test::HostBlock::current();
    std::uint32_t all[32][4];
    for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < 4; ++i) all[lane][i] = block.exchange(a[i], lane);
    if (!add) std::ranges::fill(counts, 0);
    test::count(counts, all, block.thread() % 32,
                reinterpret_cast<const std::uint32_t*>(columns * 16));
}

}  // namespace dael::cuda

#undef __shared__
#define __shared__ static
#include "backends/cuda/derived/block.cuh"
// clang-format on

#include "backends/cuda/derived/plan.hpp"

namespace dael::cuda {
alignas(1024) unsigned char table_image[200 * 1024];
}

namespace dael::test {
namespace {

using cuda::DerivedForm;

struct Item {
    std::size_t size = 0, aad_size = 0, in_at = 0, out_at = 0;
    bool in_place = false, forged = false;
    std::uint32_t key = 0;
};

template <class F>
class Subject {
  public:
    static constexpr Mode kMode = F::kSiv ? Mode::gcm_siv : Mode::xaes256gcm;

    Subject() {
        for (std::size_t k = 0; k < 3; ++k) {
            raw_.push_back(random_.bytes(F::kRounds == 14 ? 32 : 16));
            core::KeySchedule schedule;
            core::expand_key(raw_[k], schedule);
            cuda::GcmKey& there = keys_.emplace_back();
            std::memset(&there, 0xee, sizeof there);
            std::memcpy(there.encrypt.w, schedule.encrypt.data(), 16 * (F::kRounds + 1));
            there.rounds = F::kRounds;
        }
    }

    enum Way { eight, block, few };
    // Seals or opens all of them in one launch. "" or what is wrong.
    std::string fault_of(const std::vector<Item>& items, bool opens, Way way, unsigned blocks = 1) {
        struct Held {
            Bytes expected, expected_tag;
            Poisoned source, apart, aad, tag;
        };
        std::vector<Held> held;
        std::vector<Message> messages;
        for (const Item& item : items) {
            const Bytes plain = random_.bytes(item.size), aad = random_.bytes(item.aad_size);
            Message m;
            m.in = plain.data();
            m.aad = aad.data();
            m.size = item.size;
            m.aad_size = item.aad_size;
            m.key = item.key;
            const Bytes nonce = random_.bytes(24);
            std::memcpy(&m.start, nonce.data(), F::kSiv ? 12 : 16);
            if (!F::kSiv) std::memcpy(&m.start_rest, nonce.data() + 16, 8);
            const auto sealed = oracle(raw_[item.key], {kMode, Direction::encrypt}, m);
            held.push_back({opens ? plain : sealed.out, sealed.tag,
                            Poisoned(opens ? sealed.out : plain, item.in_at),
                            Poisoned(item.size, item.out_at), Poisoned(aad, item.in_at),
                            Poisoned(16, item.size % 16)});
            Held& h = held.back();
            if (opens) std::ranges::copy(sealed.tag, h.tag.data());
            if (item.forged) {
                const std::size_t spot = random_.below(1000);
                if (item.size != 0 && spot % 2)
                    h.source.data()[spot % item.size] ^= 1;
                else
                    h.tag.data()[spot % 16] ^= 4;
                h.expected_tag = h.tag.bytes();
                h.expected = item.in_place ? h.source.bytes()
                             : F::kSiv     ? Bytes(item.size, 0)
                                           : h.apart.bytes();
            }
            messages.push_back(m);
        }
        for (std::size_t i = 0; i < items.size(); ++i) {
            messages[i].in = held[i].source.data();
            messages[i].out = items[i].in_place ? held[i].source.data() : held[i].apart.data();
            messages[i].aad = held[i].aad.data();
            messages[i].tag = held[i].tag.data();
        }
        std::vector<std::uint32_t> results(items.size(), 77);
        cuda::DerivedBatch batch{};
        batch.messages = messages.data();
        batch.keys = keys_.data();
        batch.results = results.data();
        batch.count = static_cast<std::uint32_t>(items.size());
        batch.key_count = 3;
        batch.most_short = way == eight ? 1u << 30 : 0;
        batch.reset = 1;
        if (way == block)  // of which those are the others
            for (const Item& item : items)
                if (item.size + item.aad_size == 0) return "too short";
        if (way == few) {
            cuda::DerivedLaunch launch{};
            launch.batch = batch;
            std::size_t aad_at = 0;
            for (std::size_t i = 0; i < items.size(); ++i) {
                launch.messages[i] = messages[i];
                std::memcpy(reinterpret_cast<char*>(launch.aad) + aad_at, messages[i].aad,
                            messages[i].aad_size);
                launch.messages[i].aad = reinterpret_cast<const std::uint8_t*>(aad_at);
                aad_at += messages[i].aad_size;
            }
            launch.aad_words = static_cast<std::uint32_t>((aad_at + 3) / 4);
            unsigned long long ended = 0;
            launch.batch.ended = &ended;
            launch_blocks(static_cast<unsigned>(items.size()), F::kThreads, [&] {
                opens ? cuda::derived_few<F, true>(launch) : cuda::derived_few<F, false>(launch);
            });
            if (ended != items.size()) return "blocks that ended";
        } else {
            launch_blocks(blocks, F::kThreads, [&] {
                if (way == eight)
                    opens ? cuda::derived_eight<F, true>(batch)
                          : cuda::derived_eight<F, false>(batch);
                else
                    opens ? cuda::derived_block<F, true>(batch)
                          : cuda::derived_block<F, false>(batch);
            });
        }
        const std::uint32_t own =
            F::kTables == 4 ? cuda::shapes::kDerivedRows : cuda::shapes::derived_own(F::kThreads);
        for (std::uint32_t i = 0; i < own; ++i)
            if (cuda::table_image[i] != 0) return "shared memory still holds something";
        for (std::size_t i = 0; i < items.size(); ++i) {
            const Item& item = items[i];
            const auto say = [&](const std::string& what) {
                return what + ": message " + std::to_string(i) + " of " +
                       std::to_string(item.size) + " bytes, AAD of " +
                       std::to_string(item.aad_size) + ", in at " + std::to_string(item.in_at) +
                       (item.in_place ? ", in place" : ", out at " + std::to_string(item.out_at)) +
                       (item.forged ? ", forged" : "") + (opens ? ", opened" : ", sealed");
            };
            const Code expected = item.forged ? Code::authentication : Code::ok;
            if (static_cast<Code>(results[i]) != expected)
                return say("code " + std::to_string(results[i]));
            const Poisoned& target = item.in_place ? held[i].source : held[i].apart;
            if (target.bytes() != held[i].expected)
                return say(difference(held[i].expected, target.bytes()));
            if (held[i].tag.bytes() != held[i].expected_tag) return say("tag");
            for (const Poisoned* p : {&held[i].source, &held[i].apart, &held[i].aad, &held[i].tag})
                if (!p->intact()) return say("beside");
        }
        return {};
    }

    // The code of a message whose key has another size now, from a launch that is the batch's first
    // or not.
    std::uint32_t code_under_another_size(Way way, bool first) {
        Bytes data(100), tag(16);
        Message m;
        m.in = m.out = data.data();
        m.size = data.size();
        m.tag = tag.data();
        m.key = 1;
        std::uint32_t result = 77;
        cuda::DerivedBatch batch{};
        batch.messages = &m;
        batch.keys = keys_.data();
        batch.results = &result;
        batch.count = 1;
        batch.key_count = 3;
        batch.most_short = way == eight ? 100 : 0;
        batch.reset = first;
        keys_[1].rounds = 24 - F::kRounds;
        launch_blocks(1, F::kThreads, [&] {
            way == eight ? cuda::derived_eight<F, false>(batch)
                         : cuda::derived_block<F, false>(batch);
        });
        keys_[1].rounds = F::kRounds;
        return data == Bytes(100) && tag == Bytes(16) ? result : ~0u;
    }

    Random random_{2024};

  private:
    std::vector<Bytes> raw_;
    std::vector<cuda::GcmKey> keys_;
};

template <class F>
class DerivedKernels : public testing::Test {};
using Forms = testing::Types<DerivedForm<false, 14, 4, 64>, DerivedForm<false, 14, 1, 32>,
                             DerivedForm<true, 10, 4, 64>, DerivedForm<true, 14, 1, 32>>;
TYPED_TEST_SUITE(DerivedKernels, Forms);

// By tensor cores: some of their rows are empty, or all have some of several steps.
TEST(DerivedRows, LongMessagesOnTensorCores) {
    const auto try_all = [](auto subject) {
        for (const bool opens : {false, true}) {
            std::vector<Item> items;
            for (const std::size_t size : {1000, 16368, 33007})
                items.push_back({.size = size,
                                 .aad_size = size % 2 * 100,
                                 .in_at = size == 1000 ? 8u : 0u,
                                 .in_place = size == 33007,
                                 .forged = opens && size == 33007});
            items.push_back({.aad_size = 700});
            ASSERT_EQ(subject.fault_of(items, opens, decltype(subject)::block), "");
        }
    };
    try_all(Subject<DerivedForm<false, 14, 4, 512>>());
    try_all(Subject<DerivedForm<true, 10, 4, 512>>());
}

TYPED_TEST(DerivedKernels, EightToAWarpOfAnySizeAddressAndAad) {
    Subject<TypeParam> subject;
    for (const bool opens : {false, true}) {
        std::vector<Item> items;
        for (std::size_t size = 0; size <= 100; ++size)
            items.push_back({.size = size,
                             .aad_size = size * 7 % 75,
                             .in_at = size % 3 ? size % 16 : 0,
                             .out_at = size % 5 ? 0 : size * 5 % 16,
                             .in_place = size % 4 == 3,
                             .forged = opens && size % 5 == 2,
                             .key = static_cast<std::uint32_t>(size / 5 % 3)});
        for (const std::size_t size : {128, 512, 1023, 1024, 1500, 4200})
            items.push_back({.size = size, .aad_size = size % 7 * 30});
        ASSERT_EQ(subject.fault_of(items, opens, Subject<TypeParam>::eight, 2), "");
    }
}

TYPED_TEST(DerivedKernels, ABlockOfThreadsToAMessage) {
    Subject<TypeParam> subject;
    for (const bool opens : {false, true}) {
        std::vector<Item> items;
        for (const std::size_t size : {1, 16, 17, 1000, 1024, 2032, 2048, 4100, 9000})
            for (const std::size_t aad : {0, 5, 300})
                items.push_back({.size = size,
                                 .aad_size = aad,
                                 .in_at = aad == 5 ? size % 16 : 0,
                                 .in_place = aad == 300,
                                 .forged = opens && (size / 4 + aad) % 3 == 1,
                                 .key = static_cast<std::uint32_t>(size % 3)});
        items.push_back({.aad_size = 700});
        ASSERT_EQ(subject.fault_of(items, opens, Subject<TypeParam>::block, 2), "");
    }
}

TYPED_TEST(DerivedKernels, AFewTravelWithTheirAad) {
    Subject<TypeParam> subject;
    for (const bool opens : {false, true}) {
        std::vector<Item> items;
        for (std::size_t i = 0; i < 7; ++i)
            items.push_back({.size = i * 313,
                             .aad_size = i * 9 % 50,
                             .in_at = i % 4,
                             .in_place = i % 2 == 1,
                             .forged = opens && i % 3 == 1,
                             .key = static_cast<std::uint32_t>(i % 3)});
        ASSERT_EQ(subject.fault_of(items, opens, Subject<TypeParam>::few), "");
    }
}

TYPED_TEST(DerivedKernels, AKeyOfAnotherSizeIsNotTaken) {
    Subject<TypeParam> subject;
    for (const auto way : {Subject<TypeParam>::eight, Subject<TypeParam>::block}) {
        EXPECT_EQ(subject.code_under_another_size(way, true), cuda::kNotRun);
        EXPECT_EQ(subject.code_under_another_size(way, false), 77u);  // which another launch said
    }
}

// However a list is ordered, long messages are spread over the multiprocessors.
TEST(DerivedPlan, LongMessagesHaveThreadBlocksOfTheirOwn) {
    std::vector<Message> messages(1024);
    for (Message& m : messages) m.size = 1 << 20;
    const cuda::DerivedPlan plan(messages, 132 * 16);
    ASSERT_EQ(plan.blocks.size(), messages.size());
    EXPECT_EQ(cuda::derived_grid(cuda::DerivedWay::block, 1024, 132), 132u);
    EXPECT_EQ(cuda::derived_grid(cuda::DerivedWay::block, 7, 132), 7u);
    EXPECT_EQ(cuda::derived_grid(cuda::DerivedWay::eight, 17, 132), 3u);
    EXPECT_EQ(cuda::derived_grid(cuda::DerivedWay::eight, 0xffffffff, 132), 132u);
}

// Every lane looks up what it needs in its own bank of shared memory, whatever keys and data are
// (SIDE-CHANNELS.md): with all other banks empty the outcome is the same, with its own it is not.
TEST(DerivedBanks, LanesStayInTheirOwn) {
    const auto faults = [](auto subject, unsigned by) {
        const OwnBanks only(cuda::table_image + cuda::shapes::kDerivedTables,
                            4 * cuda::shapes::kTable, by);
        return subject.fault_of({{.size = 300, .aad_size = 5}, {.size = 1100}}, false,
                                decltype(subject)::eight);
    };
    EXPECT_EQ(faults(Subject<DerivedForm<false, 14, 4, 32>>(), 0), "");
    EXPECT_EQ(faults(Subject<DerivedForm<true, 10, 4, 32>>(), 0), "");
    EXPECT_NE(faults(Subject<DerivedForm<false, 14, 4, 32>>(), 1), "");
    EXPECT_NE(faults(Subject<DerivedForm<true, 10, 4, 32>>(), 1), "");
}

// GCM-SIV's counter wraps in its first word; every state that is kept is that of its counter.
TEST(SivCounter, EveryCounterHasTheStateOfItsBlock) {
    Random random(7);
    const Bytes raw = random.bytes(32);
    core::KeySchedule schedule;
    core::expand_key(raw, schedule);
    kernels::RoundKeys keys{};
    std::memcpy(keys.w, schedule.encrypt.data(), sizeof keys.w);
    std::vector<unsigned char> image(kernels::Tables<4, false>::kBytes);
    const auto table = kernels::make_encrypt_table();
    for (std::uint32_t i = 0; i < kernels::Tables<4, false>::kRuns; ++i)
        kernels::Tables<4, false>::write_run(
            image.data(), i, kernels::Tables<4, false>::run_word(i, table.data(), nullptr));
    const kernels::Tables<4, false> tables(image.data(), 3);
    for (const std::uint32_t first : {0u, 0xffffff00u, 0xfffffffeu, 0x0000fff0u, 0x12345678u})
        for (const std::uint32_t step : {1u, 8u, 255u, 512u}) {
            kernels::Words4 start{first, 0x01020304, 0xa0b0c0d0, 0xf1e2d3c4};
            using Cache = kernels::SivCounterCache<4>;
            kernels::CachedCounter<Cache> counter(Cache(tables, keys, start));
            for (std::uint32_t i = 0; i < 400; ++i) {
                start.x = first + i * step;
                const kernels::Words4 whole = kernels::crypt_masked<14>(tables, keys, start, {}),
                                      kept = kernels::finish_masked<14, 3>(
                                          tables, keys, counter.state(start.x), {});
                ASSERT_EQ(std::memcmp(&whole, &kept, 16), 0)
                    << first << " + " << i << " * " << step;
            }
        }
}

}  // namespace
}  // namespace dael::test
