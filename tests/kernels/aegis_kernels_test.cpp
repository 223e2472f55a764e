// SPDX-License-Identifier: Apache-2.0
// AEGIS's kernels, their own code, run by thread blocks on the host against plain AEGIS: every way
// of taking messages, any size, address and AAD, forgeries apart and in place.
#include <gtest/gtest.h>

// clang-format off: in this order, as cuda_on_host.hpp says.
#include "kernels/cuda_on_host.hpp"

#include "backends/cuda/memory_access.cuh"
#include "support/aegis_plain.hpp"
#include "support/bytes.hpp"
#include "support/vectors.hpp"

#undef __shared__
#define __shared__ static
#include "backends/cuda/aegis/forms.cuh"
#include "backends/cuda/aegis/order.cuh"
// clang-format on

namespace dael::cuda {
alignas(1024) unsigned char table_image[200 * 1024];
}

namespace dael::test {
namespace {

using cuda::AegisForm;

struct Item {
    std::size_t size = 0, aad_size = 0, in_at = 0, out_at = 0;
    bool in_place = false;
    enum { good, bad_tag, bad_data, bad_aad } forged = good;
    std::uint32_t key = 0;
};

template <class F>
class Subject {
  public:
    static constexpr std::size_t kDegree = F::k256 ? 0 : F::kDegree;

    explicit Subject(std::uint32_t keys = 3) : key_count_(keys) {
        for (std::size_t k = 0; k < keys; ++k) {
            raw_.push_back(random_.bytes(F::k256 ? 32 : 16));
            cuda::GcmKey& key = keys_.emplace_back();
            std::memset(&key, 0xee, sizeof key);
            std::memcpy(key.encrypt.w, raw_[k].data(), raw_[k].size());
            key.rounds = F::k256 ? 14 : 10;
        }
    }

