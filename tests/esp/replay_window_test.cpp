// SPDX-License-Identifier: Apache-2.0
// The anti-replay window and the look-up of SPIs, against simple models of both.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "esp/replay_window.hpp"
#include "esp/spi_table.hpp"
#include "support/bytes.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using esp::ReplayWindow;
using esp::Verdict;
using test::Random;

constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;

// RFC 4303 3.4.3 in so many words: every number that has come, and how far back one may lie.
struct Model {
    std::uint64_t size;
    std::set<std::uint64_t> seen;
    std::uint64_t top = 0;

    Verdict check(std::uint64_t number) const {
        if (top >= size && number <= top - size) return Verdict::too_old;
        return seen.contains(number) ? Verdict::replayed : Verdict::ok;
    }
    void mark(std::uint64_t number) {
        seen.insert(number);
        top = std::max(top, number);
    }
};

TEST(ReplayWindow, IsTheSimpleModel) {
    Random random(1);
    for (const std::uint32_t size : {32u, 33u, 63u, 64u, 65u, 100u, 128u, 1000u, 1024u, 4096u})
        for (const std::uint64_t from :
             {std::uint64_t{1}, kHalf - 3000, ~std::uint64_t{0} - 90000}) {
            ReplayWindow window(size);
            Model model{size, {}};
            std::uint64_t near = from;
            for (int i = 0; i < test::thorough(6000, 1500); ++i) {
                std::uint64_t number = near;
                switch (random.below(8)) {
                    case 0:  // far ahead, past every word
                        near += random.below(3 * size);
                        number = near;
                        break;
                    case 1:
                    case 2:  // late, around the window's end
                        number = near - std::min<std::uint64_t>(random.below(size + 70), near - 1);
                        break;
                    case 3:  // again
                        number = model.top == 0 ? 1 : model.top;
                        break;
                    default:
                        number = ++near;
                }
                const Verdict verdict = window.check(number);
                ASSERT_EQ(verdict, model.check(number))
                    << "window of " << size << ", " << number << " with " << model.top << " on top";
                // As when its packet does not authenticate, now and then.
                if (verdict != Verdict::ok || random.below(10) == 0) continue;
                window.mark(number);
                model.mark(number);
                ASSERT_EQ(window.top(), model.top);
            }
        }
}

TEST(ReplayWindow, EveryPlaceOfAWindowCountsOnce) {
    for (const std::uint32_t size : {32u, 64u, 100u, 200u}) {
        ReplayWindow window(size);
        const std::uint64_t top = 5 * size;
        window.mark(top);
        for (std::uint64_t number = top; number + size > top; --number) {
            ASSERT_EQ(window.check(number), number == top ? Verdict::replayed : Verdict::ok);
            window.mark(number);
            ASSERT_EQ(window.check(number), Verdict::replayed);
        }
        EXPECT_EQ(window.check(top - size), Verdict::too_old);
    }
}

TEST(ReplayWindow, NoneTakesEverything) {
    ReplayWindow window(0);
    for (const std::uint64_t number : {5u, 5u, 1u, 100000u, 5u}) {
        EXPECT_EQ(window.check(number), Verdict::ok);
        window.mark(number);
    }
}

// Appendix A2 says it by cases. By its purpose: of all numbers that end in `low`, the one within
// [top - size + 1, top - size + 2^32].
TEST(ReplayWindow, TellsTheUpperHalf) {
    Random random(2);
    for (const std::uint32_t size : {32u, 64u, 1024u, 1u << 20})
        for (const std::uint64_t top :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{5000}, kHalf - 1,
              kHalf, kHalf + 1, kHalf + 31, kHalf + 1023, kHalf + (1u << 20), 7 * kHalf - 5,
              7 * kHalf + 5, ~std::uint64_t{0} - 5000, ~std::uint64_t{0}}) {
            ReplayWindow window(size);
            if (top != 0) window.mark(top);
            for (int i = 0; i < 400; ++i) {
                const auto low = static_cast<std::uint32_t>(
                    i % 2 ? random.number() : top - size + 1 - 200 + random.below(size + 400));
                using Wide = __int128;
                const Wide bottom = Wide{top} - size + 1;
                Wide number = (bottom >> 32 << 32) + low;
                if (number < bottom) number += kHalf;
                const auto whole = window.whole(low, true);
                if (number < 0 || number > ~std::uint64_t{0}) {
                    EXPECT_FALSE(whole) << size << ", " << top << ", " << low;
                } else {
                    ASSERT_TRUE(whole) << size << ", " << top << ", " << low;
                    EXPECT_EQ(*whole, static_cast<std::uint64_t>(number)) << size << ", " << top;
                }
                EXPECT_EQ(window.whole(low, false), low);
            }
        }
}

TEST(SpiTable, IsAMap) {
    Random random(3);
    esp::SpiTable<int> table;
    std::map<std::uint32_t, int> model;
    for (int i = 0; i < test::thorough(60000, 10000); ++i) {
        // Few values of which many collide, and numbers in a row.
        const auto spi =
            static_cast<std::uint32_t>(256 + random.below(3000) * (random.below(2) ? 1 : 65536));
        const auto there = model.find(spi);
        const int* const found = table.find(spi);
        ASSERT_EQ(found != nullptr, there != model.end());
        if (found) {
            ASSERT_EQ(*found, there->second);
            if (random.below(2) == 0) continue;
            const auto removed = table.remove(spi);
            ASSERT_TRUE(removed && *removed == there->second);
            model.erase(there);
        } else if (i % 20000 < 14000) {  // it fills, and empties again
            table.insert(spi, std::make_unique<int>(i));
            model[spi] = i;
        } else {
            ASSERT_FALSE(table.remove(spi));
        }
        ASSERT_EQ(table.size(), model.size());
    }
}

}  // namespace
