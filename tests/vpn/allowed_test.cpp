// SPDX-License-Identifier: Apache-2.0
// Whose an address is, against a list that is searched from end to end.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "vpn/allowed.hpp"

namespace dael::vpn {
namespace {

path::Prefix prefix(const char* text) {
    return *path::Prefix::parse(text);
}

path::Address address(const char* text) {
    return *path::Address::parse(text);
}

TEST(Allowed, TheLongestPrefixHasIt) {
    Allowed allowed;
    EXPECT_EQ(allowed.find(address("10.0.0.1")), Allowed::kNobody);
    EXPECT_TRUE(allowed.add(prefix("0.0.0.0/0"), 0));
    EXPECT_TRUE(allowed.add(prefix("10.0.0.0/8"), 1));
    EXPECT_TRUE(allowed.add(prefix("10.1.0.0/16"), 2));
    EXPECT_TRUE(allowed.add(prefix("10.1.2.3"), 3));
    EXPECT_TRUE(allowed.add(prefix("2001:db8::/32"), 4));
    EXPECT_TRUE(allowed.add(prefix("2001:db8::1"), 5));
    EXPECT_EQ(allowed.find(address("9.9.9.9")), 0u);
    EXPECT_EQ(allowed.find(address("10.9.9.9")), 1u);
    EXPECT_EQ(allowed.find(address("10.1.9.9")), 2u);
    EXPECT_EQ(allowed.find(address("10.1.2.3")), 3u);
    EXPECT_EQ(allowed.find(address("10.1.2.2")), 2u);
    EXPECT_EQ(allowed.find(address("2001:db8::2")), 4u);
    EXPECT_EQ(allowed.find(address("2001:db8::1")), 5u);
    EXPECT_EQ(allowed.find(address("2001:db9::1")), Allowed::kNobody);
}

TEST(Allowed, NobodyTakesAnothersPrefix) {
    Allowed allowed;
    EXPECT_TRUE(allowed.add(prefix("10.0.0.0/24"), 0));
    EXPECT_FALSE(allowed.add(prefix("10.0.0.0/24"), 1));
    EXPECT_FALSE(allowed.add(prefix("10.0.0.77/24"), 1)) << "bits behind it do not matter";
    EXPECT_TRUE(allowed.add(prefix("10.0.0.0/25"), 1));
    EXPECT_EQ(allowed.find(address("10.0.0.200")), 0u);
    EXPECT_EQ(allowed.find(address("10.0.0.100")), 1u);
}

TEST(Allowed, IsWhatASearchOfAllFinds) {
    std::mt19937 random(1);
    for (int round = 0; round < 60; ++round) {
        Allowed allowed;
        std::map<std::pair<std::array<std::uint8_t, 16>, int>, std::uint32_t> list[2];
        // Few bits differ, so that prefixes lie in each other.
        const auto some = [&](bool six) {
            path::Address one;
            one.family = six ? 6 : 4;
            for (std::size_t i = 0; i < (six ? 16u : 4u); ++i)
                one.bytes[i] = random() % 3 == 0 ? static_cast<std::uint8_t>(random()) : 0xa0;
            return one;
        };
        for (std::uint32_t peer = 0; peer < 80; ++peer) {
            const bool six = random() % 2 != 0;
            path::Prefix one;
            one.address = some(six);
            one.length = static_cast<std::uint8_t>(random() % (six ? 129 : 33));
            const path::Prefix masked = one.masked();
            const bool fresh =
                list[six].try_emplace({masked.address.bytes, one.length}, peer).second;
            ASSERT_EQ(allowed.add(one, peer), fresh);
        }
        for (int i = 0; i < 400; ++i) {
            const bool six = random() % 2 != 0;
            const path::Address one = some(six);
            std::uint32_t expected = Allowed::kNobody;
            int longest = -1;
            for (const auto& [key, peer] : list[six]) {
                path::Prefix candidate;
                candidate.address.family = one.family;
                candidate.address.bytes = key.first;
                candidate.length = static_cast<std::uint8_t>(key.second);
                if (key.second > longest && candidate.holds(one)) {
                    longest = key.second;
                    expected = peer;
                }
            }
            ASSERT_EQ(allowed.find(one), expected) << one.text();
        }
    }
}

}  // namespace
}  // namespace dael::vpn