    // `by_size`: as a list in device memory, which the kernel orders.
    enum Order { as_listed, told, by_size };
    // Seals or opens all of them in one launch. "" or what is wrong.
    std::string fault_of(const std::vector<Item>& items, std::uint32_t tag_size, bool opens,
                         unsigned blocks = 1, Order order_by = as_listed) {
        struct Held {
            Bytes expected, expected_tag;
            Poisoned source, apart, aad, tag;
        };
        std::vector<Held> held;
        std::vector<Message> messages;
        for (const Item& item : items) {
            const Bytes plain = random_.bytes(item.size), aad = random_.bytes(item.aad_size),
                        nonce = random_.bytes(32);
            const auto sealed =
                plain::aegis_seal(kDegree, raw_[item.key], nonce, aad, plain, tag_size);
            held.push_back({opens ? plain : sealed.out, sealed.tag,
                            Poisoned(opens ? sealed.out : plain, item.in_at),
                            Poisoned(item.size, item.out_at), Poisoned(aad, item.in_at),
                            Poisoned(tag_size, item.size % 16)});
            Held& h = held.back();
            if (opens) std::ranges::copy(sealed.tag, h.tag.data());
            const std::size_t spot = random_.below(1000);
            if (item.forged == Item::bad_tag) h.tag.data()[spot % tag_size] ^= 4;
            if (item.forged == Item::bad_data && item.size) h.source.data()[spot % item.size] ^= 1;
            if (item.forged == Item::bad_aad && item.aad_size)
                h.aad.data()[spot % item.aad_size] ^= 0x80;
            if (is_forged(item)) {
                h.expected = item.in_place ? h.source.bytes() : Bytes(item.size, 0);
                h.expected_tag = h.tag.bytes();
            }
            Message m;
            m.size = item.size;
            m.aad_size = item.aad_size;
            m.key = item.key;
            std::memcpy(&m.start, nonce.data(), 16);
            std::memcpy(&m.start_rest, nonce.data() + 16, 16);
            messages.push_back(m);
        }
        for (std::size_t i = 0; i < items.size(); ++i) {
            messages[i].in = held[i].source.data();
            messages[i].out = items[i].in_place ? held[i].source.data() : held[i].apart.data();
            messages[i].aad = held[i].aad.data();
            messages[i].tag = held[i].tag.data();
        }
        std::vector<std::uint32_t> results(items.size(), 77), order(items.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            order[i] = static_cast<std::uint32_t>(order.size() - 1 - i);
        cuda::AegisBatch batch{};
        batch.messages = messages.data();
        batch.order = order_by == told ? order.data() : nullptr;
        batch.keys = keys_.data();
        batch.results = results.data();
        batch.count = static_cast<std::uint32_t>(items.size());
        batch.key_count = key_count_;
        batch.tag_size = tag_size;
        if (order_by == by_size) {
            cuda::AegisOrdering ordering{};
            ordering.messages = messages.data();
            ordering.count = batch.count;
            ordering.step = F::kStep;
            ordering.together = F::kMessages;
            ordering.warps = F::kThreads / 32;
            const std::uint32_t turn = ordering.together * ordering.warps * blocks;
            ordering.turns = (batch.count + turn - 1) / turn;
            order.assign(ordering.turns * turn, 77);
            ordering.order = order.data();
            launch_blocks(blocks, cuda::shapes::aegis_order().threads,
                          [&] { cuda::aegis_order(ordering); });
            batch.order = order.data();
            batch.count = static_cast<std::uint32_t>(order.size());
            if (const std::string fault = fault_of(ordering, blocks, batch.count); !fault.empty())
                return fault;
        }
        launch_blocks(blocks, F::kThreads, [&] {
            if (opens)
                cuda::aegis_batch<F, true>(batch);
            else
                cuda::aegis_batch<F, false>(batch);
        });
        for (std::size_t i = 0; i < items.size(); ++i) {
            const Item& item = items[i];
            const auto say = [&](const std::string& what) {
                return what + ": message " + std::to_string(i) + " of " +
                       std::to_string(item.size) + " bytes, AAD of " +
                       std::to_string(item.aad_size) + ", in at " + std::to_string(item.in_at) +
                       (item.in_place ? ", in place" : ", out at " + std::to_string(item.out_at)) +
                       (is_forged(item) ? ", forged" : "") + (opens ? ", opened" : ", sealed") +
                       ", tag of " + std::to_string(tag_size);
            };
            const Code expected = is_forged(item) ? Code::authentication : Code::ok;
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

    Random random_{2024};

  private:
    // Each message comes once, and none of a block costs more than one that it takes before.
    static std::string fault_of(const cuda::AegisOrdering& ordering, std::uint32_t blocks,
                                std::uint32_t places) {
        std::vector<int> come(ordering.count);
        const std::uint32_t all = ordering.warps * blocks;
        const auto block_of = [&](std::uint32_t i) { return i / ordering.together % blocks; };
        for (std::uint32_t at = 0; at < places; ++at) {
            const std::uint32_t index = ordering.order[at], group = at / ordering.together;
            if (index == cuda::kNoMessage) continue;
            if (index >= ordering.count || come[index]++ != 0) return "an index twice, or none";
            const std::uint32_t turn = group / all, in_turn = group % all,
                                warp = turn % 2 == 0 ? in_turn : all - 1 - in_turn;
            if (block_of(index) != warp % blocks) return "in another block's share";
            for (std::uint32_t next = at / (all * ordering.together) * all * ordering.together +
                                      all * ordering.together;
                 next < places; ++next) {
                const std::uint32_t later = ordering.order[next];
                if (later == cuda::kNoMessage || block_of(later) != warp % blocks) continue;
                const auto bin = [&](std::uint32_t i) {
                    const Message& m = ordering.messages[i];
                    return cuda::aegis_bin(m.size, m.aad_size, ordering.step);
                };
                if (bin(later) > bin(index)) return "a longer one comes later";
            }
        }
        for (const int times : come)
            if (times != 1) return "one does not come";
        return {};
    }
    static bool is_forged(const Item& item) {
        return item.forged == Item::bad_tag || (item.forged == Item::bad_data && item.size) ||
               (item.forged == Item::bad_aad && item.aad_size);
    }
    const std::uint32_t key_count_;
    std::vector<Bytes> raw_;
    std::vector<cuda::GcmKey> keys_;
};

template <class F>
class AegisKernels : public testing::Test {};
using Forms = testing::Types<
    AegisForm<false, 1, 1, 32, true>, AegisForm<false, 2, 1, 32, true>, AegisForm<false, 2, 1, 32>,
    AegisForm<false, 4, 1, 32>, AegisForm<false, 8, 1, 32>, AegisForm<false, 1, 1, 64, false, 1>,
    AegisForm<false, 8, 1, 64, false, 1>, AegisForm<false, 2, 2, 32>, AegisForm<false, 8, 2, 32>,
    AegisForm<false, 1, 2, 32, false, 1>, AegisForm<false, 2, 4, 32>, AegisForm<false, 4, 4, 32>,
    AegisForm<false, 8, 4, 32>, AegisForm<false, 1, 4, 32, false, 1>,
    AegisForm<true, 1, 1, 32, true>, AegisForm<true, 1, 1, 32, false, 1>>;
TYPED_TEST_SUITE(AegisKernels, Forms);

// Beside each other in one warp, in any order.
TYPED_TEST(AegisKernels, SizesAlignmentsAndAad) {
    Subject<TypeParam> subject;
    for (const bool opens : {false, true})
        for (const std::uint32_t tag_size : {16u, 32u}) {
            std::vector<Item> items;
            for (std::size_t size = 0; size <= 66; ++size)
                items.push_back({.size = size,
                                 .aad_size = size * 7 % 75,
                                 .in_at = size % 16,
                                 .out_at = size * 5 % 16,
                                 .in_place = size % 4 == 3,
                                 .key = static_cast<std::uint32_t>(size % 3)});
            for (const std::size_t edge : {128, 256, 512, 1024, 1500})
                for (const int by : {-17, -1, 0, 1, 16, 31})
                    items.push_back({.size = edge + static_cast<std::size_t>(by),
                                     .aad_size = by < 0 ? 200u : 0u,
                                     .in_at = by == 1 ? 4u : 0u,
                                     .in_place = by == 16});
            using S = Subject<TypeParam>;
            ASSERT_EQ(
                subject.fault_of(items, tag_size, opens, 2, tag_size == 32 ? S::told : S::by_size),
                "");
        }
}

// All of them long enough for the fast loops, and at multiples of 16.
TYPED_TEST(AegisKernels, WholeBodiesSideBySide) {
    Subject<TypeParam> subject;
    for (const bool opens : {false, true}) {
        std::vector<Item> items;
        for (std::size_t i = 0; i < 41; ++i)
            items.push_back({.size = 3072 - 16 * i + i % 3,
                             .aad_size = i % 2 * 16,
                             .in_at = i % 3 * 16,
                             .out_at = i % 2 * 32,
                             .in_place = i % 5 == 4,
                             .key = static_cast<std::uint32_t>(i % 3)});
        ASSERT_EQ(subject.fault_of(items, 16, opens), "");
    }
}

// Every address of either side: lines are turned in shared memory, and ends are cut.
TYPED_TEST(AegisKernels, EveryAddress) {
    Subject<TypeParam> subject;
    for (const bool opens : {false, true}) {
        std::vector<Item> items;
        for (std::size_t in = 0; in < 16; ++in)
            for (const std::size_t out : {std::size_t{0}, std::size_t{1}, 15 - in, in})
                items.push_back({.size = (in * 16 + out) * 3 % 310,
                                 .aad_size = in,
                                 .in_at = in,
                                 .out_at = out,
                                 .in_place = out == in && in % 2 != 0,
                                 .forged = opens && in % 5 == 2 ? Item::bad_tag : Item::good});
        for (const std::size_t size : {255, 256, 257, 263, 271, 384})
            items.push_back({.size = size, .in_at = 9, .out_at = size % 16});
        ASSERT_EQ(subject.fault_of(items, 16, opens, 2, Subject<TypeParam>::by_size), "");
    }
}

TYPED_TEST(AegisKernels, WhatIsForgedIsWipedOrRestored) {
    Subject<TypeParam> subject;
    for (const bool all : {false, true}) {
        std::vector<Item> items;
        for (std::size_t i = 0; i < 41; ++i)
            items.push_back({.size = i % 4 == 3 ? i : 1100 + i * 9,
                             .aad_size = i % 3 * 9,
                             .in_at = i % 6 == 5 ? 3u : 0u,
                             .out_at = i % 7 == 6 ? 5u : 16u,
                             .in_place = i % 3 == 1,
                             .forged = all || i % 2 ? static_cast<decltype(Item::forged)>(1 + i % 3)
                                                    : Item::good});
        ASSERT_EQ(subject.fault_of(items, all ? 32 : 16, true), "");
    }
}

// Every lane looks up what it needs in its own bank of shared memory, whatever key and data are
// (SIDE-CHANNELS.md): with all other banks empty the outcome is the same, with its own it is not.
TEST(AegisBanks, LanesStayInTheirOwn) {
    using Lines = AegisForm<false, 1, 1, 32, true>;
    using Blocks = AegisForm<false, 8, 4, 32>;
    const auto faults = [](auto subject, unsigned by) {
        const OwnBanks only(cuda::table_image + cuda::kAegisTables, 4 * cuda::shapes::kTable, by);
        return subject.fault_of({{.size = 300, .aad_size = 5}, {.size = 1100}}, 16, false);
    };
    EXPECT_EQ(faults(Subject<Lines>(), 0), "");
    EXPECT_EQ(faults(Subject<Blocks>(), 0), "");
    EXPECT_NE(faults(Subject<Lines>(), 1), "");
    EXPECT_NE(faults(Subject<Blocks>(), 1), "");
}

TEST(AegisOrder, BinsGrowWithWhatMessagesCost) {
    std::uint32_t last = 0;
    for (std::uint64_t size = 0; size < std::uint64_t{1} << 61; size += 1 + size / 64) {
        const std::uint32_t bin = cuda::aegis_bin(size, size / 3, 32);
        EXPECT_GE(bin, last);
        last = bin;
    }
    EXPECT_LT(cuda::aegis_bin(~std::uint64_t{0}, ~std::uint64_t{0}, 16), cuda::AegisBins::kBins);
    EXPECT_GE(cuda::aegis_bin(~std::uint64_t{0}, ~std::uint64_t{0}, 32), last);
    EXPECT_NE(cuda::aegis_bin(1024, 0, 32), cuda::aegis_bin(1056, 0, 32));
    EXPECT_EQ(cuda::aegis_bin(64, 64, 32), cuda::aegis_bin(128, 0, 32));
}

// A list that travels as a parameter, with its AAD or without.
TEST(AegisFew, TheListAndItsAadTravel) {
    using Form = AegisForm<false, 8, 1, 64, false, 1>;
    Random random(5);
    std::vector<cuda::GcmKey> keys(1);
    const Bytes key = random.bytes(16);
    std::memcpy(keys[0].encrypt.w, key.data(), 16);
    keys[0].rounds = 10;
    for (const bool travels : {false, true}) {
        cuda::AegisLaunch launch{};
        std::vector<Bytes> in, out, tags, aads, nonces;
        std::size_t aad_at = 0;
        std::uint32_t results[5] = {77, 77, 77, 77, 77};
        for (std::size_t i = 0; i < 5; ++i) {
            in.push_back(random.bytes(i * 200));
            out.push_back(Bytes(i * 200 + 1));
            tags.push_back(Bytes(16));
            aads.push_back(random.bytes(i * 9));
            nonces.push_back(random.bytes(16));
        }
        for (std::size_t i = 0; i < 5; ++i) {
            Message& m = launch.messages[i];
            m.in = in[i].data();
            m.out = out[i].data();
            m.size = in[i].size();
            m.tag = tags[i].data();
            m.aad_size = aads[i].size();
            m.aad = travels ? reinterpret_cast<const std::uint8_t*>(aad_at) : aads[i].data();
            std::memcpy(&m.start, nonces[i].data(), 16);
            if (travels)
                std::ranges::copy(aads[i], reinterpret_cast<std::uint8_t*>(launch.aad) + aad_at);
            aad_at += aads[i].size();
        }
        unsigned long long ended = 0;
        launch.aad_words = travels ? static_cast<std::uint32_t>((aad_at + 3) / 4) : 0;
        launch.batch.keys = keys.data();
        launch.batch.results = results;
        launch.batch.ended = &ended;
        launch.batch.count = 5;
        launch.batch.key_count = 1;
        launch.batch.tag_size = 16;
        launch_blocks(2, Form::kThreads, [&] { cuda::aegis_few<Form, false>(launch); });
        EXPECT_EQ(ended, 2u);  // blocks
        for (std::size_t i = 0; i < 5; ++i) {
            const auto sealed = plain::aegis_seal(1, key, nonces[i], aads[i], in[i], 16);
            out[i].pop_back();
            EXPECT_EQ(results[i], 0u);
            EXPECT_EQ(out[i], sealed.out) << i;
            EXPECT_EQ(tags[i], sealed.tag) << i;
        }
    }
}

// Plain AEGIS itself, by test vectors of RFC 10032 (Appendix A): AEGIS-128L 1 and 4, AEGIS-256 1,
// AEGIS-128X2 1, AEGIS-128X4 1.
TEST(PlainAegis, GivesTheVectors) {
    struct Vector {
        std::size_t degree;
        const char *key, *nonce, *aad, *in, *out, *tag16;
    };
    const char *k1 = "10010000000000000000000000000000", *n1 = "10000200000000000000000000000000",
               *k2 = "000102030405060708090a0b0c0d0e0f", *n2 = "101112131415161718191a1b1c1d1e1f",
               *z = "00000000000000000000000000000000";
    const std::string zeros(32, '0'), k256 = k1 + zeros, n256 = n1 + zeros;
    for (const Vector& v :
         {Vector{1, k1, n1, "", z, "c1c0e58bd913006feba00f4b3cc3594e",
                 "abe0ece80c24868a226a35d16bdae37a"},
          Vector{1, k1, n1, "0001020304050607", "000102030405060708090a0b0c0d",
                 "79d94593d8c2119d7e8fd9b8fc77", "5c04b3dba849b2701effbe32c7f0fab7"},
          Vector{0, k256.c_str(), n256.c_str(), "", z, "754fc3d8c973246dcc6d741412a4b236",
                 "3fe91994768b332ed7f570a19ec5896e"},
          Vector{2, k2, n2, "", "", "", "63117dc57756e402819a82e13eca8379"},
          Vector{4, k2, n2, "", "", "", "5bef762d0947c00455b97bb3af30dfa3"}}) {
        const auto sealed = plain::aegis_seal(v.degree, from_hex(v.key), from_hex(v.nonce),
                                              from_hex(v.aad), from_hex(v.in), 16);
        EXPECT_EQ(sealed.out, from_hex(v.out)) << v.degree;
        EXPECT_EQ(sealed.tag, from_hex(v.tag16)) << v.degree;
    }
}

}  // namespace
}  // namespace dael::test
