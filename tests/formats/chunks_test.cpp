// SPDX-License-Identifier: Apache-2.0
// Sealed streams chunk by chunk, where the caller moves the bytes: in any cut, in place or apart,
// in any order and on several threads when opening, and in one order only when sealing.
#include <daelstrom/sealed_chunks.hpp>
#include <thread>

#include "core/registry.hpp"
#include "formats/keysets.hpp"
#include "pipeline/engine_state.hpp"
#include "support/child.hpp"
#include "support/host_device.hpp"

namespace dael::test {
namespace {

using sealed::Chunk;
using sealed::Opener;
using sealed::Range;
using sealed::Sealer;

// Segments of 64 bytes: 24 of plaintext in the first, 48 in others.
class Chunks : public ::testing::Test {
  protected:
    Opener opener(const Bytes& stream) {
        const std::size_t size = std::min(stream.size(), Opener::head_size(keys_));
        return must(
            Opener::start(e_, keys_, aad_, HostIn(stream).first(size), size == stream.size()));
    }
    // In chunks of so many segments.
    Bytes seal_in_chunks(std::uint64_t count, bool in_place) {
        auto sealer = must(Sealer::start(e_, keys_, aad_));
        const auto& layout = sealer.layout();
        Bytes stream;
        for (std::uint64_t first = 0, end = layout.segments(plain_.size()); first < end;
             first += count) {
            const bool last = first + count >= end;
            const std::uint64_t from = layout.plain_at(first);
            const std::uint64_t to = last ? plain_.size() : layout.plain_at(first + count);
            const HostIn part = HostIn(plain_).subspan(from, to - from);
            const Chunk chunk = must(sealer.next(part.size(), last));
            EXPECT_EQ(chunk.sealed.at, stream.size());
            Poisoned out(chunk.sealed.size, 3);
            if (in_place) {
                for (std::uint64_t i = 0; i < chunk.count; ++i) {
                    const Range place = layout.place(chunk, i);
                    std::ranges::copy(part.subspan(layout.plain_at(first + i) - from, place.size),
                                      out.span().begin() + static_cast<std::ptrdiff_t>(place.at));
                }
                must(sealer.seal_in_place(out.span(), part.size(), last));
            } else {
                must(sealer.seal(part, out.span(), last));
            }
            EXPECT_TRUE(out.intact());
            const Bytes made = out.bytes();
            stream.insert(stream.end(), made.begin(), made.end());
        }
        return stream;
    }

