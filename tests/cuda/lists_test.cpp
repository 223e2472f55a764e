// SPDX-License-Identifier: Apache-2.0
// Lists of messages in device memory, as kernels make them: nobody has checked them, their number
// and their nonces may lie there too. And keys that are replaced in the order of a stream.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cuda/fixture.hpp"

namespace dael::test {
namespace {

constexpr Cipher kSeal{Mode::gcm, Direction::encrypt};

class Lists : public CudaTest {
  protected:
    static constexpr std::size_t kRoom = 100000;  // for each message's data

    // `count` messages of these sizes in turn, in and out in device memory.
    void make(std::size_t count, const std::vector<std::size_t>& sizes, std::uint32_t keys) {
        plain_ = random_.bytes(count * kRoom);
        in_ = put(plain_);
        out_ = put(Bytes(plain_.size(), Poisoned::kPoison));
        tags_ = put(Bytes(count * 16, Poisoned::kPoison));
        for (std::size_t i = 0; i < count; ++i) {
            Message& m = messages_.emplace_back();
            m.in = in_ + i * kRoom;
            m.out = out_ + i * kRoom;
            m.size = sizes[i % sizes.size()];
            m.tag = tags_ + i * 16;
            m.start = gcm::start({static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 8)});
            m.key = static_cast<std::uint32_t>(i % keys);
        }
        list_ = reinterpret_cast<Message*>(allocate(count * sizeof(Message)));
        put(list_, messages_.data(), count * sizeof(Message));
    }
    std::unique_ptr<core::KeyTables> tables(const KeyRing& ring) {
        auto made = device_->tables(ring.keys);
        EXPECT_TRUE(made) << made.error().message;
        return made ? std::move(*made) : nullptr;
    }
    Messages listed() const {
        return {list_, static_cast<std::uint32_t>(messages_.size()), Place::device};
    }
    std::vector<Code> codes(const core::Prepared& batch) {
        std::vector<std::uint32_t> raw(messages_.size());
        const Bytes bytes = get(batch.results(), raw.size() * 4);
        std::memcpy(raw.data(), bytes.data(), bytes.size());
        std::vector<Code> codes;
        for (const std::uint32_t code : raw) codes.push_back(static_cast<Code>(code));
        return codes;
    }
    // Whether message i was sealed from this start, or is untouched.
    void expect_sealed(const KeyRing& ring, std::size_t i, const Block& start) {
        const Message& m = messages_[i];
        Message host = m;
        host.in = plain_.data() + i * kRoom;
        host.start = start;
        const Answer answer = oracle(ring.raw[m.key], kSeal, host);
        EXPECT_EQ(difference(answer.out, get(m.out, m.size)), "") << i << ": " << m.size;
        EXPECT_EQ(difference(answer.tag, get(m.tag, 16)), "") << i << ": " << m.size;
    }
    void expect_untouched(std::size_t i) {
        EXPECT_EQ(get(out_ + i * kRoom, kRoom), Bytes(kRoom, Poisoned::kPoison)) << i;
        EXPECT_EQ(get(tags_ + i * 16, 16), Bytes(16, Poisoned::kPoison)) << i;
    }
    void run(core::Prepared& batch) {
        const auto ran = device_->run(batch, stream_);
        ASSERT_TRUE(ran) << ran.error().message;
        wait();
    }

