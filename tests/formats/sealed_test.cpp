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
        Bytes made(v.ciphertext.size(), 0xa5), plain = pattern(v.size);
        plain.push_back(0);  // so that even nothing has an address
        const auto chunk = must(cipher.layout().of_plain(0, v.size, true));
        must(cipher.run(Direction::encrypt, chunk, made.data(), plain.data()));
        std::ranges::copy(cipher.header(), made.begin());
        EXPECT_EQ(difference(v.ciphertext, made), "");
    }
}

// A source that hands out uneven portions, as read() may of a pipe, `most` bytes at a time.
sealed::Read reader(const Bytes& bytes, std::size_t& at, std::size_t most = ~std::size_t{0}) {
    return [&bytes, &at, most](HostOut out) -> Result<std::size_t> {
        const std::size_t size = std::min({out.size(), bytes.size() - at, most});
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

TEST(Sealed, ReadsThatBringLittleAreNoEnd) {
    auto e = engine();
    const auto keys = small_keys();
    const Bytes plain = random_bytes(3000, 4);
    for (const std::size_t most : {1u, 2u, 7u, 47u, 48u, 49u, 1000u}) {
        SCOPED_TRACE(most);
        Bytes made, opened;
        std::size_t at = 0;
        const auto done = must(sealed::seal(e, keys, {}, reader(plain, at, most), writer(made)));
        EXPECT_EQ(done.size, must(sealed::sealed_size(keys, plain.size())));
        EXPECT_EQ(must(open(e, keys, made)), plain);
        at = 0;
        must(sealed::open(e, keys, {}, reader(made, at, most), writer(opened)));
        EXPECT_EQ(opened, plain);
    }
}

TEST(Sealed, TheEndIsTheEnd) {
    auto e = engine();
    const auto keys = small_keys();
    for (const std::size_t size : {0u, 10u, 24u, 72u}) {
        int after = 0;
        bool ended = false;
        std::size_t at = 0;
        const Bytes plain = pattern(size);
        Bytes made;
        const auto read = reader(plain, at);
        must(sealed::seal(
            e, keys, {},
            [&](HostOut out) -> Result<std::size_t> {
                EXPECT_FALSE(out.empty());
                after += ended;
                auto got = read(out);
                ended = *got == 0;
                return got;
            },
            writer(made)));
        EXPECT_TRUE(ended);
        EXPECT_EQ(after, 0) << "asked again after the end, where a terminal would wait";
        EXPECT_EQ(must(open(e, keys, made)), plain);
    }
}

TEST(Sealed, ACountThatCannotBeIsRefused) {
    auto e = engine();
    const auto keys = small_keys();
    const auto liar = [](HostOut out) -> Result<std::size_t> { return out.size() + 1; };
    Bytes made;
    EXPECT_EQ(sealed::seal(e, keys, {}, liar, writer(made)).code(), Code::invalid_argument);
    EXPECT_EQ(sealed::open(e, keys, {}, liar, writer(made)).code(), Code::invalid_argument);
    EXPECT_TRUE(made.empty());
}

TEST(Sealed, OverlapIsRefusedBeforeAnythingIsTouched) {
    auto e = engine();
    const auto keys = small_keys();
    const Bytes plain = pattern(300), made = seal(e, keys, plain);
    for (std::size_t shift = 0; shift <= made.size(); ++shift) {
        SCOPED_TRACE(shift);
        const bool apart = shift == made.size();
        Bytes both(made.size() + shift, 0xa5);
        std::ranges::copy(made, both.begin());
        Bytes before = both;
        const auto opened = sealed::open(e, keys, {}, HostIn(both).first(made.size()),
                                         HostOut(both).subspan(shift));
        EXPECT_EQ(opened.code(), apart ? Code::ok : Code::overlap);
        EXPECT_TRUE(apart || both == before);
        both.assign(plain.size() + std::max(shift, plain.size()) + made.size(), 0xa5);
        std::ranges::copy(plain, both.begin() + static_cast<std::ptrdiff_t>(shift));
        before = both;
        const auto sealed = sealed::seal(e, keys, {}, HostIn(both).subspan(shift, plain.size()),
                                         HostOut(both).first(made.size()));
        EXPECT_EQ(sealed.code(), apart ? Code::ok : Code::overlap);
        EXPECT_TRUE(apart || both == before);
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

}  // namespace
}  // namespace dael::test
