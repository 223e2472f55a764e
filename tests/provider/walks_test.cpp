// SPDX-License-Identifier: Apache-2.0
// Random walks over every cipher that has state of ours: evp_walk.hpp. The fuzz target
// tests/fuzz/fuzz_provider.cpp walks the same way.
#include "support/walks.hpp"
#include "evp.hpp"
#include "evp_walk.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael::test;

constexpr const char* kCiphers[] = {"AES-128-ECB", "AES-192-ECB", "AES-256-ECB", "AES-128-CBC",
                                    "AES-192-CBC", "AES-256-CBC", "AES-128-CFB", "AES-192-CFB",
                                    "AES-256-CFB", "AES-128-CTR", "AES-192-CTR", "AES-256-CTR",
                                    "AES-128-GCM", "AES-192-GCM", "AES-256-GCM"};

class ProviderWalks : public ::testing::TestWithParam<const char*> {};
std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
    std::string name = info.param;
    std::erase(name, '-');
    return name;
}
INSTANTIATE_TEST_SUITE_P(All, ProviderWalks, ::testing::ValuesIn(kCiphers), name_of);

TEST_P(ProviderWalks, AreTheDefaultProviders) {
    ASSERT_TRUE(ours().daelstrom);
    for (Walks walks(GetParam(), thorough<std::uint64_t>(400, 120));
         walks.next() && !HasFailure();) {
        Numbers numbers(walks.seed());
        Walk<Numbers> walk(numbers, GetParam());
        const std::string fault = walk.run(24, [&walks] {
            walks.step();
            return true;
        });
        EXPECT_TRUE(fault.empty()) << walks.text() << "\n" << fault;
    }
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

}  // namespace