    Random random_{4711};
    Bytes plain_;
    std::uint8_t *in_ = nullptr, *out_ = nullptr, *tags_ = nullptr;
    std::vector<Message> messages_;
    Message* list_ = nullptr;
};

TEST_F(Lists, WhatMakesNoSenseHasAResultAndFaultsNothing) {
    struct Case {
        Mode mode;
        std::uint32_t keys = 2;
    };
    // Short messages of one key by 64, and others.
    device_->force_quads();
    for (const auto [mode, key_count] :
         {Case{Mode::gcm, 1}, Case{Mode::gcm}, Case{Mode::gcm_ctr}, Case{Mode::cbc}}) {
        SCOPED_TRACE(name(mode));
        messages_.clear();
        const KeyRing ring(random_, key_count);
        make(16, {64, 20000}, key_count);
        std::vector<Code> expected(16, Code::ok);
        const auto spoil = [&](std::size_t i, Code code) -> Message& {
            expected[i] = code;
            return messages_[i];
        };
        auto* const top = reinterpret_cast<std::uint8_t*>(~std::uintptr_t{15});
        spoil(1, Code::invalid_argument).key = 2;
        spoil(2, Code::invalid_argument).out = nullptr;
        spoil(3, Code::invalid_argument).out = top;  // ends past the last address
        if (mode != Mode::gcm_ctr) spoil(4, Code::invalid_argument).in = nullptr;
        spoil(5, Code::invalid_argument).in = top;
        // All zeros: nothing to do, but for GCM there is nowhere to put the tag.
        (mode == Mode::gcm ? spoil(6, Code::invalid_argument) : messages_[6]) = Message{};
        if (mode == Mode::gcm) {
            spoil(7, Code::invalid_argument).tag = nullptr;
            spoil(8, Code::invalid_argument).tag = top;
            spoil(9, Code::invalid_argument).aad_size = 5;
            spoil(10, Code::limit).size = ~std::uint64_t{0};
            spoil(11, Code::limit).aad_size = ~std::uint64_t{0};
            spoil(12, Code::invalid_argument).skip = 3;
        }
        if (mode == Mode::gcm_ctr) {
            spoil(7, Code::invalid_argument).skip = 16;
            spoil(8, Code::limit).size = std::uint64_t{1} << 40;
            spoil(9, Code::invalid_argument).aad_size = 5;
        }
        if (mode == Mode::cbc) spoil(7, Code::ragged_length).size = 65;
        put(list_, messages_.data(), messages_.size() * sizeof(Message));
        const auto keys = tables(ring);
        auto batch = device_->prepare({mode}, {ring.keys, keys.get()}, listed());
        ASSERT_TRUE(batch) << batch.error().message;
        run(**batch);
        EXPECT_EQ(codes(**batch), expected);
        for (std::size_t i = 0; i < expected.size(); ++i)
            if (expected[i] != Code::ok) expect_untouched(i);
        if (mode == Mode::gcm)
            for (const std::size_t i : {0, 13, 14, 15}) expect_sealed(ring, i, messages_[i].start);
    }
}

TEST_F(Lists, NoncesCountOnTheDevice) {
    const KeyRing ring(random_, 3);
    make(50, {0, 100, 8192, 8193, 40000}, 3);
    DeviceNonces nonces{{1, 2, 3, 4}, 0, 0xffffffff - 70};  // carries into the upper half
    auto* const there = reinterpret_cast<DeviceNonces*>(allocate(sizeof nonces));
    put(there, &nonces, sizeof nonces);
    Messages list = listed();
    list.nonces = there;
    const auto keys = tables(ring);
    for (const Cipher cipher : {kSeal, Cipher{Mode::gcm_ctr}}) {
        auto batch = device_->prepare(cipher, {ring.keys, keys.get()}, list);
        ASSERT_TRUE(batch) << batch.error().message;
        for (int launch = 0; launch < 2; ++launch) {
            run(**batch);
            EXPECT_EQ(codes(**batch), std::vector<Code>(50, Code::ok));
            for (std::size_t i = 0; i < messages_.size(); ++i) {
                const std::uint64_t number = nonces.next + i;
                gcm::Nonce nonce{1, 2, 3, 4};
                for (std::size_t b = 0; b < 8; ++b)
                    nonce[4 + b] = static_cast<std::uint8_t>(number >> (56 - 8 * b));
                const Bytes start = get(&list_[i].start, 16);
                ASSERT_TRUE(std::ranges::equal(start, gcm::start(nonce))) << i;
                if (cipher.mode == Mode::gcm) expect_sealed(ring, i, gcm::start(nonce));
            }
            nonces.next += messages_.size();
            const Bytes now = get(there, sizeof nonces);
            EXPECT_EQ(std::memcmp(now.data(), &nonces, sizeof nonces), 0);
        }
    }
}

TEST_F(Lists, TheirNumberIsReadWhenTheyRun) {
    device_->force_quads();
    const KeyRing ring(random_, 1);
    make(20, {100, 30000}, 1);
    auto* const number = reinterpret_cast<std::uint32_t*>(allocate(4));
    Messages list = listed();
    list.number = number;
    const auto keys = tables(ring);
    auto batch = device_->prepare(kSeal, {ring.keys, keys.get()}, list);
    ASSERT_TRUE(batch) << batch.error().message;
    std::uint32_t done = 0;
    for (const std::uint32_t now : {0u, 1u, 6u, 20u, 4000000000u}) {
        put(number, &now, 4);
        run(**batch);
        done = std::min(now, 20u);
        const auto results = codes(**batch);
        for (std::size_t i = 0; i < messages_.size(); ++i) {
            if (i < done) {
                EXPECT_EQ(results[i], Code::ok) << i << " of " << now;
                expect_sealed(ring, i, messages_[i].start);
            } else {
                EXPECT_EQ(results[i], Code::internal) << i << " of " << now;
                expect_untouched(i);
            }
        }
    }
}

// One batch, whose list changes between launches: whether any message is long is found out each
// time, in a graph as well, and with a number that leaves places empty.
TEST_F(Lists, WhetherAnyIsLongIsFoundOutAtEachLaunch) {
    device_->force_quads();
    for (const std::uint32_t key_count : {1u, 3u}) {
        messages_.clear();
        const KeyRing ring(random_, key_count);
        make(60, {0, 100, 1024, 8192, 1500}, key_count);
        const std::vector<Message> short_ones = messages_;
        auto* const number = reinterpret_cast<std::uint32_t*>(allocate(4));
        const auto keys = tables(ring);
        for (const bool numbered : {false, true}) {
            Messages list = listed();
            if (numbered) list.number = number;
            auto batch = device_->prepare(kSeal, {ring.keys, keys.get()}, list);
            ASSERT_TRUE(batch) << batch.error().message;
            const auto handle = static_cast<cudaStream_t>(stream_.handle);
            cudaGraphExec_t replay = nullptr;
            for (const std::size_t long_ones : {0, 1, 0, 20, 0}) {
                messages_ = short_ones;
                for (std::size_t i = 0; i < long_ones; ++i) {
                    messages_[59 - i * 2].size = 8193 + i * 4000;
                    messages_[59 - i * 2].key = 0;
                }
                const std::uint32_t now = numbered ? 59 + long_ones % 2 : 60;
                put(number, &now, 4);
                put(list_, messages_.data(), messages_.size() * sizeof(Message));
                for (const bool graph : {false, true}) {
                    put(out_, Bytes(plain_.size(), Poisoned::kPoison).data(), plain_.size());
                    put(tags_, Bytes(60 * 16, Poisoned::kPoison).data(), 60 * 16);
                    if (!graph) {
                        run(**batch);
                    } else {
                        if (!replay) {
                            cudaGraph_t made = nullptr;
                            ASSERT_EQ(
                                cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal),
                                cudaSuccess);
                            EXPECT_TRUE(device_->run(**batch, stream_));
                            ASSERT_EQ(cudaStreamEndCapture(handle, &made), cudaSuccess);
                            ASSERT_EQ(cudaGraphInstantiate(&replay, made, 0), cudaSuccess);
                            ASSERT_EQ(cudaGraphDestroy(made), cudaSuccess);
                        }
                        ASSERT_EQ(cudaGraphLaunch(replay, handle), cudaSuccess);
                        wait();
                    }
                    const auto results = codes(**batch);
                    for (std::size_t i = 0; i < messages_.size(); ++i) {
                        ASSERT_EQ(results[i], i < now ? Code::ok : Code::internal) << i;
                        if (i < now)
                            expect_sealed(ring, i, messages_[i].start);
                        else
                            expect_untouched(i);
                    }
                }
            }
            EXPECT_EQ(cudaGraphExecDestroy(replay), cudaSuccess);
        }
    }
}

