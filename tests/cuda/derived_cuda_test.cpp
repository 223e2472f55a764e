// SPDX-License-Identifier: Apache-2.0
// XAES-256-GCM and AES-GCM-SIV on device memory against the oracle: short and long messages, lists
// of either memory, keys of several sizes, a few messages that travel with their launch, forgeries.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cuda/fixture.hpp"
#include "support/oracle.hpp"

namespace dael::test {
namespace {

// A message, what is to become of it, and where it lies in the image of device memory.
struct Item {
    std::size_t size = 0, aad_size = 0, in_at = 0, out_at = 0;
    bool in_place = false, forged = false;
    Code code = Code::ok;
    std::size_t in = 0, out = 0, aad = 0, tag = 0;
    Bytes want, want_tag;
};

struct Kind {
    const char* name;
    Mode mode;
    std::vector<std::size_t> keys;  // bytes of each
};
const Kind kKindsHere[] = {{"xaes", Mode::xaes256gcm, {32, 32, 32}},
                           {"siv-128", Mode::gcm_siv, {16, 16, 16}},
                           {"siv-256", Mode::gcm_siv, {32, 32}},
                           {"siv of both", Mode::gcm_siv, {32, 16, 32}}};

class CudaDerived : public CudaTest {
  protected:
    void begin(const Kind& kind, Direction direction, std::size_t keys = 9) {
        cipher_ = {kind.mode, direction};
        items_.clear();
        messages_.clear();
        image_.clear();
        std::vector<Bytes> raw;
        for (const std::size_t bytes : kind.keys)
            if (raw.size() < keys) raw.push_back(random_.bytes(bytes));
        ring_ = std::make_unique<KeyRing>(std::move(raw));
        auto made = device_->tables(ring_->keys);
        ASSERT_TRUE(made) << made.error().message;
        tables_ = std::move(*made);
    }
    bool opens() const { return cipher_.direction == Direction::decrypt; }
    std::size_t room(std::size_t size, std::size_t past) {
        const std::size_t at = (image_.size() + 63) / 64 * 64 + past;
        image_.resize(at + size + 16, Poisoned::kPoison);
        return at;
    }
    // Works it out, and lays it where it will be.
    void add(Item item) {
        const std::size_t key = items_.size() % ring_->keys.size();
        const Bytes plain = random_.bytes(item.size), aad = random_.bytes(item.aad_size);
        Message m;
        m.in = plain.data();
        m.aad = aad.data();
        m.size = item.size;
        m.aad_size = item.aad_size;
        m.key = static_cast<std::uint32_t>(key);
        const bool siv = cipher_.mode == Mode::gcm_siv;
        const Bytes nonce = random_.bytes(24);
        std::memcpy(&m.start, nonce.data(), siv ? 12 : 16);
        if (!siv) std::memcpy(&m.start_rest, nonce.data() + 16, 8);
        const Answer sealed = oracle(ring_->raw[key], {cipher_.mode, Direction::encrypt}, m);
        item.in = room(item.size, item.in_at);
        item.out = item.in_place ? item.in : room(item.size, item.out_at);
        item.aad = room(item.aad_size, item.out_at);
        item.tag = room(16, item.in_at);
        Bytes in = opens() ? sealed.out : plain, tag = sealed.tag;
        item.want = opens() ? plain : sealed.out;
        if (item.forged) {
            if (item.size != 0 && items_.size() % 2 != 0)
                in[random_.below(item.size)] ^= 16;
            else
                tag[random_.below(16)] ^= 1;
            item.code = Code::authentication;
            // XAES has written nothing, GCM-SIV has wiped it.
            item.want =
                item.in_place ? in : Bytes(item.size, siv ? 0 : std::uint8_t{Poisoned::kPoison});
        }
        item.want_tag = tag;
        const auto lay = [&](const Bytes& bytes, std::size_t at) {
            std::ranges::copy(bytes, image_.begin() + static_cast<std::ptrdiff_t>(at));
        };
        lay(in, item.in);
        lay(aad, item.aad);
        if (opens()) lay(tag, item.tag);
        messages_.push_back(m);
        items_.push_back(std::move(item));
    }
    void put_all() {
        base_ = put(image_);
        for (std::size_t i = 0; i < items_.size(); ++i) {
            messages_[i].in = base_ + items_[i].in;
            messages_[i].out = base_ + items_[i].out;
            messages_[i].aad = base_ + items_[i].aad;
            messages_[i].tag = base_ + items_[i].tag;
        }
    }
    void expect(std::span<const std::uint32_t> codes) {
        Bytes want = image_;
        for (std::size_t i = 0; i < items_.size(); ++i) {
            const Item& item = items_[i];
            ASSERT_EQ(static_cast<Code>(codes[i]), item.code) << i << " of " << item.size;
            if (item.code != Code::ok && item.code != Code::authentication) continue;
            std::ranges::copy(item.want, want.begin() + static_cast<std::ptrdiff_t>(item.out));
            std::ranges::copy(item.want_tag, want.begin() + static_cast<std::ptrdiff_t>(item.tag));
        }
        ASSERT_EQ(difference(want, get(base_, image_.size())), "");
    }
    core::KeyList keys() const { return {ring_->keys, tables_.get()}; }
    Messages listed_there() {
        auto* const there =
            reinterpret_cast<Message*>(allocate(messages_.size() * sizeof(Message)));
        put(there, messages_.data(), messages_.size() * sizeof(Message));
        return {there, static_cast<std::uint32_t>(messages_.size()), Place::device};
    }
    Messages listed_here() const {
        return {messages_.data(), static_cast<std::uint32_t>(messages_.size())};
    }
    // Twice, of which the second finds what it began with, too.
    void run_batch(const Messages& messages) {
        auto batch = device_->prepare(cipher_, keys(), messages);
        ASSERT_TRUE(batch) << batch.error().message;
        for (int again = 0; again < 2; ++again) {
            put(base_, image_.data(), image_.size());
            const auto ran = device_->run(**batch, stream_);
            ASSERT_TRUE(ran) << ran.error().message;
            wait();
            std::vector<std::uint32_t> codes(messages_.size());
            const Bytes bytes = get((*batch)->results(), codes.size() * 4);
            std::memcpy(codes.data(), bytes.data(), bytes.size());
            expect(codes);
            if (HasFatalFailure()) return;
        }
    }

