// SPDX-License-Identifier: Apache-2.0
// The arithmetic of sealed streams: daelstrom/sealed_chunks.hpp's Layout.
#include "formats/layout.hpp"

#include "formats/keysets.hpp"

namespace dael::test {
namespace {

using sealed::Chunk;
using sealed::Layout;

constexpr Layout kSmall{64, 24};
constexpr std::uint64_t kMax = std::uint64_t{1} << 32;

TEST(Layout, AtMostTwoToThe32Segments) {
    const Layout layout{4096, 40};
    const std::uint64_t most = kMax * 4080 - 40;
    EXPECT_EQ(must(layout.sealed_size(most)), std::uint64_t{1} << 44);
    EXPECT_EQ(layout.sealed_size(most + 1).code(), Code::limit);
    EXPECT_EQ(layout.sealed_size(~std::uint64_t{0}).code(), Code::limit);
    EXPECT_EQ(must(layout.plain_size(std::uint64_t{1} << 44)), most);
    EXPECT_EQ(layout.plain_size((std::uint64_t{1} << 44) + 1).code(), Code::limit);
    EXPECT_EQ(layout.plain_size(~std::uint64_t{0}).code(), Code::limit);
    EXPECT_EQ(must(layout.of_plain(kMax - 1, 4080, true)).count, 1u);
    EXPECT_EQ(must(layout.of_plain(kMax - 1, 4080, false)).count, 1u);
    for (const bool last : {false, true}) {
        EXPECT_EQ(layout.of_plain(kMax - 1, 2 * 4080, last).code(), Code::limit);
        EXPECT_EQ(layout.of_plain(kMax, 4080, last).code(), Code::limit);
        EXPECT_EQ(layout.of_plain(~std::uint64_t{0}, 4080, last).code(), Code::limit);
        EXPECT_EQ(layout.of_plain(0, ~std::uint64_t{0}, last).code(), Code::limit);
        EXPECT_EQ(layout.of_sealed(kMax - 1, 2 * 4096, last).code(), Code::limit);
        EXPECT_EQ(layout.of_sealed(kMax, 4096, last).code(), Code::limit);
        EXPECT_EQ(layout.of_sealed(0, ~std::uint64_t{0}, last).code(), Code::limit);
    }
    EXPECT_EQ(layout.of_plain(kMax - 1, 4081, true).code(), Code::limit);
    EXPECT_EQ(layout.covering({0, 1}, most + 1).code(), Code::limit);
    EXPECT_TRUE(must(layout.covering({most - 1, 1}, most)).last);
}

TEST(Layout, SizesThereAndBack) {
    for (const Layout layout : {kSmall, Layout{57, 40}, Layout{4096, 40}})
        for (std::uint64_t plain = 0; plain < 3 * layout.segment; ++plain) {
            const auto sealed = must(layout.sealed_size(plain));
            EXPECT_EQ(must(layout.plain_size(sealed)), plain);
            const std::uint64_t i = layout.segment_of(plain);
            EXPECT_LE(layout.plain_at(i), plain);
            EXPECT_GT(layout.plain_at(i) + layout.room(i), plain);
        }
}

void expect_same(const Chunk& a, const Chunk& b) {
    EXPECT_EQ(a.first, b.first);
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.plain.at, b.plain.at);
    EXPECT_EQ(a.plain.size, b.plain.size);
    EXPECT_EQ(a.sealed.at, b.sealed.at);
    EXPECT_EQ(a.sealed.size, b.sealed.size);
    EXPECT_EQ(a.last, b.last);
}

// However a chunk is asked for, it is the same one, and its places hold just its plaintext.
TEST(Layout, ChunksOfEveryRange) {
    for (const std::uint64_t size : {0u, 1u, 23u, 24u, 25u, 72u, 73u, 168u}) {
        const std::uint64_t sealed = must(kSmall.sealed_size(size));
        for (std::uint64_t from = 0; from <= size; ++from)
            for (std::uint64_t to = from; to <= size; ++to) {
                SCOPED_TRACE(testing::Message() << from << " to " << to << " of " << size);
                const Chunk chunk = must(kSmall.covering({from, to - from}, size));
                EXPECT_GE(chunk.count, 1u);
                EXPECT_LE(chunk.plain.at, from);
                EXPECT_GE(chunk.plain.at + chunk.plain.size, to);
                EXPECT_EQ(chunk.last, chunk.sealed.at + chunk.sealed.size == sealed);
                EXPECT_TRUE(chunk.last || to != size);
                // No segment too many.
                if (from < to && chunk.count > 1) {
                    EXPECT_LT(from, kSmall.plain_at(chunk.first + 1));
                    EXPECT_GT(to, kSmall.plain_at(chunk.first + chunk.count - 1));
                }
                expect_same(chunk,
                            must(kSmall.of_plain(chunk.first, chunk.plain.size, chunk.last)));
                expect_same(chunk,
                            must(kSmall.of_sealed(chunk.first, chunk.sealed.size, chunk.last)));
                std::uint64_t placed = 0;
                for (std::uint64_t i = 0; i < chunk.count; ++i) {
                    const sealed::Range place = kSmall.place(chunk, i);
                    EXPECT_EQ(place.at, i * 64 + (chunk.first + i == 0 ? 24 : 0));
                    placed += place.size;
                    EXPECT_LE(place.at + place.size + gcm::kTagSize, chunk.sealed.size);
                }
                EXPECT_EQ(placed, chunk.plain.size);
            }
        EXPECT_EQ(kSmall.covering({size, 1}, size).code(), Code::invalid_argument);
        EXPECT_EQ(kSmall.covering({size + 1, 0}, size).code(), Code::invalid_argument);
        EXPECT_EQ(kSmall.covering({~std::uint64_t{0}, 2}, size).code(), Code::invalid_argument);
    }
}

TEST(Layout, ChunksThatCannotBe) {
    for (const std::uint64_t plain : {1u, 23u, 25u, 71u}) {
        EXPECT_EQ(kSmall.of_plain(0, plain, false).code(), Code::invalid_argument) << plain;
        EXPECT_TRUE(kSmall.of_plain(0, plain, true)) << plain;
    }
    for (const std::uint64_t plain : {1u, 24u, 47u, 49u})
        EXPECT_EQ(kSmall.of_plain(3, plain, false).code(), Code::invalid_argument) << plain;
    EXPECT_EQ(kSmall.of_plain(3, 0, true).code(), Code::invalid_argument);
    EXPECT_EQ(must(kSmall.of_plain(3, 0, false)).count, 0u);
    EXPECT_EQ(must(kSmall.of_plain(0, 0, false)).sealed.size, 0u);
    for (const std::uint64_t sealed : {1u, 40u, 63u, 65u})
        EXPECT_EQ(kSmall.of_sealed(0, sealed, false).code(), Code::invalid_argument) << sealed;
    for (const std::uint64_t sealed : {0u, 39u, 64u + 16, 64u + 1})
        EXPECT_EQ(kSmall.of_sealed(0, sealed, true).code(), Code::bad_format) << sealed;
    EXPECT_EQ(kSmall.of_sealed(2, 0, true).code(), Code::invalid_argument)
        << "an end that nothing would verify";
}

}  // namespace
}  // namespace dael::test