// Without kernels for long messages where none is said to come, and one that comes is left alone.
TEST_F(Lists, NoneIsLongerThanWasPromised) {
    const KeyRing ring(random_, 3);
    make(40, {0, 100, 8192, 8193, 1500, 20000}, 3);
    auto* const number = reinterpret_cast<std::uint32_t*>(allocate(4));
    const std::uint32_t count = 30;
    put(number, &count, 4);
    const auto keys = tables(ring);
    for (const Cipher cipher : {kSeal, Cipher{Mode::gcm_ctr}})
        for (const std::uint64_t longest : {100u, 8192u, 10000u, 20000u})
            for (const bool numbered : {false, true}) {
                const Bytes poison(plain_.size(), Poisoned::kPoison);
                put(out_, poison.data(), poison.size());
                put(tags_, poison.data(), messages_.size() * 16);
                Messages list = listed();
                list.longest = longest;
                if (numbered) list.number = number;
                auto batch = device_->prepare(cipher, {ring.keys, keys.get()}, list);
                ASSERT_TRUE(batch) << batch.error().message;
                run(**batch);
                const auto results = codes(**batch);
                for (std::size_t i = 0; i < messages_.size(); ++i) {
                    const bool there = !numbered || i < count;
                    const bool fits = messages_[i].size <= longest;
                    ASSERT_EQ(results[i], !there  ? Code::internal
                                          : !fits ? Code::limit
                                                  : Code::ok)
                        << i << ", at most " << longest;
                    if (!there || !fits)
                        expect_untouched(i);
                    else if (cipher.mode == Mode::gcm)
                        expect_sealed(ring, i, messages_[i].start);
                }
            }
}

