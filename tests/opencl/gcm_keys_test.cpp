// SPDX-License-Identifier: Apache-2.0
// Batches with a key for each message, keys that are replaced, and a message in pieces.
#include "opencl/gcm_fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// CBC encryption with a key for each message, of all sizes, between two pairs of buffers.
TEST_P(GcmOpenCl, CbcWithAKeyForEachMessage) {
    constexpr std::size_t kCount = 100, kRoom = 1024;
    std::uint8_t* const from[] = {buffer(kRoom * kCount), buffer(kRoom * kCount)};
    std::uint8_t* const to[] = {buffer(kRoom * kCount), from[1]};  // the second pair is in place
    std::vector<Bytes> plain;
    std::vector<Message> messages;
    for (std::size_t i = 0; i < kCount; ++i) {
        plain.push_back(random_.bytes(random_.below(kRoom / 16 + 1) * 16));
        const std::size_t at = i * kRoom;
        messages.push_back({.in = from[i % 2] + at,
                            .out = to[i % 2] + at,
                            .size = plain[i].size(),
                            .start = random_.block(),
                            .key = static_cast<std::uint32_t>(random_.below(raw_.size()))});
        put(from[i % 2] + at, plain[i]);
    }
    auto batch = prepare({Mode::cbc}, messages);
    ASSERT_TRUE(batch) << batch.error().message;
    const auto ran = device_->run(**batch, {});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ((*batch)->results(), nullptr);
    for (std::size_t i = 0; i < kCount; ++i) {
        const Use cbc{Mode::cbc, Direction::encrypt, messages[i].start};
        ASSERT_EQ(difference(oracle(raw_[messages[i].key], cbc, plain[i]),
                             take(messages[i].out, plain[i].size())),
                  "")
            << i;
    }
}

// Counter mode with a key for each message goes by GCM's kernel: any counter, any skip.
TEST_P(GcmOpenCl, CtrWithAKeyForEachMessage) {
    constexpr std::size_t kCount = 60, kRoom = 20'000;
    std::uint8_t* const memory = buffer(kRoom * kCount);
    std::vector<Bytes> plain;
    std::vector<Message> messages;
    for (std::size_t i = 0; i < kCount; ++i) {
        plain.push_back(random_.bytes(random_.below(i % 10 == 0 ? kRoom : 300)));
        std::uint8_t* const at = memory + i * kRoom + i % 3;
        messages.push_back({.in = at,
                            .out = at,
                            .size = plain[i].size(),
                            .start = random_.block(),
                            .key = static_cast<std::uint32_t>(random_.below(raw_.size())),
                            .skip = static_cast<std::uint8_t>(i % 2 == 0 ? 0 : i % 16)});
        put(at, plain[i]);
    }
    const auto batch = prepare({Mode::ctr}, messages);
    ASSERT_TRUE(batch) << batch.error().message;
    const auto ran = device_->run(**batch, {});
    ASSERT_TRUE(ran) << ran.error().message;
    for (std::size_t i = 0; i < kCount; ++i) {
        const Message& m = messages[i];
        const Use ctr{Mode::ctr, Direction::encrypt, m.start, m.skip};
        ASSERT_EQ(difference(oracle(raw_[m.key], ctr, plain[i]), take(m.out, m.size)), "") << i;
    }
}

// A key of another size in another's place: batches that were prepared before have it.
TEST_P(GcmOpenCl, AKeyIsReplaced) {
    std::vector<Scattered> messages{message(0, 5000, 20), message(3, 100, 0), message(0, 0, 7)};
    for (const Scattered& m : messages) {
        put(m.in, m.plain);
        put(m.at_aad, m.aad);
    }
    std::vector<Message> list;
    for (const Scattered& m : messages) list.push_back(listed(m));
    const auto batch = prepare(gcm::sealing(), list);
    ASSERT_TRUE(batch) << batch.error().message;
    for (const std::size_t size : {16, 32, 24}) {
        raw_[0] = random_.bytes(size);
        ASSERT_TRUE(tables_->replace(0, *Key::import(raw_[0]), {}));
        ASSERT_TRUE(device_->run(**batch, {}));
        for (const Scattered& m : messages) {
            const Sealed sealed = expected(m);
            ASSERT_EQ(difference(sealed.ciphertext, take(m.out, m.plain.size())), "") << size;
            ASSERT_EQ(difference(sealed.tag, take(m.tag, gcm::kTagSize)), "") << size;
        }
    }
}

// In pieces of all sizes, over what gathers at once; a copy goes its own way.
TEST_P(GcmOpenCl, PiecesAreClonedAndBegunAnew) {
    const Bytes aad = random_.bytes(33), plain = random_.bytes((std::size_t{4} << 20) + 12345);
    gcm::Nonce nonce{};
    const auto pieces =
        backend_->begin(gcm::sealing(), {keys_, tables_.get()}, 1, gcm::start(nonce));
    ASSERT_TRUE(pieces) << pieces.error().message;
    Bytes made(plain.size()), twin(plain.size());
    const auto expected = [&] { return gcm_oracle(raw_[1], nonce, aad, plain); };
    const std::size_t middle = 1'000'003;
    ASSERT_TRUE((*pieces)->aad(aad));
    ASSERT_TRUE((*pieces)->update(plain.data(), made.data(), middle));
    const auto copy = (*pieces)->clone();
    ASSERT_TRUE(copy) << copy.error().message;
    const auto end = [&](core::Pieces& what, Bytes& out) {
        EXPECT_TRUE(what.update(plain.data() + middle, out.data() + middle, plain.size() - middle));
        const auto tag = what.finish();
        EXPECT_TRUE(tag && difference(expected().tag, *tag).empty());
    };
    end(**pieces, made);
    EXPECT_EQ(difference(expected().ciphertext, made), "");
    std::copy_n(made.begin(), middle, twin.begin());
    end(**copy, twin);
    EXPECT_EQ(difference(made, twin), "");
    nonce[3] = 1;
    ASSERT_TRUE((*copy)->restart(gcm::start(nonce)));
    ASSERT_TRUE((*copy)->aad(aad));
    ASSERT_TRUE((*copy)->update(plain.data(), twin.data(), middle));
    end(**copy, twin);
    EXPECT_EQ(difference(expected().ciphertext, twin), "");
}

}  // namespace
