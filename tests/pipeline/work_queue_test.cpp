// SPDX-License-Identifier: Apache-2.0
// What workers take from one queue: every byte once, whole where the mode asks for it, in chunks
// that fit; and what the codes say, whatever is given back or lost, against a model.
#include "pipeline/work_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "support/test_batch.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using pipeline::extents_in;
using pipeline::extents_out;
using pipeline::Piece;
using pipeline::Stand;
using pipeline::Taken;
using pipeline::WorkQueue;

TEST(WorkQueue, ChunksCoverEveryByteOnceAndFitTheirBuffers) {
    std::vector<std::uint8_t> memory(5 << 20);
    Bytes tag(16);

    for (const Mode mode : kModes) {
        const KeyRing ring({pattern_key(mode)}, mode);
        for (const std::uint32_t sector : {16, 512, 520, 4096, 100'001, 1 << 20})
            for (const std::size_t size : {16, 4096, 65536, 65552, 1 << 20, (5 << 20) - 16})
                for (const std::size_t wanted : {65536, 1 << 20}) {
                    if (mode != Mode::xts && sector != 512) continue;
                    const Cipher cipher{mode, Direction::decrypt, 16, 0, sector};
                    std::vector<Message> list(authenticates(mode) ? 3 : 1);
                    for (std::size_t i = 0; i < list.size(); ++i) {
                        Message& m = list[i];
                        m.size = fitting(cipher, size / list.size());
                        m.in = m.out = memory.data() + i * (memory.size() / 3);
                        if (authenticates(mode)) m.tag = tag.data();
                        if (authenticates(mode)) m.aad = tag.data(), m.aad_size = 13;
                        if (makes_keystream(mode)) m.skip = 5;
                        m.start[3] = 1;
                    }
                    std::vector<Code> codes(list.size());
                    const pipeline::Request request{cipher, {ring.keys}, list, codes};
                    for (const std::size_t listed : {std::size_t{0}, std::size_t{176}}) {
                        if (listed != 0 && !authenticates(mode)) continue;
                        WorkQueue queue(request, false);
                        WorkQueue::Member member(queue, 1);
                        const std::size_t room = std::max(wanted, queue.largest());
                        std::size_t index = 0;
                        std::uint64_t done = 0;
                        for (;;) {
                            Taken taken = queue.take(
                                member,
                                {.size = room, .most_pieces = listed ? std::size_t{2} : 1000});
                            if (taken.empty()) break;
                            pipeline::Chunk& chunk = taken.front();
                            pipeline::lay_out(cipher, listed, chunk);
                            std::size_t end = listed;
                            EXPECT_LE(chunk.pieces.size(), listed ? 2u : 1000u);
                            for (auto& piece : chunk.pieces) {
                                if (piece.index != index) {
                                    ASSERT_EQ(done, list[index].size);
                                    ASSERT_EQ(piece.index, ++index);
                                    done = 0;
                                }
                                const Message& whole = list[index];
                                const Message part = piece.message;
                                ASSERT_EQ(part.in, whole.in + done);
                                const Message same =
                                    modes::can_cut(cipher)
                                        ? modes::slice(cipher, whole, done, part.size)
                                        : whole;
                                ASSERT_EQ(part.start, same.start);
                                ASSERT_EQ(part.skip, same.skip);
                                ASSERT_EQ(piece.data % 16, 0u);
                                ASSERT_GE(piece.data, end);
                                end = piece.data + part.size;
                                done += part.size;
                                piece.stand = Stand::done;
                            }
                            ASSERT_LE(end, chunk.data_end);
                            for (const auto& piece : chunk.pieces) {
                                if (!authenticates(mode)) continue;
                                ASSERT_GE(piece.tag, chunk.data_end);
                                ASSERT_LE(piece.tag + 16, chunk.tags_end);
                                ASSERT_GE(piece.aad, chunk.tags_end);
                                ASSERT_LE(piece.aad + 13, chunk.end);
                            }
                            ASSERT_LE(chunk.data_end, chunk.tags_end);
                            ASSERT_LE(chunk.tags_end, chunk.end);
                            ASSERT_LE(chunk.end, room + listed) << name(mode) << " " << size;
                            queue.finish(member, std::move(taken));
                        }
                        ASSERT_EQ(index + 1, list.size());
                        ASSERT_EQ(done, list[index].size);
                        EXPECT_TRUE(queue.all_done());
                        EXPECT_EQ(member.bytes(), queue.size());
                    }
                }
    }
}

// The faster of two takes more at once, and both take less towards the end.
TEST(WorkQueue, WhoIsFasterTakesMore) {
    std::vector<std::uint8_t> memory(24 << 20);
    const KeyRing ring({pattern(16)});
    const Message message{memory.data(), memory.data(), memory.size()};
    Code code{};
    const pipeline::Request request{{Mode::ctr}, {ring.keys}, {&message, 1}, {&code, 1}};
    WorkQueue queue(request, false);
    // Far below what is seen of them, however slow the machine is: these rates it is that count.
    WorkQueue::Member fast(queue, 3000), slow(queue, 1000);
    const WorkQueue::Wish wish{.size = 16 << 20, .in_parts = 2, .least = 64 << 10};
    const auto take = [&](WorkQueue::Member& member) {
        Taken taken = queue.take(member, wish);
        const std::uint64_t size = taken.empty() ? 0 : taken.front().pieces[0].message.size;
        for (auto& chunk : taken)
            for (auto& piece : chunk.pieces) piece.stand = Stand::done;
        queue.finish(member, std::move(taken));
        return size;
    };
    // What is only thought is tried with little.
    EXPECT_EQ(take(fast), std::uint64_t{64} << 10);
    EXPECT_EQ(take(slow), std::uint64_t{64} << 10);
    const double left = 24.0 * (1 << 20) - 2 * 65536;
    const auto first = static_cast<double>(take(fast));
    EXPECT_NEAR(first, left * 3 / 8, 4096);
    EXPECT_NEAR(static_cast<double>(take(slow)), (left - first) / 8, 4096);
    std::uint64_t last = 24 << 20;
    while (!queue.empty()) {
        const std::uint64_t now = take(slow);
        EXPECT_LE(now, last);
        last = now;
    }
    EXPECT_LE(last, std::uint64_t{64} << 10);
    EXPECT_TRUE(queue.all_done());
}

// Members take, do, give back and lose as it comes; each byte counts how often it was done.
TEST(WorkQueue, WalkAgainstAModel) {
    const Cipher ciphers[] = {{Mode::ctr},
                              {Mode::ecb},
                              {Mode::xts, Direction::encrypt, 16, 0, 512},
                              {Mode::cbc, Direction::decrypt},
                              {Mode::cbc},
                              {Mode::gcm}};
    std::size_t whole = 0, in_part = 0, left = 0;
    for (Walks walks("a queue's members", thorough(400u, 60u)); walks.next();) {
        SCOPED_TRACE(walks.text());
        Random random(walks.seed());
        const Cipher cipher = ciphers[random.below(std::size(ciphers))];
        const KeyRing ring(random, 3, cipher.mode);
        const bool in_place = random.below(2) != 0, by_key = random.below(2) != 0;
        const std::size_t count = 1 + random.below(random.below(2) == 0 ? 3 : 40);
        std::vector<Message> list(count);
        std::vector<Bytes> data(count), out(count);
        Bytes tag(16);
        enum class Fate { untouched, done, lost, written };
        std::vector<std::vector<Fate>> fates(count);
        for (std::size_t i = 0; i < count; ++i) {
            Message& m = list[i];
            const bool refused = random.below(8) == 0;
            m.size = fitting(cipher, random.below(random.below(3) == 0 ? 400'000 : 3000));
            data[i].resize(m.size + 1), out[i].resize(m.size + 1);
            m.in = data[i].data();
            m.out = in_place ? data[i].data() : out[i].data();
            m.key = refused ? 7 : static_cast<std::uint32_t>(random.below(3));
            if (cipher.mode == Mode::gcm) m.tag = tag.data();
            if (!refused) fates[i].resize(m.size, Fate::untouched);
        }
        std::vector<Code> codes(count, static_cast<Code>(99));
        const pipeline::Request request{cipher, {ring.keys}, list, codes};
        WorkQueue queue(request, by_key);
        {
            std::list<WorkQueue::Member> members;
            std::vector<std::pair<WorkQueue::Member*, Taken>> out_there;
            for (std::size_t i = 1 + random.below(4); i != 0; --i)
                members.emplace_back(queue, static_cast<double>(1 + random.below(100)));
            const auto part = [&](std::size_t which, bool fails) {
                auto& [member, taken] = out_there[which];
                const bool loses = fails && random.below(3) == 0;
                for (auto& piece : taken.front().pieces) {
                    const Message& m = list[piece.index];
                    const auto at = static_cast<std::size_t>(piece.message.in - m.in);
                    ASSERT_EQ(piece.message.key, m.key);
                    ASSERT_EQ(piece.message.out - m.out, piece.message.in - m.in);
                    if (modes::can_cut(cipher)) {
                        ASSERT_EQ(piece.message.start,
                                  modes::slice(cipher, m, at, piece.message.size).start);
                    } else {
                        ASSERT_EQ(piece.message.size, m.size);
                    }
                    const bool fails_here = fails && random.below(2) == 0;
                    piece.stand = !fails_here ? Stand::done
                                  : loses     ? Stand::lost
                                              : Stand::untouched;
                    for (std::size_t byte = at; byte < at + piece.message.size; ++byte) {
                        Fate& fate = fates[piece.index][byte];
                        ASSERT_TRUE(fate == Fate::untouched || fate == Fate::written);
                        if (piece.stand == Stand::done) fate = Fate::done;
                        if (piece.stand == Stand::lost)
                            fate = in_place ? Fate::lost : Fate::written;
                    }
                }
                queue.finish(*member, std::move(taken));
                out_there.erase(out_there.begin() + static_cast<std::ptrdiff_t>(which));
            };
            const bool to_the_end = random.below(2) != 0;
            std::size_t steps = to_the_end ? 100'000 : random.below(60);
            for (; steps != 0; --steps) {
                walks.step();
                const std::size_t most = std::size_t{1} << (12 + random.below(7));
                auto member = members.begin();
                std::advance(member, random.below(members.size()));
                Taken taken = queue.take(*member, {.size = most,
                                                   .most_pieces = 1 + random.below(50),
                                                   .in_parts = static_cast<double>(random.below(3)),
                                                   .least = 1 + random.below(most),
                                                   .least_pieces = 1 + random.below(20),
                                                   .one_key = by_key});
                if (!taken.empty()) {
                    const auto& pieces = taken.front().pieces;
                    std::size_t used = 0;
                    for (const auto& piece : pieces) {
                        used += pipeline::footprint(cipher, piece.message);
                        EXPECT_TRUE(!by_key || piece.message.key == pieces[0].message.key);
                    }
                    EXPECT_TRUE(used <= most || pieces.size() == 1) << used << " of " << most;
                    out_there.emplace_back(&*member, std::move(taken));
                } else if (out_there.empty()) {
                    break;
                }
                if (!out_there.empty() && (taken.empty() || random.below(2) != 0))
                    part(random.below(out_there.size()), random.below(8) == 0);
                if (HasFatalFailure()) return;
            }
            while (!out_there.empty()) {
                part(out_there.size() - 1, random.below(2) == 0);
                if (HasFatalFailure()) return;
            }
        }
        bool all = true, any = false;
        for (const auto& fate : fates)
            for (const Fate one : fate) {
                all &= one == Fate::done;
                any |= one != Fate::untouched;
            }
        if (cipher.mode != Mode::gcm) {
            ASSERT_EQ(queue.all_done(), all);
        }
        if (queue.all_done()) {
            ++whole;
            for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(codes[i] == Code::ok, list[i].key < 7);
            continue;
        }
        queue.tell(Code::device);
        for (std::size_t i = 0; i < count; ++i) {
            const auto each = [&](Fate fate) { return std::ranges::count(fates[i], fate); };
            const auto size = static_cast<std::ptrdiff_t>(list[i].size);
            if (list[i].key == 7 || size == 0) continue;
            const Code expected = each(Fate::done) == size        ? Code::ok
                                  : each(Fate::untouched) == size ? Code::device
                                                                  : Code::internal;
            ASSERT_EQ(codes[i], expected) << "message " << i << " of " << count;
            in_part += expected == Code::internal;
            left += expected == Code::device;
        }
        if (any && cipher.mode != Mode::gcm) {
            EXPECT_TRUE(queue.touched());
        }
    }
    std::printf("%zu jobs whole, %zu messages done in part, %zu untouched\n", whole, in_part, left);
    EXPECT_GT(whole, 0u);
    EXPECT_GT(in_part, 0u);
}

// One copy may span neighbours of the list, where each row of them is one allocation; what meets in
// a chunk alone may be of two.
TEST(Extents, JoinNeighboursOfTheListAlone) {
    std::vector<std::uint8_t> memory(4 << 20);
    std::vector<Piece> pieces;
    for (const std::size_t index : {0, 1, 3, 4}) {
        Piece piece;
        piece.index = index;
        piece.message.in = piece.message.out = memory.data() + pieces.size() * (1 << 20);
        piece.message.size = 1 << 20;
        piece.data = pieces.size() * (1 << 20);
        pieces.push_back(piece);
    }
    const auto apart = extents_in(pieces, false), rows = extents_in(pieces, true);
    EXPECT_EQ(apart.size(), 4u);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(rows[0].size, std::size_t{2} << 20);
    EXPECT_EQ(rows[1].in, memory.data() + (2 << 20));
    EXPECT_EQ(extents_out(pieces, true).size(), 2u);
}

}  // namespace
