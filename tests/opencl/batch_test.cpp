// SPDX-License-Identifier: Apache-2.0
// Batches in the modes that do not authenticate: over several buffers, without input, under several
// keys, with keys that are replaced, on several queues.
#include <array>

#include <daelstrom/gcm.hpp>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

using OpenClBatch = OpenClTest;

// One batch whose messages lie in several buffers, some in place, every mode; and the shape of
// kernels changed between prepare() and run(), which is to hold for later work only.
TEST_F(OpenClBatch, ABatchOverSeveralBuffers) {
    const Bytes raw = pattern(24);
    const Key key = *Key::import(raw);
    constexpr std::size_t kRoom = 3000;
    Random random(31415);
    for (const auto& [mode, direction] :
         std::initializer_list<std::pair<Mode, Direction>>{{Mode::ecb, Direction::decrypt},
                                                           {Mode::ctr, Direction::encrypt},
                                                           {Mode::cbc, Direction::decrypt},
                                                           {Mode::cfb, Direction::decrypt},
                                                           {Mode::cbc, Direction::encrypt},
                                                           {Mode::cfb, Direction::encrypt},
                                                           {Mode::ofb, Direction::encrypt}}) {
        std::array<std::uint8_t*, 3> buffers{};
        std::array<Bytes, 3> contents;
        for (std::size_t b = 0; b < buffers.size(); ++b) {
            contents[b] = random.bytes(40 * kRoom);
            buffers[b] = put(contents[b]);
        }
        std::array<Bytes, 3> expected = contents;
        std::vector<Message> list;
        for (std::size_t m = 0; m < 40; ++m) {
            // Inputs from buffers 0 and 1; outputs to buffer 2, or in place in buffer 0.
            const std::size_t from = m % 2, to = m % 3 == 0 ? 0 : 2;
            if (to == 0 && from != 0) continue;
            const std::size_t size = random.below(kRoom / 16) * 16, at = m * kRoom;
            const Block iv = random.block();
            list.push_back(message(buffers[from] + at, buffers[to] + at, size, iv));
            const Bytes in(contents[from].begin() + static_cast<std::ptrdiff_t>(at),
                           contents[from].begin() + static_cast<std::ptrdiff_t>(at + size));
            std::ranges::copy(oracle(raw, {mode, direction, iv, 0}, in),
                              expected[to].begin() + static_cast<std::ptrdiff_t>(at));
        }
        const std::string shape = device_->in_use();
        const auto batch = prepare({mode, direction}, std::span(&key, 1), list);
        ASSERT_TRUE(batch) << batch.error().message;
        ASSERT_TRUE(device_->use(device_->list().back()));
        const auto ran = device_->run(**batch, {});
        ASSERT_TRUE(ran) << ran.error().message;
        for (std::size_t b = 0; b < buffers.size(); ++b) {
            EXPECT_EQ(difference(expected[b], get(buffers[b], expected[b].size())), "")
                << name(mode) << " " << name(direction) << ", buffer " << b;
            device_->memory().release(buffers[b]);
        }
        ASSERT_TRUE(device_->use(shape));
    }
}

// The keystream by itself, from every kernel that makes one; nothing is read.
TEST_F(OpenClBatch, KeystreamWithoutInput) {
    for (const char* form : {"", "tables=1,teams=4"}) {
        device_ = open(form);
        ASSERT_TRUE(device_);
        const Bytes raw[] = {pattern(32), pattern(16)};
        const Key keys[] = {*Key::import(raw[0]), *Key::import(raw[1])};
        for (const std::size_t size : {std::size_t{100}, (std::size_t{4} << 20) + 5}) {
            if (*form == 0 && size > 100) continue;  // that kernel has tables
            Bytes poison(size, Poisoned::kPoison);
            auto *alone = put(poison), *first = put(poison), *second = put(poison);
            const Block start = random_block(1);
            ASSERT_TRUE(run({Mode::ctr}, keys[0], message(nullptr, alone, size, start)));
            Message list[] = {message(nullptr, first, size, start, 3),
                              message(nullptr, second, size, start)};
            for (const std::uint32_t second_key : {0u, 1u}) {
                list[1].key = second_key;
                const auto batch = prepare({Mode::ctr}, keys, list);
                ASSERT_TRUE(batch) << batch.error().message;
                ASSERT_TRUE(device_->run(**batch, {}));
                const Bytes zeros(size);
                const auto want = [&](const Bytes& key, std::uint64_t skip) {
                    return oracle(key, {Mode::ctr, Direction::encrypt, start, skip}, zeros);
                };
                EXPECT_EQ(difference(want(raw[0], 0), get(alone, size)), "");
                EXPECT_EQ(difference(want(raw[0], 3), get(first, size)), "");
                EXPECT_EQ(difference(want(raw[second_key], 0), get(second, size)), "");
            }
            for (auto* memory : {alone, first, second}) device_->memory().release(memory);
        }
        tables_.clear();
    }
}

