// SPDX-License-Identifier: Apache-2.0
// Sealed data against stock Tink's, and the ways of sealing and opening against one another.
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "formats/keysets.hpp"
#include "formats/segment_cipher.hpp"
#include "support/vectors.hpp"

namespace dael::test {
namespace {

struct TinkVector {
    std::string name, keyset;
    Bytes key, aad, ciphertext;
    std::size_t size;
    std::uint32_t segment, derived;
    std::string hash;
};

std::vector<TinkVector> tink_vectors() {
    std::ifstream file(vectors_folder() / "tink/streaming.json");
    const auto json = nlohmann::json::parse(file);
    std::vector<TinkVector> vectors;
    for (const auto& v : json.at("vectors"))
        vectors.push_back({v.at("name"), v.at("keyset"), from_hex(v.at("key").get<std::string>()),
                           from_hex(v.at("aad").get<std::string>()),
                           from_hex(v.at("ciphertext").get<std::string>()), v.at("size"),
                           v.at("segment"), v.at("derived"), v.at("hash")});
    return vectors;
}

TEST(Sealed, OpensWhatTinkMade) {
    const auto vectors = tink_vectors();
    ASSERT_GE(vectors.size(), 50u);
    for (const char* backend : {"openssl", "auto"}) {
        auto e = engine(backend);
        for (const auto& v : vectors) {
            SCOPED_TRACE(v.name);
            const auto keys = must(sealed::Keys::from_keyset(bytes_of(v.keyset)));
            EXPECT_EQ(keys.segment(), v.segment);
            EXPECT_EQ(must(open(e, keys, v.ciphertext, v.aad)), pattern(v.size));
            EXPECT_EQ(must(sealed::sealed_size(keys, v.size)), v.ciphertext.size());
        }
    }
}

TEST(Sealed, ABareKeyOpensBothSizesOfSegments) {
    auto e = engine();
    std::size_t seen = 0;
    for (const auto& v : tink_vectors()) {
        if (v.segment < 4096 || v.hash != "SHA256") continue;
        SCOPED_TRACE(v.name);
        for (const auto segment : {sealed::kSmallSegment, sealed::kLargeSegment}) {
            const auto keys = must(sealed::Keys::from_key(v.key, segment));
            EXPECT_EQ(must(open(e, keys, v.ciphertext, v.aad)), pattern(v.size));
        }
        ++seen;
    }
    EXPECT_GE(seen, 20u);
}

// The bytes are Tink's, not only the meaning: the same salt and prefix give the same ciphertext.
TEST(Sealed, SealsToTinksBytes) {
    auto e = engine();
    for (const auto& v : tink_vectors()) {
        SCOPED_TRACE(v.name);
        const auto keys = must(sealed::Keys::from_keyset(bytes_of(v.keyset)));
        const auto& key = keys.state().keys.front();
        const std::size_t header = key.layout().header;
        auto cipher =
            must(formats::SegmentCipher::resume(e, key, v.aad, HostIn(v.ciphertext).first(header)));
        Bytes made(v.ciphertext.size() - header, 0xa5);
        const Bytes plain = pattern(v.size);
        must(cipher.seal({.size = plain.size(), .last = true}, plain.data(), made.data()));
        EXPECT_EQ(difference(HostIn(v.ciphertext).subspan(header), made), "");
    }
}

// A source that hands out uneven portions, as read() may.
sealed::Read reader(const Bytes& bytes, std::size_t& at) {
    return [&bytes, &at](HostOut out) -> Result<std::size_t> {
        const std::size_t size = std::min(out.size(), bytes.size() - at);
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, out.begin());
        at += size;
        return size;
    };
}

sealed::Write writer(Bytes& bytes) {
    return [&bytes](HostIn in) -> Result<> {
        bytes.insert(bytes.end(), in.begin(), in.end());
        return {};
    };
}

TEST(Sealed, EveryLengthBySpansStreamsAndRanges) {
    auto e = engine();
    const auto keys = small_keys();
    for (std::size_t size = 0; size <= 200; ++size) {
        SCOPED_TRACE(size);
        const Bytes plain = pattern(size);
        const Bytes made = seal(e, keys, plain);
        EXPECT_EQ(must(open(e, keys, made)), plain);

        Bytes streamed, opened;
        std::size_t at = 0;
        auto done = must(sealed::seal(e, keys, {}, reader(plain, at), writer(streamed)));
        EXPECT_EQ(done.size, made.size());
        EXPECT_EQ(streamed.size(), made.size());
        EXPECT_EQ(must(open(e, keys, streamed)), plain);
        at = 0;
        done = must(sealed::open(e, keys, {}, reader(made, at), writer(opened)));
        EXPECT_EQ(done.size, size);
        EXPECT_EQ(opened, plain);
    }
}

TEST(Sealed, StreamsOfSeveralChunks) {
    auto e = engine("auto");
    const Bytes plain = random_bytes((std::size_t{64} << 20) + 12345, 1);
    for (const auto segment : {sealed::kSmallSegment, sealed::kLargeSegment}) {
        const auto keys = must(sealed::Keys::from_key(Bytes(32, 9), segment));
        const Bytes aad = pattern(5000);
        Bytes streamed, opened;
        std::size_t at = 0;
        must(sealed::seal(e, keys, aad, reader(plain, at), writer(streamed)));
        at = 0;
        must(sealed::open(e, keys, aad, reader(streamed, at), writer(opened)));
        EXPECT_TRUE(opened == plain);
        EXPECT_TRUE(must(open(e, keys, streamed, aad)) == plain);
        EXPECT_TRUE(must(open(e, keys, seal(e, keys, plain, aad), aad)) == plain);
        // A chunk ends exactly where the data does.
        Bytes exact(plain.begin(), plain.begin() + (32 << 20) / segment * (segment - 16) - 40);
        streamed.clear(), opened.clear();
        at = 0;
        must(sealed::seal(e, keys, aad, reader(exact, at), writer(streamed)));
        EXPECT_EQ(streamed.size(), std::size_t{32} << 20);
        at = 0;
        must(sealed::open(e, keys, aad, reader(streamed, at), writer(opened)));
        EXPECT_TRUE(opened == exact);
    }
}

TEST(Sealed, EachSealingIsAnother) {
    auto e = engine();
    const auto keys = small_keys();
    std::set<Bytes> headers;
    for (int i = 0; i < 20; ++i) {
        const Bytes made = seal(e, keys, pattern(10));
        headers.emplace(made.begin(), made.begin() + 24);
    }
    EXPECT_EQ(headers.size(), 20u);
}

TEST(Sealed, EveryRangeAtTheEdges) {
    auto e = engine();
    const auto keys = small_keys();
    for (const std::size_t size : {0u, 1u, 23u, 24u, 25u, 72u, 73u, 168u}) {
        const Bytes plain = pattern(size), made = seal(e, keys, plain);
        std::set<std::uint64_t> touched;
        auto file = must(sealed::File::open(
            e, keys, {},
            [&](std::uint64_t at, HostOut out) -> Result<> {
                if (at + out.size() > made.size()) return Error{Code::io, "behind the end"};
                touched.insert(at / 64);
                std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                            out.begin());
                return {};
            },
            made.size()));
        ASSERT_EQ(file.size(), size);
        EXPECT_TRUE(file.check_size());
        for (std::size_t from = 0; from <= size; ++from)
            for (std::size_t to = from; to <= size; ++to) {
                Poisoned out(to - from, from % 7);
                touched.clear();
                must(file.read(from, out.span()));
                ASSERT_EQ(out.bytes(), Bytes(plain.begin() + static_cast<std::ptrdiff_t>(from),
                                             plain.begin() + static_cast<std::ptrdiff_t>(to)));
                ASSERT_TRUE(out.intact());
            }
        Bytes out(2);
        if (size > 2) {  // one byte of the first segment: no other is read
            touched.clear();
            must(file.read(0, HostOut(out).first(1)));
            EXPECT_EQ(touched, std::set<std::uint64_t>{0});
        }
        EXPECT_EQ(file.read(size, HostOut(out).first(1)).code(), Code::invalid_argument);
        EXPECT_EQ(file.read(~std::uint64_t{0}, out).code(), Code::invalid_argument);
    }
}

