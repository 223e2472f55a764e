// SPDX-License-Identifier: Apache-2.0
// AEGIS on device memory against plain AEGIS: every way of taking messages, lists of either memory,
// nonces that count there, a few messages that travel with their launch, and forgeries.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cuda/fixture.hpp"
#include "support/aegis_plain.hpp"

namespace dael::test {
namespace {

using cuda::AegisWay;

constexpr Mode kAegis[] = {Mode::aegis128l, Mode::aegis256, Mode::aegis128x2, Mode::aegis128x4};

std::size_t degree_of(Mode mode) {
    return mode == Mode::aegis256     ? 0
           : mode == Mode::aegis128x2 ? 2
           : mode == Mode::aegis128x4 ? 4
                                      : 1;
}
std::size_t key_size(Mode mode) {
    return mode == Mode::aegis256 ? 32 : 16;
}

// A message, what is to become of it, and where it lies in the image of device memory.
struct Item {
    std::size_t size = 0, aad_size = 0, in_at = 0, out_at = 0;
    bool in_place = false, forged = false;
    Code code = Code::ok;
    std::size_t in = 0, out = 0, aad = 0, tag = 0;
    Bytes want, want_tag;
};

class CudaAegis : public CudaTest {
  protected:
    void begin(const Cipher& cipher, std::size_t keys) {
        cipher_ = cipher;
        items_.clear();
        messages_.clear();
        image_.clear();
        std::vector<Bytes> raw;
        for (std::size_t k = 0; k < keys; ++k) raw.push_back(random_.bytes(key_size(cipher.mode)));
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
    // Works it out with this nonce, and lays it where it will be.
    void add(Item item, const Bytes& nonce) {
        const std::size_t key = items_.size() % ring_->keys.size();
        const Bytes plain = random_.bytes(item.size), aad = random_.bytes(item.aad_size);
        const auto sealed = plain::aegis_seal(degree_of(cipher_.mode), ring_->raw[key], nonce, aad,
                                              plain, cipher_.tag);
        item.in = room(item.size, item.in_at);
        item.out = item.in_place ? item.in : room(item.size, item.out_at);
        item.aad = room(item.aad_size, item.out_at);
        item.tag = room(cipher_.tag, item.in_at);
        Bytes in = opens() ? sealed.out : plain, tag = sealed.tag;
        item.want = opens() ? plain : sealed.out;
        if (item.forged) {
            if (item.size != 0 && items_.size() % 2 != 0)
                in[random_.below(item.size)] ^= 16;
            else
                tag[random_.below(tag.size())] ^= 1;
            item.code = Code::authentication;
            item.want = item.in_place ? in : Bytes(item.size, 0);
        }
        item.want_tag = tag;
        const auto lay = [&](const Bytes& bytes, std::size_t at) {
            std::ranges::copy(bytes, image_.begin() + static_cast<std::ptrdiff_t>(at));
        };
        lay(in, item.in);
        lay(aad, item.aad);
        if (opens()) lay(tag, item.tag);
        Message m;
        m.size = item.size;
        m.aad_size = item.aad_size;
        m.key = static_cast<std::uint32_t>(key);
        std::memcpy(&m.start, nonce.data(), 16);
        std::memcpy(&m.start_rest, nonce.data() + 16, 16);
        messages_.push_back(m);
        items_.push_back(std::move(item));
    }
    void add(const Item& item) {
        Bytes nonce = random_.bytes(32);
        if (cipher_.mode != Mode::aegis256) std::fill(nonce.begin() + 16, nonce.end(), 0);
        add(item, nonce);
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
    Messages listed_there(Message** list = nullptr) {
        auto* const there =
            reinterpret_cast<Message*>(allocate(messages_.size() * sizeof(Message)));
        put(there, messages_.data(), messages_.size() * sizeof(Message));
        if (list) *list = there;
        return {there, static_cast<std::uint32_t>(messages_.size()), Place::device};
    }
    void run_batch(const Messages& messages) {
        auto batch = device_->prepare(cipher_, keys(), messages);
        ASSERT_TRUE(batch) << batch.error().message;
        const auto ran = device_->run(**batch, stream_);
        ASSERT_TRUE(ran) << ran.error().message;
        wait();
        std::vector<std::uint32_t> codes(messages_.size());
        const Bytes bytes = get((*batch)->results(), codes.size() * 4);
        std::memcpy(codes.data(), bytes.data(), bytes.size());
        expect(codes);
    }
    void run_batch(bool there) {
        put_all();
        run_batch(there ? listed_there()
                        : Messages{messages_.data(), static_cast<std::uint32_t>(messages_.size())});
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

TEST_F(CudaAegis, EveryWayAnySizeAddressAadAndForgeries) {
    for (const Mode mode : kAegis)
        for (const AegisWay way : cuda::kAegisWays) {
            if (way == AegisWay::few || !cuda::has_way(mode, way)) continue;
            device_->force_aegis(way);
            for (const Direction direction : kDirections)
                for (const std::uint8_t tag : {16, 32}) {
                    SCOPED_TRACE(std::string(name(mode)) + ", way " +
                                 std::to_string(static_cast<int>(way)) + ", " +
                                 std::string(name(direction)) + ", tag " + std::to_string(tag));
                    begin({mode, direction, tag}, 3);
                    for (std::size_t i = 0; i < 400; ++i)
                        add({.size = i < 150 ? i : random_.below(3000),
                             .aad_size = i % 3 * random_.below(80),
                             .in_at = i % 7 == 0 ? i % 16 : 0,
                             .out_at = i % 5 == 0 ? i % 16 : 0,
                             .in_place = i % 4 == 1,
                             .forged = opens() && i % 5 == 3});
                    run_batch(tag == 32);
                    if (HasFatalFailure()) return;
                }
        }
}

// As the plan has them: few and many, long and short, of one size and of several.
TEST_F(CudaAegis, AsTheyArePlanned) {
    for (const Mode mode : kAegis)
        for (const Direction direction : kDirections)
            for (const std::size_t count : {1, 33, 3000, 9000}) {
                SCOPED_TRACE(std::string(name(mode)) + ", " + std::to_string(count));
                begin({mode, direction, 16}, count == 33 ? 33 : 1);
                for (std::size_t i = 0; i < count; ++i)
                    add({.size = count == 1      ? 100000
                                 : count == 9000 ? 48
                                                 : i % 700,
                         .forged = opens() && i % 17 == 5});
                run_batch(false);
                if (HasFatalFailure()) return;
            }
}

TEST_F(CudaAegis, NoncesCountOnTheDevice) {
    for (const Mode mode : kAegis) {
        SCOPED_TRACE(name(mode));
        begin({mode, Direction::encrypt, 16}, 2);
        const std::uint64_t first = 0xffffffff - 20;
        for (std::size_t i = 0; i < 50; ++i) {
            Bytes nonce(32);
            std::ranges::copy(Bytes{9, 8, 7, 6}, nonce.begin());
            for (std::size_t k = 0; k < 8; ++k)
                nonce[4 + k] = static_cast<std::uint8_t>((first + i) >> (8 * (7 - k)));
            add({.size = i * 37}, nonce);
        }
        put_all();
        for (Message& m : messages_) {  // what it was like before does not matter
            m.start = random_.block();
            m.start_rest = random_.block();
        }
        // Places that have no message now are told so, and untouched.
        for (std::size_t i = 40; i < 50; ++i) items_[i].code = Code::internal;
        const std::uint32_t number = 40;
        const DeviceNonces nonces{{9, 8, 7, 6}, 0, first};
        auto* const there = reinterpret_cast<DeviceNonces*>(allocate(sizeof nonces));
        auto* const how_many = reinterpret_cast<std::uint32_t*>(allocate(sizeof number));
        put(there, &nonces, sizeof nonces);
        put(how_many, &number, sizeof number);
        Messages list = listed_there();
        list.nonces = there;
        list.number = how_many;
        run_batch(list);
        const Bytes after = get(there, sizeof nonces);
        std::uint64_t next = 0;
        std::memcpy(&next, after.data() + offsetof(DeviceNonces, next), sizeof next);
        EXPECT_EQ(next, first + 40);
        if (HasFatalFailure()) return;
    }
}

TEST_F(CudaAegis, WhatMakesNoSenseHasAResultAndFaultsNothing) {
    begin({Mode::aegis128l, Direction::encrypt, 32}, 2);
    for (std::size_t i = 0; i < 64; ++i) add({.size = 600, .aad_size = 9});
    put_all();
    auto* const top = reinterpret_cast<std::uint8_t*>(~std::uintptr_t{15});
    const auto spoil = [&](std::size_t i, Code code) -> Message& {
        items_[i].code = code;
        return messages_[i];
    };
    spoil(1, Code::invalid_argument).key = 2;
    spoil(2, Code::invalid_argument).out = nullptr;
    spoil(3, Code::invalid_argument).in = top;
    spoil(4, Code::invalid_argument).tag = nullptr;
    spoil(5, Code::invalid_argument).aad = nullptr;
    spoil(6, Code::limit).size = ~std::uint64_t{0};
    spoil(7, Code::limit).aad_size = std::uint64_t{1} << 61;
    spoil(8, Code::invalid_argument).skip = 1;
    spoil(9, Code::invalid_argument) = Message{};
    for (const AegisWay way : {AegisWay::lines, AegisWay::lines2, AegisWay::blocks8}) {
        device_->force_aegis(way);
        run_batch(listed_there());
    }
    // Longer than was said.
    device_->force_aegis(std::nullopt);
    put(base_, image_.data(), image_.size());  // as it was before those wrote there
    for (std::size_t i = 0; i < 64; ++i)
        if (items_[i].code == Code::ok && i % 2) spoil(i, Code::limit).size = 700;
    Messages list = listed_there();
    list.longest = 609;
    run_batch(list);
}

TEST_F(CudaAegis, AFewTravelWithTheirLaunch) {
    for (const Mode mode : kAegis)
        for (const Direction direction : kDirections)
            for (const std::size_t count : {1, 2, 7, 32})
                for (const bool host_aad : {false, true}) {
                    SCOPED_TRACE(std::string(name(mode)) + ", " + std::to_string(count));
                    begin({mode, direction, count == 2 ? std::uint8_t{32} : std::uint8_t{16}}, 3);
                    for (std::size_t i = 0; i < count; ++i)
                        add({.size = i * 331 % 2600,
                             .aad_size = count == 7 ? i * 16 : i * 7 % 32,  // whole words, too
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