    Random random_{314};
    Cipher cipher_;
    std::vector<Item> items_;
    std::vector<Message> messages_;
    Bytes image_;
    std::unique_ptr<KeyRing> ring_;
    std::unique_ptr<core::KeyTables> tables_;
    std::uint8_t* base_ = nullptr;
};

TEST_F(CudaDerived, AnySizeAddressAadAndForgeries) {
    for (const Kind& kind : kKindsHere)
        for (const Direction direction : kDirections)
            for (const bool there : {false, true}) {
                SCOPED_TRACE(std::string(kind.name) + ", " + std::string(name(direction)) +
                             (there ? ", listed there" : ""));
                begin(kind, direction);
                for (std::size_t i = 0; i < 700; ++i)
                    add({.size = i < 300   ? i
                                 : i < 670 ? random_.below(2100)
                                           : random_.below(60000),
                         .aad_size = i % 3 * random_.below(i % 50 == 49 ? 20000 : 80),
                         .in_at = i % 7 == 0 ? i % 16 : 0,
                         .out_at = i % 5 == 0 ? i % 16 : 0,
                         .in_place = i % 4 == 1,
                         .forged = opens() && i % 5 == 3});
                put_all();
                run_batch(there ? listed_there() : listed_here());
                if (HasFatalFailure()) return;
            }
}

// Sizes around what a quad takes, and what a thread block goes through at once.
TEST_F(CudaDerived, LongMessagesToTheByte) {
    for (const Kind& kind : kKindsHere)
        for (const Direction direction : kDirections) {
            SCOPED_TRACE(std::string(kind.name) + ", " + std::string(name(direction)));
            begin(kind, direction);
            for (const std::size_t about : {8192, 16384, 65536, 262144})
                for (const int by : {-32, -17, -16, -1, 0, 1, 15, 16, 33})
                    add({.size = about + static_cast<std::size_t>(by),
                         .aad_size = by == 15  ? 9000u
                                     : by == 1 ? 16u
                                               : 0u,
                         .in_at = by == -1 ? 8u : 0u,
                         .in_place = by == 16 || by == 0,
                         .forged = opens() && (by == 33 || by == 0)});
            put_all();
            run_batch(listed_here());
            if (HasFatalFailure()) return;
        }
}

// GCM-SIV's counter begins anywhere: of so many messages some wrap in its lower bytes.
TEST_F(CudaDerived, ManyOfOneSize) {
    for (const Kind& kind : kKindsHere) {
        SCOPED_TRACE(kind.name);
        begin(kind, Direction::encrypt, 1);
        for (std::size_t i = 0; i < 3000; ++i) add({.size = 256});
        put_all();
        run_batch(listed_here());
        if (HasFatalFailure()) return;
    }
}

TEST_F(CudaDerived, WhatMakesNoSenseHasAResultAndFaultsNothing) {
    begin(kKindsHere[3], Direction::encrypt);
    for (std::size_t i = 0; i < 64; ++i) add({.size = 600, .aad_size = 9});
    put_all();
    auto* const top = reinterpret_cast<std::uint8_t*>(~std::uintptr_t{15});
    const auto spoil = [&](std::size_t i, Code code) -> Message& {
        items_[i].code = code;
        return messages_[i];
    };
    spoil(1, Code::invalid_argument).key = 3;
    spoil(2, Code::invalid_argument).out = nullptr;
    spoil(3, Code::invalid_argument).in = top;
    spoil(4, Code::invalid_argument).tag = nullptr;
    spoil(5, Code::invalid_argument).aad = nullptr;
    spoil(6, Code::limit).size = ~std::uint64_t{0};
    spoil(7, Code::limit).aad_size = std::uint64_t{1} << 61;
    spoil(8, Code::invalid_argument).skip = 1;
    spoil(9, Code::invalid_argument) = Message{};
    run_batch(listed_there());
    // Longer than was said.
    for (std::size_t i = 0; i < 64; ++i)
        if (items_[i].code == Code::ok && i % 2) spoil(i, Code::limit).size = 700;
    Messages list = listed_there();
    list.longest = 609;
    run_batch(list);
    // Places that have no message now are told so, and untouched.
    const std::uint32_t number = 40;
    auto* const how_many = reinterpret_cast<std::uint32_t*>(allocate(sizeof number));
    put(how_many, &number, sizeof number);
    list.number = how_many;
    for (std::size_t i = number; i < 64; ++i) items_[i].code = Code::internal;
    run_batch(list);
}

TEST_F(CudaDerived, AFewTravelWithTheirLaunch) {
    for (const Kind& kind : kKindsHere)
        for (const Direction direction : kDirections)
            for (const std::size_t count : {1, 2, 7, 32})
                for (const bool host_aad : {false, true}) {
                    SCOPED_TRACE(std::string(kind.name) + ", " + std::to_string(count));
                    begin(kind, direction);
                    for (std::size_t i = 0; i < count; ++i)
                        add({.size = i == 31 ? 40000 : i * 331 % 2600,
                             .aad_size = i * 7 % 32,
                             .in_at = i % 3,
                             .in_place = i % 2 == 1,
                             .forged = opens() && i % 4 == 2});
                    put_all();
                    LaunchOptions options{.host_aad = host_aad};
                    if (host_aad)
                        for (std::size_t i = 0; i < count; ++i)
                            messages_[i].aad = image_.data() + items_[i].aad;
                    auto* const codes =
                        reinterpret_cast<std::uint32_t*>(allocate(count * sizeof(std::uint32_t)));
                    options.codes = codes;
                    const auto ran = device_->run(cipher_, keys(), messages_, options, stream_);
                    ASSERT_TRUE(ran) << ran.error().message;
                    wait();
                    const Bytes bytes = get(codes, count * 4);
                    std::vector<std::uint32_t> got(count);
                    std::memcpy(got.data(), bytes.data(), bytes.size());
                    expect(got);
                    if (HasFatalFailure()) return;
                }
}

}  // namespace
}  // namespace dael::test
