// SPDX-License-Identifier: Apache-2.0
// What calls on sealed data with little memory begin with: an engine, keys, and something sealed.
#pragma once

#include <daelstrom/daelstrom_sealed.h>

#include "capi/little_memory.hpp"
#include "support/bytes.hpp"

namespace dael::test {

class LittleMemorySealed : public testing::Test {
  protected:
    void SetUp() override {
        if (!kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
        const dael_engine_options options = little_engine("openssl", 2);
        ASSERT_EQ(dael_engine_open(&options, &engine_), DAEL_OK);
        ASSERT_EQ(dael_sealed_keys_import(raw_.data(), 32, 1024, &keys_), DAEL_OK);
        std::uint64_t size = 0;
        ASSERT_EQ(dael_sealed_size(keys_, plain_.size(), &size), DAEL_OK);
        sealed_.resize(size);
        ASSERT_EQ(dael_sealed_seal(engine_, keys_, nullptr, 0, plain_.data(), plain_.size(),
                                   sealed_.data(), size, nullptr),
                  DAEL_OK);
    }
    void TearDown() override {
        dael_sealed_keys_free(keys_);
        dael_engine_close(engine_);
    }

    const Bytes raw_ = pattern(64), plain_ = pattern(10'000);
    Bytes sealed_;
    dael_engine* engine_ = nullptr;
    dael_sealed_keys* keys_ = nullptr;
};

}  // namespace dael::test
