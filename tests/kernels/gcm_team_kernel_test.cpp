// SPDX-License-Identifier: Apache-2.0
// The kernels of a few messages without a batch, their own code, run by a thread block on the host
// against OpenSSL: what only a GPU can show besides is the launch.
#include <gtest/gtest.h>

#include <optional>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/find_kernel.hpp"
#include "backends/cuda/gcm/kernels.hpp"
#include "backends/cuda/gcm/launch_plan.hpp"
#include "backends/cuda/gcm/tag.cuh"
#include "kernels/gcm_team.hpp"
#include "support/test_batch.hpp"

#undef __shared__
#define __shared__ static
#include "backends/cuda/gcm/team.cu"
#include "kernels/gcm_keys_on_host.hpp"
#define kThreads kPlanThreads
#include "backends/cuda/gcm/plan.cu"
#undef kThreads
// clang-format on

namespace dael::cuda {
alignas(1024) unsigned char table_image[test::kKeyImage];
}

namespace dael::test {
namespace {

using cuda::GcmKey;
using cuda::GcmPlace;
using cuda::GcmTeamWork;

class GcmTeamKernel : public testing::Test {
  protected:
    template <int kRounds, std::uint32_t kMax>
    static void launch(const GcmTeamWork<kMax>& work, std::uint32_t count) {
        std::optional<OwnBanks> own;
        if (banks_) own.emplace(cuda::table_image, cuda::shapes::kTable, *banks_);
        launch_blocks(count, cuda::shapes::gcm_team(0).threads,
                      [&] { cuda::gcm_team<kRounds, kMax>(work); });
    }
    template <std::uint32_t kMax>
    static void launch(const Cipher& cipher, std::span<const Key> keys,
                       const std::vector<GcmKey>& made, std::span<const Message> messages,
                       bool host_aad, std::uint32_t* results) {
        GcmTeamWork<kMax> work{};
        work.keys = made.data();
        work.results = results;
        work.tag_size = authenticates(cipher.mode) ? cipher.tag : 0;
        work.opening = work.tag_size != 0 && cipher.direction == Direction::decrypt;
        std::uint64_t aad = 0;
        for (const Message& m : messages) aad += host_aad ? m.aad_size : 0;
        work.aad_words = static_cast<std::uint32_t>((aad + 3) / 4);
        cuda::put_list(messages, host_aad, nullptr, work.list.messages, work.list.aad);
        const auto count = static_cast<std::uint32_t>(messages.size());
        const auto of = [&](int rounds) {
            work.ours = 0;
            for (std::uint32_t i = 0; i < count; ++i)
                if (keys[messages[i].key].rounds() == rounds) work.ours |= 1u << i;
            return work.ours != 0;
        };
        if (of(10)) launch<10>(work, count);
        if (of(12)) launch<12>(work, count);
        if (of(14)) launch<14>(work, count);
    }

    // All of a batch, in launches of 1 to 32 messages, AAD along with every second that has little.
    std::string run(TestBatch& batch) {
        return batch.fault_of([&](const Cipher& cipher, std::span<const Key> keys,
                                  std::span<const Message> messages,
                                  std::span<Code> codes) -> Result<> {
            const std::vector<GcmKey> made = device_keys(keys);
            bool one = true;
            for (std::size_t at = 0; at < messages.size();) {
                const std::size_t count =
                    one ? 1 : std::min<std::size_t>(kMaxLaunched, messages.size() - at);
                const auto part = messages.subspan(at, count);
                std::uint64_t aad = 0;
                for (const Message& m : part) aad += m.aad_size;
                std::vector<std::uint32_t> results(count, ~0u);
                if (count == 1)
                    launch<1>(cipher, keys, made, part,
                              aad != 0 && aad <= cuda::kSmallAad && at % 3 == 0, results.data());
                else
                    launch<kMaxLaunched>(cipher, keys, made, part,
                                         aad != 0 && aad <= kMaxLaunchedAad && at % 3 == 1,
                                         results.data());
                for (std::size_t i = 0; i < count; ++i)
                    codes[at + i] = static_cast<Code>(results[i]);
                at += count;
                one = !one;
            }
            return {};
        });
    }

    // By so many blocks, twice; what the short messages' kernel told them is done with.
    static void plan(cuda::GcmBatch batch, unsigned blocks, bool any_long = true) {
        const auto state = std::make_unique<cuda::PlanState>();
        batch.plan = state.get();
        for (int time = 0; time < 2; ++time) {
            state->any_long = batch.plan_later && any_long;
            launch_blocks(blocks, cuda::shapes::gcm_plan().threads, [&] { cuda::gcm_plan(batch); });
        }
        EXPECT_EQ(state->any_long, 0u);
    }