    Engine e_ = engine();
    sealed::Keys keys_ = small_keys();
    Bytes aad_ = pattern(3), plain_ = random_bytes(24 + 10 * 48 + 5, 8);
    Bytes sealed_ = seal(e_, keys_, plain_, aad_);
};

TEST_F(Chunks, SealedInAnyCutIsOneStream) {
    for (const std::size_t size : {0u, 1u, 24u, 25u, 72u, 24u + 10 * 48, 24u + 10 * 48 + 5})
        for (const std::uint64_t count : {1u, 2u, 3u, 11u, 100u})
            for (const bool in_place : {false, true}) {
                SCOPED_TRACE(testing::Message() << size << " bytes by " << count << " segments");
                plain_ = random_bytes(size, static_cast<std::uint32_t>(size));
                EXPECT_EQ(must(open(e_, keys_, seal_in_chunks(count, in_place), aad_)), plain_);
            }
}

TEST_F(Chunks, OpenedInAnyCutAndOrder) {
    const Opener o = opener(sealed_);
    const auto& layout = o.layout();
    const std::uint64_t end = layout.segments(plain_.size());
    for (std::uint64_t first = end; first-- > 0;)
        for (std::uint64_t count = 1; first + count <= end; ++count) {
            SCOPED_TRACE(testing::Message() << count << " segments from " << first);
            const bool last = first + count == end;
            const std::uint64_t from = first * 64;
            const std::uint64_t to = last ? sealed_.size() : (first + count) * 64;
            const HostIn part = HostIn(sealed_).subspan(from, to - from);
            const Chunk chunk = must(layout.of_sealed(first, part.size(), last));
            const HostIn expected = HostIn(plain_).subspan(chunk.plain.at, chunk.plain.size);
            Poisoned out(chunk.plain.size, 5);
            must(o.open(chunk, part, out.span()));
            EXPECT_EQ(difference(expected, out.bytes()), "");
            EXPECT_TRUE(out.intact());
            Bytes bytes(part.begin(), part.end()), gathered;
            must(o.open_in_place(chunk, bytes));
            for (std::uint64_t i = 0; i < chunk.count; ++i) {
                const Range place = layout.place(chunk, i);
                const HostIn piece = HostIn(bytes).subspan(place.at, place.size);
                gathered.insert(gathered.end(), piece.begin(), piece.end());
            }
            EXPECT_EQ(difference(expected, gathered), "");
        }
}

TEST_F(Chunks, OpenedByManyThreadsAtOnce) {
    const Opener o = opener(sealed_);
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (std::uint64_t thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            for (std::uint64_t round = 0; round < 200; ++round) {
                const std::uint64_t at = (thread * 131 + round * 17) % plain_.size();
                const auto chunk = must(o.layout().covering(
                    {at, std::min<std::uint64_t>(100, plain_.size() - at)}, plain_.size()));
                Bytes out(chunk.plain.size);
                must(o.open(chunk, HostIn(sealed_).subspan(chunk.sealed.at, chunk.sealed.size),
                            out));
                good += std::equal(out.begin(), out.end(),
                                   plain_.begin() + static_cast<std::ptrdiff_t>(chunk.plain.at));
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(good, 800);
}

TEST_F(Chunks, DamageNamesItsSegmentAndLeavesNothing) {
    const Opener o = opener(sealed_);
    Bytes damaged = sealed_;
    damaged[5 * 64 + 7] ^= 1;
    const Chunk chunk = must(o.layout().of_sealed(3, 4 * 64, false));
    const HostIn part = HostIn(damaged).subspan(3 * 64, 4 * 64);
    Bytes out(chunk.plain.size, 0xa5), bytes(part.begin(), part.end());
    for (const auto& ran : {o.open(chunk, part, out), o.open_in_place(chunk, bytes)}) {
        EXPECT_EQ(ran.code(), Code::authentication);
        EXPECT_NE(ran.error().message.find("segment 5 is not"), std::string::npos);
    }
    EXPECT_EQ(out, Bytes(out.size(), 0));
    EXPECT_EQ(bytes, Bytes(bytes.size(), 0));
    // An end where none is, and none where one is.
    Chunk end = must(o.layout().of_sealed(3, 64, true));
    EXPECT_EQ(o.open(end, HostIn(sealed_).subspan(3 * 64, 64), HostOut(out).first(48)).code(),
              Code::authentication);
    plain_ = pattern(24 + 48);
    const Bytes whole = seal(e_, keys_, plain_, aad_);
    const Opener other = opener(whole);
    end = must(other.layout().of_sealed(1, 64, false));
    EXPECT_EQ(other.open(end, HostIn(whole).subspan(64), HostOut(out).first(48)).code(),
              Code::authentication);
}

TEST_F(Chunks, WhatDoesNotFitIsRefusedUntouched) {
    const Opener o = opener(sealed_);
    const Chunk chunk = must(o.layout().of_sealed(1, 128, false));
    Bytes out(200, 0xa5);
    const HostIn part = HostIn(sealed_).subspan(64, 128);
    for (const std::size_t size : {0u, 95u, 97u, 200u})
        EXPECT_EQ(o.open(chunk, part, HostOut(out).first(size)).code(), Code::invalid_argument);
    EXPECT_EQ(o.open(chunk, part.first(127), HostOut(out).first(96)).code(),
              Code::invalid_argument);
    EXPECT_EQ(o.open(chunk, part.first(64), HostOut(out).first(48)).code(), Code::invalid_argument);
    EXPECT_EQ(o.open_in_place(chunk, HostOut(out).first(127)).code(), Code::invalid_argument);
    Chunk other = chunk;
    other.first = std::uint64_t{1} << 33;
    EXPECT_EQ(o.open(other, part, HostOut(out).first(96)).code(), Code::limit);
    EXPECT_EQ(out, Bytes(200, 0xa5));
    Bytes both(128 + 96, 0xa5);
    std::ranges::copy(part, both.begin());
    const Bytes before = both;
    for (const std::size_t shift : {0u, 1u, 96u, 127u})
        EXPECT_EQ(o.open(chunk, HostIn(both).first(128), HostOut(both).subspan(shift, 96)).code(),
                  Code::overlap)
            << shift;
    EXPECT_EQ(both, before);
    EXPECT_TRUE(o.open(chunk, HostIn(both).first(128), HostOut(both).subspan(128)));
}

TEST_F(Chunks, SealingGoesForwardOnly) {
    auto sealer = must(Sealer::start(e_, keys_, aad_));
    Bytes out(200, 0xa5);
    const Bytes untouched = out;
    EXPECT_EQ(sealer.seal(pattern(23), out, false).code(), Code::invalid_argument);
    EXPECT_EQ(sealer.seal(pattern(24), HostOut(out).first(63), false).code(),
              Code::invalid_argument);
    EXPECT_EQ(sealer.seal(HostIn(out).first(24), HostOut(out).subspan(10), false).code(),
              Code::overlap);
    EXPECT_TRUE(sealer.seal({}, {}, false)) << "nothing makes nothing";
    EXPECT_EQ(out, untouched);
    // What was refused has used no nonce: the stream goes on.
    EXPECT_EQ(must(sealer.next(24, false)).first, 0u);
    must(sealer.seal(HostIn(plain_).first(24), out, false));
    EXPECT_EQ(must(sealer.next(48, false)).first, 1u);
    EXPECT_EQ(sealer.seal({}, out, true).code(), Code::invalid_argument);
    must(sealer.seal(HostIn(plain_).subspan(24, 48), HostOut(out).subspan(64), true));
    EXPECT_EQ(must(open(e_, keys_, Bytes(out.begin(), out.begin() + 128), aad_)),
              Bytes(plain_.begin(), plain_.begin() + 72));
    for (const bool last : {false, true}) {
        const auto more = sealer.seal(pattern(48), out, last);
        EXPECT_EQ(more.code(), Code::invalid_argument);
        EXPECT_NE(more.error().message.find("has had its last chunk"), std::string::npos);
    }
}

// Two that seal at once would take the same segment, and so one nonce for two plaintexts.
TEST_F(Chunks, OneThreadSealsAtATime) {
    HostDevice device({.delay = std::chrono::microseconds(300)});
    auto e = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                   {.backend = "threads", .threads = 2});
    auto sealer = must(Sealer::start(e, keys_, aad_));
    Bytes first(64);
    must(sealer.seal(pattern(24), first, false));
    std::atomic<std::uint64_t> made{0}, refused{0};
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread)
        threads.emplace_back([&, thread] {
            Bytes sealed(64);
            for (std::size_t round = 0; round < 20; ++round) {
                const auto ran = sealer.seal(pattern(48, thread * 20 + round), sealed, false);
                ++(ran ? made : refused);
                EXPECT_TRUE(ran || ran.error().message.find("another thread") != std::string::npos)
                    << ran.error().message;
                const auto next = sealer.next(48, false);
                EXPECT_TRUE(next || next.code() == Code::invalid_argument);
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(made + refused, 80u);
    EXPECT_EQ(must(sealer.next(48, false)).first, 1 + made) << "two had the same segment";
}

TEST_F(Chunks, AChildCannotGoOnWithItsParentsNonces) {
    auto sealer = must(Sealer::start(e_, keys_, aad_));
    Bytes out(200);
    must(sealer.seal(pattern(24), out, false));
    expect_in_a_child([&] {
        const auto more = sealer.seal(pattern(48), out, true);
        return more.code() == Code::invalid_argument &&
               more.error().message.find("parent") != std::string::npos;
    });
    EXPECT_TRUE(sealer.seal(pattern(48), HostOut(out).subspan(64), true));
}

// A device that fails has perhaps sealed some of the chunk: other plaintext must not follow under
// the same nonces.
TEST_F(Chunks, AfterAFailureTheStreamIsOver) {
    int failed = 0;
    for (int fail_at = 1; fail_at < 30; ++fail_at) {
        HostDevice device({.fail_at = fail_at});
        auto e = pipeline::make_engine(std::make_unique<HostDeviceBackend>(device),
                                       {.backend = "threads", .threads = 2});
        auto sealer = Sealer::start(e, keys_, aad_);
        if (!sealer) continue;
        Bytes out(64);
        if (sealer->seal(pattern(24), out, false)) continue;
        ++failed;
        const auto more = sealer->seal(pattern(24), out, false);
        EXPECT_EQ(more.code(), Code::invalid_argument);
        EXPECT_NE(more.error().message.find("must not be used again"), std::string::npos);
    }
    EXPECT_GT(failed, 3);
}

}  // namespace
}  // namespace dael::test
