// SPDX-License-Identifier: Apache-2.0
// The main() of every test program. CTest has one entry for many cases, and shows it as skipped
// when all of them were, or when the program has none of the kind that the entry asks for.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    if (argc > 1) {  // a misspelt filter must not pass for all of the tests
        std::fprintf(stderr, "GoogleTest knows no option '%s'; --help lists them\n", argv[1]);
        return 2;
    }
    const int failed = RUN_ALL_TESTS();
    if (failed != 0) return failed;
    constexpr int kSkipped = 77;  // as tests/CMakeLists.txt says
    const auto& all = *::testing::UnitTest::GetInstance();
    return all.skipped_test_count() == all.test_to_run_count() ? kSkipped : 0;
}