    void TearDown() override { banks_.reset(); }
    // Whose banks a lane can see, so many lanes on; none: all.
    static inline std::optional<unsigned> banks_;

    Random random_{2718};
    const KeyRing ring_{random_, 3};
};

constexpr Cipher kCiphers[] = {{Mode::gcm},
                               {Mode::gcm, Direction::decrypt},
                               {Mode::gcm_ctr},
                               {Mode::gcm, Direction::encrypt, 4},
                               {Mode::gcm, Direction::decrypt, 13}};

TEST_F(GcmTeamKernel, SizesAlignmentsAndAad) {
    for (const Cipher& cipher : kCiphers) {
        const bool tags = authenticates(cipher.mode);
        TestBatch batch(random_, ring_, cipher);
        for (std::size_t size = 0; size <= 66; ++size)
            batch.add({.size = size,
                       .in_at = size % 16,
                       .out_at = size * 5 % 16,
                       .in_place = size % 4 == 3,
                       .aad_size = tags ? size * 7 % 39 : 0});
        for (const std::size_t edge : {512, 3584, 4096, 8192, 12288})
            for (const int by : {-17, -1, 0, 1, 16})
                batch.add({.size = edge + static_cast<std::size_t>(by),
                           .in_at = by == 1 ? 3u : 0u,
                           .in_place = by == 16,
                           .aad_size = tags && by <= 0 ? 20u : 0u});
        for (const std::size_t aad : {15, 16, 17, 257, 600, 1024, 1025, 4096, 9000})
            batch.add({.size = 40, .aad_size = tags ? aad : 0});
        batch.add({.size = 32768});
        EXPECT_EQ(run(batch), "") << batch.what();
    }
}

// A lane looks into its own bank alone, so that no data and no key makes two of them meet.
TEST_F(GcmTeamKernel, LanesNeedTheirOwnBanksAlone) {
    for (const Cipher& cipher : kCiphers)
        for (const unsigned by : {0u, 1u}) {
            TestBatch batch(random_, ring_, cipher);
            batch.add({.size = 40}).add({.size = 5000}).add({.size = 300}).add({.size = 64});
            banks_ = by;
            EXPECT_EQ(run(batch) == "", by == 0) << batch.what();
        }
}

TEST_F(GcmTeamKernel, CountersThatWrap) {
    for (const Direction direction : kDirections) {
        TestBatch batch(random_, ring_, {Mode::gcm, direction});
        for (const std::uint32_t left : {0u, 1u, 2u, 5u, 200u, 255u, 256u, 300u}) {
            Block j0 = random_.block();
            for (std::size_t i = 0; i < 4; ++i)
                j0[15 - i] = static_cast<std::uint8_t>(~left >> (8 * i));
            batch.add({.size = 4500, .aad_size = 5, .start = j0});
        }
        EXPECT_EQ(run(batch), "");
    }
}

TEST_F(GcmTeamKernel, ForgeriesReleaseNothing) {
    for (int round = 0; round < 4; ++round) {
        TestBatch batch(random_, ring_, {Mode::gcm, Direction::decrypt});
        for (std::size_t i = 0; i < 40; ++i)
            batch.add({.size = i % 5 == 0 ? 5000 : i * 11,
                       .in_place = i % 2 == 1,
                       .aad_size = i % 3 == 0 ? 30u : 0u});
        for (std::size_t i = static_cast<std::size_t>(round) % 3; i < batch.size(); i += 3)
            batch.forge(i);
        EXPECT_EQ(run(batch), "");
    }
}

// A key that was replaced by one of another size since the host looked: nothing is written.
TEST_F(GcmTeamKernel, AKeyOfAnotherSizeIsNotUsed) {
    std::vector<GcmKey> made = device_keys(ring_.keys);
    Bytes plain = random_.bytes(300), out(300, Poisoned::kPoison), tag(16, Poisoned::kPoison);
    const Message m{.in = plain.data(), .out = out.data(), .size = 300, .tag = tag.data()};
    std::uint32_t result = ~0u;
    made[0].rounds = 14;
    launch<1>({Mode::gcm}, ring_.keys, made, {&m, 1}, false, &result);
    EXPECT_EQ(static_cast<Code>(result), Code::internal);
    EXPECT_EQ(out, Bytes(300, Poisoned::kPoison));
    EXPECT_EQ(tag, Bytes(16, Poisoned::kPoison));
}

// What the host plans of a list is what the kernel plans that has it in device memory, and comes
// to where it is wanted whole.
TEST_F(GcmTeamKernel, TheHostPlansAsTheDeviceDoes) {
    const Bytes room(16);
    for (const bool tags : {true, false})
        for (std::uint32_t count = 1; count <= kMaxLaunched; count += 7) {
            std::vector<Message> list(count);
            std::vector<Bytes> aad;
            std::uint64_t aad_size = 0;
            for (std::uint32_t i = 0; i < count; ++i) {
                Message& m = list[i];
                m.in = m.out = m.tag = const_cast<std::uint8_t*>(room.data());
                m.size = i % 3 == 0 ? i * 100 : 100'000 + random_.below(1 << 22);
                m.start = random_.block();
                m.start[12] = 0;
                if (!tags) {
                    m.skip = static_cast<std::uint8_t>(i % 16);
                    continue;
                }
                aad.push_back(random_.bytes(i % 31));
                m.aad = aad.back().data();
                m.aad_size = aad.back().size();
                aad_size += m.aad_size;
            }
            cuda::GcmBatch batch{};
            batch.count = count;
            batch.key_count = 1;
            batch.tag_size = tags ? 16 : 0;
            auto to = std::make_unique<GcmPlace>();
            std::memset(static_cast<void*>(to.get()), 0xa5, sizeof *to);
            auto work = std::make_unique<cuda::GcmPlaceWork>();
            work->to = to.get();
            work->count = count;
            work->aad_words = static_cast<std::uint32_t>((aad_size + 3) / 4);
            cuda::put_list(list, tags, to->aad, work->from.messages, work->from.aad);
            cuda::plan_units(batch, work->from);
            HostBlock::run(cuda::shapes::gcm_place().threads, [&] { cuda::gcm_place(*work); });
            for (std::uint32_t i = 0; i < count; ++i) {
                EXPECT_EQ(std::memcmp(&to->messages[i].start, &list[i].start, 16), 0);
                EXPECT_EQ(to->messages[i].size, list[i].size);
                EXPECT_EQ(static_cast<Code>(to->results[i]), tags ? Code::internal : Code::ok);
                EXPECT_TRUE(!tags || std::ranges::equal(
                                         std::span(to->messages[i].aad, list[i].aad_size), aad[i]));
            }
            auto planned = std::make_unique<GcmPlace>();
            batch.messages = to->messages;
            batch.aad.starts = planned->aad_starts;
            batch.data.starts = planned->data_starts;
            batch.groups.starts = planned->group_starts;
            batch.results = planned->results;
            plan(batch, 1);
            const std::size_t starts = (count + 1) * sizeof(std::uint64_t);
            EXPECT_EQ(std::memcmp(to->aad_starts, planned->aad_starts, starts), 0);
            EXPECT_EQ(std::memcmp(to->data_starts, planned->data_starts, starts), 0);
            EXPECT_EQ(std::memcmp(to->group_starts, planned->group_starts, starts), 0);
            EXPECT_EQ(planned->group_starts[count] != 0, count > 1);
        }
}

// Lists of more messages than threads, by one block and by several; with nonces that count, and
// with fewer messages than places. And without nonces, after the short messages: where no other was
// met, nothing but how many units there are is written.
TEST_F(GcmTeamKernel, ManyBlocksPlanAsOne) {
    constexpr std::uint32_t kCount = 5000, kNumber = 4321;
    const Bytes room(16);
    for (const int which : {0, 1, 2, 3}) {
        const bool any_long = which % 2 == 0, later = which >= 2;
        std::vector<Message> list(kCount);
        for (std::uint32_t i = 0; i < kCount; ++i) {
            Message& m = list[i];
            m.in = m.out = m.tag = const_cast<std::uint8_t*>(room.data());
            m.aad = m.in;
            // Stretches without a long one: within a block's messages, and more than those.
            const bool is_long = any_long && (i % 5 == 0 || i > 4000) && (i < 600 || i > 2800);
            m.size = random_.below(is_long ? 300'000 : 4000);
            m.aad_size = random_.below(i % 11 == 0 && is_long ? 60'000 : 40);
        }
        for (const unsigned blocks : {1u, 2u, 3u, 10u, 132u}) {
            std::uint32_t number = kNumber;
            DeviceNonces nonces{{9, 8, 7, 6}, 0, 0xffff'ff00};
            std::vector<Message> messages = list;
            std::vector<std::uint64_t> starts[3];
            for (auto& s : starts) s.assign(kCount + 1, ~std::uint64_t{0});
            std::vector<std::uint32_t> results(kCount, 0);
            cuda::GcmBatch batch{};
            batch.messages = messages.data();
            batch.number = &number;
            batch.nonces = later ? nullptr : &nonces;
            batch.plan_later = later;
            batch.count = kCount;
            batch.key_count = 1;
            batch.tag_size = 16;
            batch.aad.starts = starts[0].data();
            batch.data.starts = starts[1].data();
            batch.groups.starts = starts[2].data();
            batch.results = results.data();
            plan(batch, blocks, any_long);  // twice
            EXPECT_EQ(nonces.next, 0xffff'ff00 + (later ? 0 : 2 * std::uint64_t{kNumber}));
            cuda::Units at{};
            for (std::uint32_t i = 0; i <= kCount; ++i) {
                if (later && !any_long && i != kCount) {
                    EXPECT_EQ(static_cast<Code>(results[i]),
                              i >= kNumber ? Code::internal : Code::ok);
                    continue;
                }
                ASSERT_EQ(starts[0][i], at.aad) << i << " of " << blocks;
                ASSERT_EQ(starts[1][i], at.data) << i << " of " << blocks;
                ASSERT_EQ(starts[2][i], at.groups) << i << " of " << blocks;
                if (i == kCount) break;
                if (i >= kNumber) {
                    EXPECT_EQ(static_cast<Code>(results[i]), Code::internal);
                    continue;
                }
                gcm::Nonce nonce{9, 8, 7, 6};
                const std::uint64_t counted = 0xffff'ff00 + std::uint64_t{kNumber} + i;
                for (std::size_t b = 0; b < 8; ++b)
                    nonce[4 + b] = static_cast<std::uint8_t>(counted >> (56 - 8 * b));
                ASSERT_EQ(messages[i].start, later ? Block{} : gcm::start(nonce)) << i;
                at += cuda::units_of(batch, i);
            }
            EXPECT_EQ(at.any(), any_long);
        }
    }
}

// All that a key has in device memory, by the kernel that makes it and by plain products: of H, and
// of 0, which has no inverse.
TEST_F(GcmTeamKernel, KeysHaveTheirPowersAndMatrices) {
    using kernels::Words4;
    const auto equal = [](const Words4& a, const Words4& b) {
        return std::memcmp(&a, &b, sizeof a) == 0;
    };
    const Bytes zeros(16);
    auto made = device_keys(ring_.keys);
    std::vector<cuda::GcmMatrices> matrices(made.size());
    launch_blocks(2, cuda::shapes::gcm_key_setup().threads, [&] {
        cuda::gcm_key_setup(made.data(), matrices.data(), static_cast<std::uint32_t>(made.size()));
    });
    for (std::size_t i = 0; i < made.size(); ++i) {
        const GcmKey& key = made[i];
        const Words4 h = key.powers[1], inverse = kernels::gf_inverse(h);
        const Answer zero =
            oracle(ring_.raw[i], {Mode::ecb}, Message{.in = zeros.data(), .size = zeros.size()});
        EXPECT_EQ(std::memcmp(&h, zero.out.data(), 16), 0);
        std::vector<Words4> powers{kernels::gf_one()};
        while (powers.size() <= 1024) powers.push_back(kernels::gf_multiply(powers.back(), h));
        for (std::uint32_t p = 0; p < std::size(key.powers); ++p)
            EXPECT_TRUE(equal(key.powers[p], powers[p])) << p;
        for (std::uint32_t j = 0; j < kernels::kTeamWarps; ++j)
            EXPECT_TRUE(equal(key.leaps[j], powers[32 * j])) << j;
        Words4 square = h, weight = kernels::gf_one();
        for (const Words4& its : key.squares) {
            EXPECT_TRUE(equal(its, square));
            square = kernels::gf_multiply(square, square);
        }
        for (const Words4& its : matrices[i].column_weights) {
            EXPECT_TRUE(equal(its, weight));
            weight = kernels::gf_multiply(weight, inverse);
        }
        for (std::uint32_t index = 0; index < kernels::kFragmentWords; ++index) {
            const kernels::FragmentWord w = kernels::fragment_word(index);
            std::uint32_t bits = 0;
            for (std::uint32_t bit = 0; bit < 32; ++bit) {
                const Words4 column = kernels::gf_times_basis(powers[kernels::tile_power(w.block)],
                                                              32 * w.word + bit);
                const std::uint32_t words[4] = {column.x, column.y, column.z, column.w};
                bits |= (words[w.output / 32] >> w.output % 32 & 1) << bit;
            }
            ASSERT_EQ(matrices[i].fragments[index], bits) << index;
        }
    }
}

}  // namespace
}  // namespace dael::test
