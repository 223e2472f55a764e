// SPDX-License-Identifier: Apache-2.0
// OpenSSL twice in one program (evp_sides.hpp), for tests.
#pragma once

#include <gtest/gtest.h>

#include "evp_sides.hpp"

namespace dael::test {

inline std::uint64_t counter(const char* name) {
    std::uint64_t value = 0;
    OSSL_PARAM asked[] = {OSSL_PARAM_construct_uint64(name, &value), OSSL_PARAM_construct_end()};
    EXPECT_EQ(OSSL_PROVIDER_get_params(ours().daelstrom, asked), 1);
    return value;
}

}  // namespace dael::test
