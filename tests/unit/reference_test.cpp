// SPDX-License-Identifier: Apache-2.0
// The reference against FIPS 197: every intermediate value of its appendices, by name and round;
// and the modes against SP 800-38A's meaning where a property says more than a vector.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/reference/aes.hpp"
#include "core/registry.hpp"
#include "modes/counter.hpp"

namespace {

using namespace dael;
using nlohmann::json;

std::string hex(std::span<const std::uint8_t> bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : bytes) text += {kDigits[byte >> 4], kDigits[byte & 15]};
    return text;
}

std::vector<std::uint8_t> bytes(const json& text) {
    const auto& digits = text.get_ref<const std::string&>();
    std::vector<std::uint8_t> out;
    for (std::size_t i = 0; i < digits.size(); i += 2)
        out.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
    return out;
}

Block block(const json& text) {
    Block out{};
    const auto value = bytes(text);
    EXPECT_EQ(value.size(), out.size());
    std::ranges::copy(value, out.begin());
    return out;
}

const json& fips197() {
    static const json vectors = json::parse(std::ifstream(DAEL_TEST_DATA "/fips197.json"));
    return vectors;
}

TEST(Reference, KeyExpansionMatchesAppendixA) {
    ASSERT_EQ(fips197()["key_expansion"].size(), 3u);
    for (const json& example : fips197()["key_expansion"]) {
        const reference::ExpandedKey w(bytes(example["key"]));
        ASSERT_EQ(example["w"].size(), 4u * static_cast<unsigned>(w.rounds() + 1));
        for (std::size_t i = 0; i < example["w"].size(); ++i)
            EXPECT_EQ(hex(std::span(w.round_key(static_cast<int>(i / 4))).subspan(4 * (i % 4), 4)),
                      example["w"][i].get<std::string>())
                << example["appendix"] << " w[" << i << "]";
    }
}

// Collects what the observer sees in the shape of the vector file.
json trace(Block (*function)(const Block&, const reference::ExpandedKey&,
                             const reference::Observer&),
           const Block& in, const reference::ExpandedKey& w) {
    json seen = json::array();
    function(in, w, [&seen](int round, std::string_view value, const reference::State& state) {
        seen.push_back({{"round", round}, {"name", std::string(value)}, {"value", hex(state)}});
    });
    return seen;
}

void expect_same_steps(const json& seen, const json& expected, const std::string& where) {
    ASSERT_EQ(seen.size(), expected.size()) << where;
    for (std::size_t i = 0; i < seen.size(); ++i)
        EXPECT_EQ(seen[i], expected[i]) << where << ", step " << i;
}

TEST(Reference, EveryIntermediateValueMatchesAppendicesBAndC) {
    ASSERT_EQ(fips197()["ciphers"].size(), 4u);
    for (const json& example : fips197()["ciphers"]) {
        const std::string appendix = example["appendix"];
        const reference::ExpandedKey w(bytes(example["key"]));
        const Block plaintext = block(example["plaintext"]),
                    ciphertext = block(example["ciphertext"]);
        expect_same_steps(trace(reference::cipher, plaintext, w), example["cipher"], appendix);
        expect_same_steps(trace(reference::inv_cipher, ciphertext, w), example["inverse_cipher"],
                          appendix + " inverse");
        EXPECT_EQ(reference::cipher(plaintext, w), ciphertext) << appendix;
        EXPECT_EQ(reference::inv_cipher(ciphertext, w), plaintext) << appendix;
    }
}

TEST(Reference, InverseTransformationsUndoTheirOwn) {
    using Transformation = void (*)(reference::State&) noexcept;
    const std::pair<Transformation, Transformation> pairs[] = {
        {reference::sub_bytes, reference::inv_sub_bytes},
        {reference::shift_rows, reference::inv_shift_rows},
        {reference::mix_columns, reference::inv_mix_columns}};
    for (const auto& [forward, inverse] : pairs) {
        for (unsigned first = 0; first < 256; ++first) {
            reference::State state;
            for (std::size_t i = 0; i < state.size(); ++i)
                state[i] = static_cast<std::uint8_t>(first + 17 * i);
            const reference::State before = state;
            forward(state);
            EXPECT_NE(state, before);
            inverse(state);
            EXPECT_EQ(state, before);
        }
    }
}

std::unique_ptr<core::Backend> open_reference() {
    auto backend = core::open_backend("reference");
    EXPECT_TRUE(backend) << backend.error().message;
    return std::move(*backend);
}

Key test_key(std::size_t size) {
    std::vector<std::uint8_t> key(size);
    for (std::size_t i = 0; i < size; ++i) key[i] = static_cast<std::uint8_t>(i);
    return std::move(*Key::import(key));
}

// Each keystream block must be the cipher of its own counter, across a carry through every byte.
TEST(Reference, CtrCountsOver128BitsAndSkips) {
    const auto backend = open_reference();
    const Key key = test_key(16);
    std::vector<std::uint8_t> raw(16);
    for (std::size_t i = 0; i < 16; ++i) raw[i] = static_cast<std::uint8_t>(i);
    const reference::ExpandedKey w(raw);
    Block counter;
    counter.fill(0xff);
    std::vector<std::uint8_t> expected;
    for (std::uint64_t i = 0; i < 4; ++i) {
        const Block keystream = reference::cipher(modes::counter_add(counter, i), w);
        expected.insert(expected.end(), keystream.begin(), keystream.end());
    }
    for (std::uint8_t skip = 0; skip < 16; ++skip) {
        std::vector<std::uint8_t> data(expected.size() - skip);
        const Message message{.in = data.data(),
                              .out = data.data(),
                              .size = data.size(),
                              .start = counter,
                              .skip = skip};
        ASSERT_TRUE(backend->run({Mode::ctr, Direction::encrypt}, {std::span(&key, 1)},
                                 std::span(&message, 1), {}));
        EXPECT_EQ(hex(data), hex(std::span(expected).subspan(skip))) << int{skip};
    }
}

}  // namespace
