// SPDX-License-Identifier: Apache-2.0
// What is particular to GCM over OpenCL's buffers: messages spread over several of them, GHASH by
// tables and by multiplications, forgeries that leave nothing behind, and lists that must lie on
// the host.
#include <algorithm>
#include <array>
#include <cstring>

#include <daelstrom/gcm.hpp>

#include "core/device.hpp"
#include "core/registry.hpp"
#include "support/oracle.hpp"
#include "support/subject.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// A message whose parts lie in buffers of their own, or share those of the one before it.
struct Scattered {
    std::size_t key;
    Bytes nonce, aad, plain;
    std::uint8_t *in = nullptr, *out = nullptr, *at_aad = nullptr, *tag = nullptr;
};

class GcmOpenCl : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend("opencl", {GetParam(), 0});
        if (!opened) {
            // A layout that the device has no room for is no fault.
            if (opened.code() != Code::unsupported && required("opencl"))
                FAIL() << opened.error().message;
            GTEST_SKIP() << opened.error().message;
        }
        backend_ = std::move(*opened);
        device_ = backend_->device();
        for (const std::size_t size : {16, 24, 32, 16, 16}) {
            raw_.push_back(random_.bytes(size));
            keys_.push_back(*Key::import(raw_.back()));
        }
        auto made = backend_->tables(keys_);
        ASSERT_TRUE(made) << made.error().message;
        tables_ = std::move(*made);
    }
    void TearDown() override {
        for (void* memory : held_) device_->memory().release(memory);
    }

    std::uint8_t* buffer(std::size_t size) {
        auto made = device_->memory().allocate(std::max<std::size_t>(size, 1));
        EXPECT_TRUE(made) << made.error().message;
        held_.push_back(*made);
        return static_cast<std::uint8_t*>(*made);
    }
    void put(void* to, const Bytes& bytes) {
        ASSERT_TRUE(device_->memory().copy_in(to, bytes.data(), bytes.size(), {}));
    }
    Bytes take(const void* from, std::size_t size) {
        Bytes bytes(size);
        EXPECT_TRUE(device_->memory().copy_out(bytes.data(), from, size, {}));
        EXPECT_TRUE(device_->order().wait(Stream{}));
        return bytes;
    }

    Scattered message(std::size_t key, std::size_t size, std::size_t aad_size) {
        Scattered m{key, random_.bytes(gcm::kNonceSize), random_.bytes(aad_size),
                    random_.bytes(size)};
        m.in = buffer(size);
        m.out = buffer(size);
        m.at_aad = buffer(aad_size);
        m.tag = buffer(gcm::kTagSize);
        return m;
    }
    Sealed expected(const Scattered& m) const {
        return gcm_oracle(raw_[m.key], m.nonce, m.aad, m.plain);
    }
    static Message listed(const Scattered& m) {
        Message message{.in = m.in,
                        .out = m.out,
                        .size = m.plain.size(),
                        .aad = m.at_aad,
                        .aad_size = m.aad.size(),
                        .tag = m.tag,
                        .key = static_cast<std::uint32_t>(m.key)};
        gcm::set_start(message, m.nonce.data());
        return message;
    }
    Result<std::unique_ptr<core::Prepared>> prepare(const Cipher& cipher,
                                                    std::span<const Message> list) {
        return device_->prepare(cipher, {keys_, tables_.get()},
                                {list.data(), static_cast<std::uint32_t>(list.size())});
    }

    std::vector<std::uint32_t> run(Direction direction, const std::vector<Scattered>& messages) {
        std::vector<Message> list;
        for (const Scattered& m : messages) list.push_back(listed(m));
        auto batch = prepare({Mode::gcm, direction}, list);
        EXPECT_TRUE(batch) << batch.error().message;
        if (!batch) return {};
        auto ran = device_->run(**batch, {});
        EXPECT_TRUE(ran) << ran.error().message;
        std::vector<std::uint32_t> codes(messages.size(), 99);
        EXPECT_TRUE(device_->memory().copy_out(codes.data(), (*batch)->results(),
                                               codes.size() * sizeof codes[0], {}));
        EXPECT_TRUE(device_->order().wait(Stream{}));
        return codes;
    }

    Random random_{20261122};
    std::unique_ptr<core::Backend> backend_;
    core::Device* device_ = nullptr;
    std::vector<Bytes> raw_;
    std::vector<Key> keys_;
    std::unique_ptr<core::KeyTables> tables_;
    std::vector<void*> held_;
};