// Lists of more messages than a block of threads plans, long ones here and there.
TEST_F(Lists, ManyThatAreShortAndSomeLong) {
    const KeyRing ring(random_, 1);
    constexpr std::uint32_t kCount = 70'000;
    constexpr std::size_t kEach = 160, kLong = 12'000;
    const auto is_long = [](std::size_t i) { return i % 9001 == 5 || i + 1 == kCount; };
    plain_ = random_.bytes(kCount * kEach + kLong);
    in_ = put(plain_);
    std::size_t all = 0;
    std::vector<std::size_t> places;
    for (std::uint32_t i = 0; i < kCount; ++i) {
        places.push_back(all);
        all += is_long(i) ? kLong : kEach;
    }
    out_ = put(Bytes(all, Poisoned::kPoison));
    tags_ = put(Bytes(kCount * 16, Poisoned::kPoison));
    for (std::uint32_t i = 0; i < kCount; ++i) {
        Message& m = messages_.emplace_back();
        m.in = in_ + i * kEach;
        m.out = out_ + places[i];
        m.size = is_long(i) ? kLong : i % (kEach + 1);
        m.tag = tags_ + i * std::size_t{16};
    }
    list_ = reinterpret_cast<Message*>(allocate(kCount * sizeof(Message)));
    put(list_, messages_.data(), kCount * sizeof(Message));
    DeviceNonces nonces{{1, 2, 3, 4}, 0, 7};
    auto* const there = reinterpret_cast<DeviceNonces*>(allocate(sizeof nonces));
    put(there, &nonces, sizeof nonces);
    Messages list = listed();
    list.nonces = there;
    const auto keys = tables(ring);
    auto batch = device_->prepare(kSeal, {ring.keys, keys.get()}, list);
    ASSERT_TRUE(batch) << batch.error().message;
    for (int launch = 0; launch < 2; ++launch) {
        run(**batch);
        EXPECT_EQ(codes(**batch), std::vector<Code>(kCount, Code::ok));
        const Bytes out = get(out_, all), tags = get(tags_, kCount * 16);
        for (std::uint32_t i = 0; i < kCount; ++i) {
            if (!is_long(i) && i % 97 != 0) continue;
            const std::uint64_t number = nonces.next + i;
            gcm::Nonce nonce{1, 2, 3, 4};
            for (std::size_t b = 0; b < 8; ++b)
                nonce[4 + b] = static_cast<std::uint8_t>(number >> (56 - 8 * b));
            Message host = messages_[i];
            host.in = plain_.data() + i * kEach;
            host.start = gcm::start(nonce);
            const Answer answer = oracle(ring.raw[0], kSeal, host);
            ASSERT_EQ(difference(answer.out, std::span(out).subspan(places[i], host.size)), "")
                << i;
            ASSERT_EQ(difference(answer.tag, std::span(tags).subspan(i * 16, 16)), "") << i;
        }
        nonces.next += kCount;
    }
}

