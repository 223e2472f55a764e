// SPDX-License-Identifier: Apache-2.0
// The time of the provider's own code for short messages must not depend on keys or data. The
// controls are reference_timing_test's.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "timing/timed.hpp"
#include "vector_gcm.hpp"

namespace {

using namespace dael::provider;
using namespace dael::timing;

constexpr std::size_t kWhole = 256, kUneven = 250;
constexpr unsigned char kIv[kBlock] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 1};

struct Bytes {
    alignas(64) std::array<unsigned char, kWhole> at{};
    void fill(const Input& with) noexcept {
        for (std::size_t i = 0; i < at.size(); i += with.size())
            std::memcpy(at.data() + i, with.data(), with.size());
    }
};

class ProviderTiming : public testing::Test {
  protected:
    void SetUp() override {
        if (!vector_units()) GTEST_SKIP() << "needs AVX-512 and VAES";
    }
    Bytes in_, out_;
};

TEST_F(ProviderTiming, KeysAreExpandedInOneTime) {
    static Schedule schedule;
    for (const std::size_t size : {std::size_t{16}, std::size_t{24}, std::size_t{32}})
        expect_constant_time("expanding a key", [&](const Input& key) {
            expand(schedule, key.data(), size, true);
            keep(schedule);
        });
}

TEST_F(ProviderTiming, ModesDoNotDependOnKeyOrData) {
    static Schedule schedule;
    const Input key = random_input();
    for (const Kind kind : {Kind::ecb, Kind::cbc, Kind::cfb, Kind::ctr})
        for (const bool encrypts : {true, false}) {
            const Code code = code_for(kind, encrypts, 10);
            const auto run = [&](std::size_t size) {
                unsigned char iv[kBlock];
                std::memcpy(iv, kIv, sizeof iv);
                code(schedule.keys, iv, in_.at.data(), out_.at.data(), size);
                keep(out_);
            };
            for (const std::size_t size : {kBlock, kWhole}) {
                expand(schedule, key.data(), 16, wants_inverse(kind, encrypts));
                expect_constant_time("a mode", [&](const Input& data) {
                    in_.fill(data);
                    run(size);
                });
            }
            expect_constant_time("a mode with its key", [&](const Input& bytes) {
                expand(schedule, bytes.data(), 16, wants_inverse(kind, encrypts));
                run(kWhole);
            });
        }
}

TEST_F(ProviderTiming, GcmDoesNotDependOnKeyOrData) {
    static VectorGcmKey key;
    static VectorGcm message;
    unsigned char tag[kBlock];
    const auto run = [&](bool encrypts, std::size_t size) {
        message.begin(kIv);
        message.aad(key, kIv, 13);
        keep(message.crypt(key, encrypts, in_.at.data(), out_.at.data(), size));
        message.tag(key, tag);
        keep(out_);
        keep(tag);
    };
    const Input its_key = random_input();
    for (const bool encrypts : {true, false}) {
        key.set(its_key.data(), 16);
        for (const std::size_t size : {kBlock, kUneven})
            expect_constant_time("GCM", [&](const Input& data) {
                in_.fill(data);
                run(encrypts, size);
            });
        expect_constant_time("GCM with its key", [&](const Input& bytes) {
            key.set(bytes.data(), 16);
            run(encrypts, kUneven);
        });
    }
}

}  // namespace
