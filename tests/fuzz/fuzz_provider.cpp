// SPDX-License-Identifier: Apache-2.0
// The OpenSSL provider through EVP: calls and controls in any order, beside the default provider
// (tests/provider/evp_walk.hpp).
#include <array>

#include "fuzz/fuzz.hpp"
#include "provider/evp_walk.hpp"

namespace {

struct Choices {
    FuzzedDataProvider& data;
    std::size_t below(std::size_t n) { return data.ConsumeIntegralInRange<std::size_t>(0, n - 1); }
};
constexpr std::array<const char*, 8> kCiphers{"AES-128-GCM", "AES-256-GCM", "AES-128-CBC",
                                              "AES-256-CBC", "AES-192-ECB", "AES-128-CFB",
                                              "AES-256-CTR", "AES-192-GCM"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    Choices choices{data};
    dael::test::prepare();
    dael::test::Walk<Choices> walk(choices, kCiphers[choices.below(kCiphers.size())]);
    const std::string fault = walk.run(64, [&] { return data.remaining_bytes() != 0; });
    dael::fuzz::require(fault.empty(), fault);
    return 0;
}
