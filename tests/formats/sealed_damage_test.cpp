// SPDX-License-Identifier: Apache-2.0
// Whatever was done to sealed data, opening refuses it, names the segment, and releases nothing
// that is not verified. Segments are of 64 bytes here: 24 of plaintext in the first, 48 in others.
#include "formats/keysets.hpp"
#include "support/thorough.hpp"

namespace dael::test {
namespace {

constexpr std::size_t kSegment = 64, kHeader = 24;

class Damage : public ::testing::Test {
  protected:
    // By every way of opening; none may let anything through but a verified beginning.
    void refused(const Bytes& damaged, const std::string& says, HostIn aad = {}) {
        const auto opened = open(e_, keys_, damaged, aad);
        ASSERT_FALSE(opened) << "accepted by spans: " << damaged.size() << " of " << sealed_.size();
        EXPECT_TRUE(opened.code() == Code::authentication || opened.code() == Code::bad_format);
        EXPECT_NE(opened.error().message.find(says), std::string::npos) << opened.error().message;

        std::size_t at = 0;
        Bytes released;
        const auto streamed = sealed::open(
            e_, keys_, aad,
            [&](HostOut out) -> Result<std::size_t> {
                const std::size_t size = std::min(out.size(), damaged.size() - at);
                std::copy_n(damaged.begin() + static_cast<std::ptrdiff_t>(at), size, out.begin());
                at += size;
                return size;
            },
            [&](HostIn bytes) -> Result<> {
                released.insert(released.end(), bytes.begin(), bytes.end());
                return {};
            });
        ASSERT_FALSE(streamed) << "accepted by streams";
        EXPECT_EQ(streamed.error().message, opened.error().message);
        ASSERT_LE(released.size(), plain_.size());
        EXPECT_TRUE(std::equal(released.begin(), released.end(), plain_.begin()));

        // A file that opens at all must refuse a read up to its end.
        auto file = sealed::File::open(
            e_, keys_, aad,
            [&](std::uint64_t from, HostOut out) -> Result<> {
                std::copy_n(damaged.begin() + static_cast<std::ptrdiff_t>(from), out.size(),
                            out.begin());
                return {};
            },
            damaged.size());
        if (!file) return;
        Bytes all(file->size(), 0xa5);
        EXPECT_FALSE(file->read(0, all) && file->check_size());
    }

    Bytes with(std::initializer_list<std::pair<std::size_t, std::size_t>> parts) const {
        Bytes out;
        for (const auto& [from, to] : parts)
            out.insert(out.end(), sealed_.begin() + static_cast<std::ptrdiff_t>(from),
                       sealed_.begin() + static_cast<std::ptrdiff_t>(to));
        return out;
    }

