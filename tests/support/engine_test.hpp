// SPDX-License-Identifier: Apache-2.0
// A fixture for tests of what an engine has beyond messages: one on each target that is an engine,
// the device made of threads among them.
#pragma once

#include <optional>

#include "support/host_device.hpp"
#include "support/subject.hpp"

namespace dael::test {

std::vector<Target> engine_targets(Target::Family family);
// With the target's backend, form, threads and chunk; "threads" is the device made of them.
Result<Engine> open_engine(const Target& target, HostDevice& threads);

class EngineTest : public ::testing::TestWithParam<Target> {
  protected:
    void SetUp() override;
    void TearDown() override {
        engine_.reset();
        expect_clean(device_);
    }
    Engine& engine() { return *engine_; }
    bool slow() const { return GetParam().slow; }

    HostDevice device_;
    std::optional<Engine> engine_;
};

#define DAEL_FOR_EVERY_ENGINE_OF(suite, family)                                                  \
    INSTANTIATE_TEST_SUITE_P(                                                                    \
        family, suite,                                                                           \
        ::testing::ValuesIn(::dael::test::engine_targets(::dael::test::Target::Family::family)), \
        ::dael::test::target_name)
#define DAEL_FOR_EVERY_ENGINE(suite)                      \
    GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); \
    DAEL_FOR_EVERY_ENGINE_OF(suite, Host);                \
    DAEL_FOR_EVERY_ENGINE_OF(suite, Gpu);                 \
    DAEL_FOR_EVERY_ENGINE_OF(suite, OpenCl);              \
    DAEL_FOR_EVERY_ENGINE_OF(suite, OpenGl)

}  // namespace dael::test