const std::uint32_t kOk = static_cast<std::uint32_t>(Code::ok);
const std::uint32_t kForged = static_cast<std::uint32_t>(Code::authentication);

// Sizes around what a team takes, GMAC, and nothing at all; every part in a buffer of its own.
TEST_P(GcmOpenCl, ABatchAcrossManyBuffers) {
    std::vector<Scattered> messages;
    for (const std::size_t size : {0, 1, 16, 500, 1024, 4096, 70000, 300001})
        messages.push_back(message(messages.size() % 3, size, size % 7 * 5));
    messages.push_back(message(1, 0, 3000));
    messages.push_back(message(2, 0, 200000));
    for (const Scattered& m : messages) {
        put(m.in, m.plain);
        put(m.at_aad, m.aad);
    }
    EXPECT_EQ(run(Direction::encrypt, messages), std::vector<std::uint32_t>(messages.size(), kOk));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Scattered& m = messages[i];
        const Sealed sealed = expected(m);
        ASSERT_EQ(difference(sealed.ciphertext, take(m.out, m.plain.size())), "") << i;
        ASSERT_EQ(difference(sealed.tag, take(m.tag, gcm::kTagSize)), "") << i;
        put(m.in, sealed.ciphertext);
        put(m.out, Bytes(m.plain.size(), Poisoned::kPoison));
    }
    EXPECT_EQ(run(Direction::decrypt, messages), std::vector<std::uint32_t>(messages.size(), kOk));
    for (std::size_t i = 0; i < messages.size(); ++i)
        ASSERT_EQ(difference(messages[i].plain, take(messages[i].out, messages[i].plain.size())),
                  "")
            << i;
}

// Of forged messages, short and long, the output is what it was before, byte for byte; those
// between them open.
TEST_P(GcmOpenCl, ForgedMessagesLeaveTheOutputAlone) {
    std::vector<Scattered> messages;
    for (const std::size_t size : {33, 40, 2000, 2048, 90000, 600001, 1 << 20, 5})
        messages.push_back(message(0, size, 20));
    std::vector<std::uint32_t> wanted;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Scattered& m = messages[i];
        Sealed sealed = expected(m);
        wanted.push_back(i % 2 == 0 ? kForged : kOk);
        if (i % 4 == 0) sealed.tag[random_.below(gcm::kTagSize)] ^= 0x20;
        if (i % 4 == 2) sealed.ciphertext[random_.below(sealed.ciphertext.size())] ^= 1;
        put(m.in, sealed.ciphertext);
        put(m.out, Bytes(m.plain.size(), Poisoned::kPoison));
        put(m.at_aad, m.aad);
        put(m.tag, sealed.tag);
    }
    EXPECT_EQ(run(Direction::decrypt, messages), wanted);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Scattered& m = messages[i];
        const Bytes after = take(m.out, m.plain.size());
        ASSERT_EQ(after, i % 2 == 0 ? Bytes(after.size(), Poisoned::kPoison) : m.plain) << i;
    }
}

// Long messages under several keys of one size, between the same buffers: one launch has them all.
TEST_P(GcmOpenCl, ManyKeysInOneLaunch) {
    constexpr std::size_t kRoom = 160000;
    constexpr std::size_t kCount = 12;
    std::uint8_t *const in = buffer(kRoom * kCount), *const out = buffer(kRoom * kCount),
                        *const tags = buffer(gcm::kTagSize * kCount);
    std::vector<Scattered> messages;
    for (std::size_t i = 0; i < kCount; ++i) {
        const std::size_t size = i % 4 == 3 ? 100 * i : 80000 + random_.below(80000);
        // One in four at an odd place, which has neither counter caching nor whole words.
        const std::size_t at = i * kRoom + (i % 4 == 1 ? i : 0);
        messages.push_back({std::array<std::size_t, 3>{0, 3, 4}[i % 3],
                            random_.bytes(gcm::kNonceSize),
                            {},
                            random_.bytes(std::min(size, kRoom - 16)),
                            in + at,
                            out + at,
                            nullptr,
                            tags + i * gcm::kTagSize});
        put(messages.back().in, messages.back().plain);
    }
    EXPECT_EQ(run(Direction::encrypt, messages), std::vector<std::uint32_t>(kCount, kOk));
    std::vector<std::uint32_t> wanted(kCount, kOk);
    for (std::size_t i = 0; i < kCount; ++i) {
        const Scattered& m = messages[i];
        Sealed sealed = expected(m);
        ASSERT_EQ(difference(sealed.ciphertext, take(m.out, m.plain.size())), "") << i;
        ASSERT_EQ(difference(sealed.tag, take(m.tag, gcm::kTagSize)), "") << i;
        if (i % 5 == 2) {
            wanted[i] = kForged;
            sealed.ciphertext.back() ^= 0x80;
        }
        put(m.in, sealed.ciphertext);
        put(m.out, Bytes(m.plain.size(), Poisoned::kPoison));
    }
    EXPECT_EQ(run(Direction::decrypt, messages), wanted);
    for (std::size_t i = 0; i < kCount; ++i) {
        const Scattered& m = messages[i];
        const Bytes after = take(m.out, m.plain.size());
        ASSERT_EQ(after, wanted[i] == kOk ? m.plain : Bytes(after.size(), Poisoned::kPoison)) << i;
    }
}