TEST(Sealed, ErrorsOfCallbacksComeThrough) {
    auto e = engine();
    const auto keys = small_keys();
    const Bytes made = seal(e, keys, pattern(100));
    const Error disk{Code::io, "the disk is full"};
    std::size_t at = 0;
    const auto failing_write = [&](HostIn) -> Result<> { return disk; };
    const auto failing_read = [&](HostOut) -> Result<std::size_t> { return disk; };
    Bytes sink;
    EXPECT_EQ(sealed::open(e, keys, {}, reader(made, at), failing_write).error().message,
              disk.message);
    EXPECT_EQ(sealed::open(e, keys, {}, failing_read, writer(sink)).error().message, disk.message);
    EXPECT_EQ(sealed::seal(e, keys, {}, failing_read, writer(sink)).error().message, disk.message);
    at = 0;
    EXPECT_EQ(sealed::seal(e, keys, {}, reader(made, at), failing_write).error().message,
              disk.message);
}

TEST(Sealed, ABufferOfTheWrongSizeIsRefused) {
    auto e = engine();
    const auto keys = small_keys();
    Bytes out(1000);
    EXPECT_EQ(sealed::seal(e, keys, {}, pattern(100), HostOut(out)).code(), Code::invalid_argument);
    const Bytes made = seal(e, keys, pattern(100));
    EXPECT_EQ(sealed::open(e, keys, {}, made, HostOut(out).first(99)).code(),
              Code::invalid_argument);
    EXPECT_TRUE(sealed::open(e, keys, {}, made, HostOut(out).first(100)));
}