    Engine e_ = engine();
    sealed::Keys keys_ = small_keys();
    Bytes plain_ = pattern(24 + 48 + 48 + 30);
    Bytes sealed_ = seal(e_, keys_, plain_);
};

TEST_F(Damage, EveryTruncation) {
    for (std::size_t size = 0; size < sealed_.size(); ++size) {
        SCOPED_TRACE(size);
        refused(with({{0, size}}), size < kHeader + 16 ? "cut off" : "");
    }
    refused(with({{0, 2 * kSegment}}), "segment 1, the last one, is not authentic");
    refused(with({{0, 2 * kSegment + 20}}), "segment 2, the last one, is not authentic");
    refused(with({{0, 2 * kSegment + 15}}), "cut off");
}

TEST_F(Damage, EveryFlippedBit) {
    for (std::size_t bit = 0; bit < 8 * sealed_.size(); bit += thorough(1u, 3u)) {
        SCOPED_TRACE(bit);
        Bytes damaged = sealed_;
        damaged[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
        const std::size_t segment = bit / 8 / kSegment;
        refused(damaged,
                bit < 8 ? "does not begin as sealed data" : "segment " + std::to_string(segment));
    }
}

TEST_F(Damage, MovedRepeatedDroppedAndAddedSegments) {
    const std::size_t end = sealed_.size(), s = kSegment;
    refused(with({{0, s}, {2 * s, 3 * s}, {s, 2 * s}, {3 * s, end}}), "segment 1 is not authentic");
    refused(with({{0, 2 * s}, {s, 2 * s}, {2 * s, end}}), "segment 2 is not authentic");
    refused(with({{0, s}, {2 * s, end}}), "segment 1 is not authentic");
    refused(with({{0, end}, {3 * s, end}}), "segment 3");
    refused(with({{s, end}}), "does not begin");
    for (std::size_t extra = 1; extra <= 2 * kSegment; ++extra) {
        Bytes longer = sealed_;
        longer.resize(longer.size() + extra, 0x5a);
        refused(longer, "");
    }
}

TEST_F(Damage, AnExactMultipleOfSegmentsIsNoPlaceToCutOrAdd) {
    plain_ = pattern(24 + 48 + 48);
    sealed_ = seal(e_, keys_, plain_);
    ASSERT_EQ(sealed_.size(), 3 * kSegment);
    EXPECT_EQ(must(open(e_, keys_, sealed_)), plain_);
    const std::size_t s = kSegment;
    refused(with({{0, 2 * s}}), "segment 1, the last one");
    refused(with({{0, s}}), "segment 0, the only one");
    refused(with({{0, 3 * s}, {2 * s, 3 * s}}), "segment 2 is not authentic");
    refused(with({{0, 2 * s}, {s, 3 * s}}), "segment 2 is not authentic");
    Bytes longer = sealed_;
    longer.resize(longer.size() + 16);  // as long as an empty segment, which nobody makes
    refused(longer, "cut off or added to");
    longer.push_back(0);
    refused(longer, "segment 2 is not authentic");
}

TEST_F(Damage, PartsOfAnotherStream) {
    const Bytes other = seal(e_, keys_, plain_);
    for (std::size_t i = 0; i < 4; ++i) {
        Bytes mixed = sealed_;
        const auto from = static_cast<std::ptrdiff_t>(i == 0 ? kHeader : i * kSegment);
        const auto to = static_cast<std::ptrdiff_t>(std::min(mixed.size(), (i + 1) * kSegment));
        std::copy(other.begin() + from, other.begin() + to, mixed.begin() + from);
        refused(mixed, "segment " + std::to_string(i));
    }
}

TEST_F(Damage, AnotherKeyOrAssociatedData) {
    refused(seal(e_, small_keys(8), plain_), "another key or other associated data");
    refused(sealed_, "another key or other associated data", pattern(1));
    refused(seal(e_, keys_, plain_, pattern(3)), "another key or other associated data",
            pattern(4));
    EXPECT_EQ(must(open(e_, keys_, seal(e_, keys_, plain_, pattern(3)), pattern(3))), plain_);
}

TEST_F(Damage, WithSeveralKeysToo) {
    keys_ = keys_of({{.key = Bytes(16, 1), .segment = 4096},
                     {.key = Bytes(16, 7)},
                     {.key = Bytes(32, 1), .derived = 32}});
    EXPECT_EQ(must(open(e_, keys_, sealed_)), plain_);
    for (std::size_t size = 0; size < sealed_.size(); size += 5) refused(with({{0, size}}), "");
    for (std::size_t at = 0; at < sealed_.size(); at += 3) {
        Bytes damaged = sealed_;
        damaged[at] ^= 0x80;
        refused(damaged, "");
    }
}

TEST_F(Damage, ARangeNoticesWhatItTouches) {
    Bytes damaged = sealed_;
    damaged[2 * kSegment + 5] ^= 1;
    auto file = must(sealed::File::open(
        e_, keys_, {},
        [&](std::uint64_t from, HostOut out) -> Result<> {
            std::copy_n(damaged.begin() + static_cast<std::ptrdiff_t>(from), out.size(),
                        out.begin());
            return {};
        },
        damaged.size()));
    Bytes out(72);
    EXPECT_TRUE(file.read(0, out));
    EXPECT_EQ(out, Bytes(plain_.begin(), plain_.begin() + 72));
    Bytes more(73, 0xa5);
    const auto failed = file.read(0, more);
    EXPECT_EQ(failed.code(), Code::authentication);
    EXPECT_NE(failed.error().message.find("segment 2"), std::string::npos);
    EXPECT_EQ(more, Bytes(73, 0)) << "what was verified before is taken back too";
}

}  // namespace
}  // namespace dael::test