// What GHASH needs is made when the first batch comes that hashes: after counter mode, with keys
// that were replaced meanwhile or not, in sets that travel with launches and in larger ones.
TEST_F(Lists, KeysAreReadyForGhashAtTheFirstNeed) {
    for (const std::uint32_t count : {1u, 4u, 5u, 300u})
        for (const bool replaced : {false, true}) {
            messages_.clear();
            KeyRing ring(random_, count);
            make(8, {3000, 40000}, count);
            const auto keys = tables(ring);
            auto counters = device_->prepare({Mode::gcm_ctr}, {ring.keys, keys.get()}, listed());
            ASSERT_TRUE(counters) << counters.error().message;
            run(**counters);
            if (replaced) {
                ring.raw[0] = random_.bytes(24);
                ring.keys[0] = std::move(*Key::import(ring.raw[0]));
                ASSERT_TRUE(keys->replace(0, ring.keys[0], stream_));
            }
            auto batch = device_->prepare(kSeal, {ring.keys, keys.get()}, listed());
            ASSERT_TRUE(batch) << batch.error().message;
            run(**batch);
            EXPECT_EQ(codes(**batch), std::vector<Code>(8, Code::ok));
            for (std::size_t i = 0; i < 8; ++i) expect_sealed(ring, i, messages_[i].start);
        }
}

// What was launched before has the old key, what is launched after has the new one: of another size
// too, as a parameter of kernels (one key) and in device memory (many), without tables as well.
TEST_F(Lists, KeysAreReplacedInTheStreamsOrder) {
    for (const std::uint32_t count : {1u, 3u, 1u, 3u}) {
        messages_.clear();
        const KeyRing ring(random_, count);
        make(12, {100, 50000}, count);
        const auto keys = tables(ring);
        auto listed_there = device_->prepare(kSeal, {ring.keys, keys.get()}, listed());
        auto listed_here =
            device_->prepare(kSeal, {ring.keys, keys.get()},
                             {messages_.data(), static_cast<std::uint32_t>(messages_.size())});
        ASSERT_TRUE(listed_there && listed_here);
        Bytes raw = ring.raw[0];
        for (const std::size_t size : {32, 16, 24}) {
            for (const auto* batch : {&*listed_there, &*listed_here}) {
                std::vector<Bytes> with{raw, random_.bytes(size)};
                for (int k = 0; k < 2; ++k) {
                    ASSERT_TRUE(device_->run(**batch, stream_));
                    if (k == 0) {  // in the stream behind it, without waiting
                        const Key key = std::move(*Key::import(with[1]));
                        const auto replaced = keys->replace(0, key, stream_);
                        ASSERT_TRUE(replaced) << replaced.error().message;
                    }
                    wait();
                    for (std::size_t i = 0; i < messages_.size(); ++i) {
                        Message host = messages_[i];
                        host.in = plain_.data() + i * kRoom;
                        const Bytes& used = host.key == 0 ? with[k] : ring.raw[host.key];
                        const Answer answer = oracle(used, kSeal, host);
                        ASSERT_EQ(difference(answer.out, get(messages_[i].out, host.size)), "")
                            << i << ", key " << k;
                        ASSERT_EQ(difference(answer.tag, get(messages_[i].tag, 16)), "") << i;
                    }
                }
                raw = with[1];
            }
        }
        device_->force_quads();  // from now on
        EXPECT_EQ(keys->replace(count, ring.keys[0], stream_).code(), Code::invalid_argument);
    }
}

}  // namespace
}  // namespace dael::test