// Nothing counts as verified before it is.
TEST_P(GcmOpenCl, ResultsAreNotOkBeforeARun) {
    const std::vector<Message> list(3, listed(message(0, 64, 16)));
    const auto batch = prepare(gcm::opening(), list);
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ(take((*batch)->results(), 12), Bytes(12, 0xff));
}

// Counter mode alone: any first counter, and no results.
TEST_P(GcmOpenCl, CounterModeAlone) {
    Scattered m = message(2, 100000, 0);
    put(m.in, m.plain);
    Message one = listed(m);
    for (const Direction direction : {Direction::encrypt, Direction::decrypt})
        for (const std::uint8_t skip : {std::uint8_t{0}, std::uint8_t{5}}) {
            one.start.back() = direction == Direction::encrypt ? 1 : 0;
            one.skip = skip;
            auto batch = prepare({Mode::gcm_ctr, direction}, std::span(&one, 1));
            ASSERT_TRUE(batch) << batch.error().message;
            ASSERT_TRUE(device_->run(**batch, {}));
            const Use ctr{Mode::ctr, Direction::encrypt, one.start, skip};
            EXPECT_EQ(difference(oracle(raw_[2], ctr, m.plain), take(m.out, m.plain.size())), "");
            EXPECT_EQ((*batch)->results(), nullptr);
        }
}

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

TEST_P(GcmOpenCl, AnEmptyBatchIsNoWork) {
    for (const Mode mode : kModes) {
        if (mode == Mode::xts) continue;  // which takes other keys
        auto batch = prepare({mode}, {});
        ASSERT_TRUE(batch) << batch.error().message;
        EXPECT_TRUE(device_->run(**batch, {}));
    }
}

TEST_P(GcmOpenCl, WhatItRefuses) {
    EXPECT_FALSE(device_->info().reads_lists);
    const auto* list = reinterpret_cast<const Message*>(buffer(sizeof(Message)));
    const auto there =
        device_->prepare(gcm::sealing(), {keys_, tables_.get()}, {list, 1, dael::Place::device});
    EXPECT_EQ(there.code(), Code::unsupported);
    EXPECT_NE(there.error().message.find("host memory"), std::string::npos);

    const Scattered m = message(0, 64, 0);
    Message too_long = listed(m), on_host = listed(m);
    too_long.size = 4096;  // beyond the buffer
    Bytes here(64);
    on_host.in = here.data();
    for (const Message& bad : {too_long, on_host})
        EXPECT_EQ(prepare(gcm::sealing(), std::span(&bad, 1)).code(), Code::invalid_argument);

    auto other = core::open_backend("opencl", {GetParam(), 0});
    ASSERT_TRUE(other);
    const Message good = listed(m);
    EXPECT_EQ(
        (*other)->device()->prepare(gcm::sealing(), {keys_, tables_.get()}, {&good, 1}).code(),
        Code::invalid_argument);
    auto batch = prepare(gcm::sealing(), std::span(&good, 1));
    ASSERT_TRUE(batch) << batch.error().message;
    EXPECT_EQ((*other)->device()->run(**batch, {}).code(), Code::invalid_argument);
}

// GHASH by multiplications where no table has room or none is wanted, else by a table where
// messages are long.
INSTANTIATE_TEST_SUITE_P(OpenCl, GcmOpenCl, ::testing::Values("tables=-1", "tables=1,teams=4"),
                         [](const auto& shape) {
                             return shape.index == 0 ? "multiplications" : "tables";
                         });

}  // namespace