// Kernels with several keys count in 32 bits, as GCM does.
TEST_F(OpenClBatch, SeveralKeysAreForThoseModesThatTakeThem) {
    const Key keys[] = {*Key::import(pattern(16)), *Key::import(pattern(24))};
    auto* memory = allocate(256);
    Message list[] = {message(memory, memory, 64), message(memory + 64, memory + 64, 64)};
    list[1].key = 1;
    for (const Cipher& cipher : {Cipher{Mode::ecb}, Cipher{Mode::cbc, Direction::decrypt},
                                 Cipher{Mode::cfb}, Cipher{Mode::ofb}})
        DAEL_EXPECT_REFUSED(prepare(cipher, keys, list), Code::unsupported, "divide");
    EXPECT_TRUE(prepare({Mode::ctr}, keys, list));
    list[0].start.fill(0xff);
    DAEL_EXPECT_REFUSED(prepare({Mode::ctr}, keys, list), Code::unsupported, "wrap");
    list[0].start[15] = 0xfc;  // the last of four blocks is the last before the wrap
    EXPECT_TRUE(prepare({Mode::ctr}, keys, list));
}

// What has been launched has the old key, what is launched next the new one, of any size.
TEST_F(OpenClBatch, AKeyIsReplacedInTheStreamsOrder) {
    const Bytes in = pattern(5000), raw[] = {pattern(16), pattern(24), pattern(32)};
    const Key keys[] = {*Key::import(raw[0]), *Key::import(raw[0])}, second = *Key::import(raw[1]),
              third = *Key::import(raw[2]);
    auto& set = tables(keys);
    const Block start = random_block(5);
    for (const Cipher& cipher : {Cipher{Mode::ecb}, Cipher{Mode::cbc}, Cipher{Mode::ctr}}) {
        // A batch under one key, which kernels take as an argument, and one under two.
        for (const std::uint32_t last_key : {0u, 1u}) {
            if (last_key == 1 && cipher.mode == Mode::ecb) continue;
            ASSERT_TRUE(set.replace(0, keys[0], {}));
            auto *from = put(in), *to = allocate(in.size()), *other = allocate(in.size());
            const std::size_t size = in.size() / 16 * 16;
            Message list[] = {message(from, to, size, start), message(from, other, 64, start)};
            list[1].key = last_key;
            auto batch = device_->prepare(cipher, {keys, &set}, {list, 2});
            ASSERT_TRUE(batch) << batch.error().message;
            for (std::size_t n = 0; n < 3; ++n) {
                ASSERT_TRUE(device_->run(**batch, {}));
                const Bytes made = oracle(raw[n], {cipher.mode, Direction::encrypt, start},
                                          std::span(in).first(size));
                EXPECT_EQ(difference(made, get(to, size)), "") << n << " " << name(cipher.mode);
                ASSERT_TRUE(set.replace(0, n == 0 ? second : third, {}));
            }
            batch = Error{};
            for (auto* memory : {from, to, other}) device_->memory().release(memory);
        }
    }
    DAEL_EXPECT_REFUSED(set.replace(2, second, {}), Code::invalid_argument, "no such key");
}

// A batch has one workspace: its runs follow each other, whichever streams they are on.
TEST_F(OpenClBatch, RunsOfABatchOnSeveralStreamsFollowEachOther) {
    const Bytes raw = pattern(16), in = pattern(300'000);
    const Key key = *Key::import(raw);
    auto *memory = put(in), *tag = allocate(gcm::kTagSize);
    Message what = message(memory, memory, in.size(), gcm::start(gcm::Nonce{}));
    what.tag = tag;
    const auto batch = prepare(gcm::sealing(), key, what);
    ASSERT_TRUE(batch) << batch.error().message;
    const Stream streams[] = {*device_->order().create_stream(), *device_->order().create_stream()};
    Bytes expected = in, last_tag;
    for (int n = 0; n < 6; ++n) {
        ASSERT_TRUE(device_->run(**batch, streams[n % 2]));
        Sealed sealed = gcm_oracle(raw, gcm::Nonce{}, {}, expected);
        expected = std::move(sealed.ciphertext);
        last_tag = std::move(sealed.tag);
    }
    EXPECT_EQ(difference(expected, get(memory, in.size(), streams[1])), "");
    EXPECT_EQ(difference(last_tag, get(tag, gcm::kTagSize, streams[1])), "");
    EXPECT_TRUE((*batch)->outcome());
    for (const Stream stream : streams) device_->order().destroy_stream(stream);
}

}  // namespace