TEST(Sealed, KeysOfOtherSizes) {
    for (const std::size_t size : {0u, 15u, 17u, 24u, 33u, 64u})
        EXPECT_EQ(sealed::Keys::from_key(Bytes(size)).code(), Code::key_size) << size;
    for (const std::uint32_t segment : {0u, 40u, 56u, (64u << 20) + 1})
        EXPECT_EQ(sealed::Keys::from_key(Bytes(32), segment).code(), Code::invalid_argument)
            << segment;
    EXPECT_TRUE(sealed::Keys::from_key(Bytes(32), 57));
}

TEST(Layout, AtMostTwoToThe32Segments) {
    const formats::Layout layout{4096, 40};
    const std::uint64_t most = (std::uint64_t{1} << 32) * 4080 - 40;
    EXPECT_EQ(must(layout.sealed_size(most)), std::uint64_t{1} << 44);
    EXPECT_EQ(layout.sealed_size(most + 1).code(), Code::limit);
    EXPECT_EQ(layout.sealed_size(~std::uint64_t{0}).code(), Code::limit);
    EXPECT_EQ(must(layout.plain_size(std::uint64_t{1} << 44)), most);
    EXPECT_EQ(layout.plain_size((std::uint64_t{1} << 44) + 1).code(), Code::limit);
    EXPECT_EQ(layout.plain_size(~std::uint64_t{0}).code(), Code::limit);
}

TEST(Layout, TheCipherStopsAtTwoToThe32) {
    auto e = engine();
    const auto keys = small_keys();
    auto cipher = must(formats::SegmentCipher::start(e, keys.state().keys.front(), {}));
    const Bytes plain = pattern(49);
    Bytes made(200);
    const std::uint64_t last = (std::uint64_t{1} << 32) - 1;
    EXPECT_TRUE(cipher.seal({.first = last, .size = 48, .last = true}, plain.data(), made.data()));
    EXPECT_EQ(
        cipher.seal({.first = last, .size = 49, .last = true}, plain.data(), made.data()).code(),
        Code::limit);
    EXPECT_EQ(
        cipher.seal({.first = last + 1, .size = 1, .last = true}, plain.data(), made.data()).code(),
        Code::limit);
}

TEST(Layout, SizesThereAndBack) {
    for (const formats::Layout layout : {formats::Layout{64, 24}, {57, 40}, {4096, 40}})
        for (std::uint64_t plain = 0; plain < 3 * layout.segment; ++plain) {
            const auto sealed = must(layout.sealed_size(plain));
            EXPECT_EQ(must(layout.plain_size(sealed)), plain);
            const std::uint64_t i = layout.segment_of(plain);
            EXPECT_LE(layout.plain_at(i), plain);
            EXPECT_GT(layout.plain_at(i) + layout.room(i), plain);
        }
}

}  // namespace
}  // namespace dael::test
