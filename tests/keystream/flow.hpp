// SPDX-License-Identifier: Apache-2.0
// A flow of packets for tests: one SA's sender or receiver in a table, whose every packet is held
// against what OpenSSL makes of key, IV, AAD and data, and whose IVs never repeat.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <utility>
#include <vector>

#include <daelstrom/keystream.hpp>

#include "support/bytes.hpp"
#include "support/oracle.hpp"

namespace dael::test {

inline Key key_of(const Bytes& raw) {
    return *Key::import(raw);
}
inline constexpr std::size_t iv_size(SaLayout layout) {
    return layout == SaLayout::stream ? 12 : 8;
}

// Under a key that sends once in a process, in whatever table, whichever seed it is drawn from.
inline Bytes fresh_key(Random& random, std::size_t size) {
    static std::atomic<std::uint64_t> keys{0};
    Bytes raw = random.bytes(size);
    const std::uint64_t number = ++keys;
    for (std::size_t i = 0; i < sizeof number; ++i)
        raw[i] = static_cast<std::uint8_t>(number >> 8 * i);
    return raw;
}

// One that was sealed.
struct Sent {
    Bytes iv, aad, plain, sealed, tag;
};

// The counters of a packet's IV: J0 of rfc4106, the first one of stream.
inline Block first_of(const SaOptions& options, std::span<const std::uint8_t> iv) {
    Block first{};
    std::copy(options.salt.begin(), options.salt.end(), first.begin());
    std::copy(iv.begin(), iv.end(), first.begin() + 4);
    if (options.layout == SaLayout::rfc4106) first[15] = 1;
    return first;
}

// What OpenSSL says it should be.
inline void expect_right(const Bytes& raw_key, const SaOptions& options, const Sent& sent) {
    Message message;
    message.in = sent.plain.data();
    message.size = sent.plain.size();
    message.aad = sent.aad.data();
    message.aad_size = sent.aad.size();
    message.start = first_of(options, sent.iv);
    const Answer answer = oracle(raw_key, {Mode::gcm, Direction::encrypt}, message);
    EXPECT_EQ(difference(answer.out, sent.sealed), "");
    EXPECT_EQ(difference(std::span(answer.tag).first(sent.tag.size()), sent.tag), "");
}

class Sender {
  public:
    Sender(SaTable& table, Random& random, SaOptions options, std::size_t key_size = 16)
        : table_(table), random_(random), options_(options), raw_(fresh_key(random, key_size)) {
        options_.direction = SaDirection::sending;
        for (auto& byte : options_.salt) byte = static_cast<std::uint8_t>(random.below(256));
        auto added = table.add(key_of(raw_), options_);
        EXPECT_TRUE(added) << added.error().message;
        if (added) id_ = *added;
    }

    // A batch of packets of these sizes, in poisoned memory, all of them checked.
    std::vector<Sent> send(const std::vector<std::size_t>& sizes, bool check = true) {
        std::vector<Sent> batch(sizes.size());
        std::vector<Poisoned> out, tags;
        std::vector<SaPacket> packets;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            Sent& sent = batch[i];
            sent.plain = random_.bytes(sizes[i]);
            sent.aad = random_.bytes(random_.below(2) ? 8 : 12);
            sent.iv.assign(iv_size(options_.layout), 0xa5);
            out.emplace_back(sizes[i], random_.below(64));
            tags.emplace_back(options_.tag_size, random_.below(16));
        }
        for (std::size_t i = 0; i < sizes.size(); ++i)
            packets.push_back({batch[i].plain.data(), out[i].data(), sizes[i], batch[i].aad.data(),
                               batch[i].aad.size(), batch[i].iv.data(), tags[i].data()});
        auto sealed = table_.seal(id_, packets);
        EXPECT_TRUE(sealed) << sealed.error().message;
        if (!sealed) return {};
        EXPECT_EQ(sealed->first, number_);
        number_ += sizes.size();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            EXPECT_TRUE(out[i].intact() && tags[i].intact());
            batch[i].sealed = out[i].bytes();
            batch[i].tag = tags[i].bytes();
            EXPECT_TRUE(ivs_.insert(batch[i].iv).second) << "an IV was used twice";
            if (check) expect_right(raw_, options_, batch[i]);
        }
        return batch;
    }
    std::vector<Sent> send(std::size_t count, std::size_t size) {
        return send(std::vector<std::size_t>(count, size));
    }

    SaStatus status() const {
        auto status = table_.status(id_);
        EXPECT_TRUE(status) << status.error().message;
        return status ? *status : SaStatus{};
    }
    SaId id() const { return id_; }
    const Bytes& raw() const { return raw_; }
    const SaOptions& options() const { return options_; }
    std::uint64_t number() const { return number_; }

  private:
    SaTable& table_;
    Random& random_;
    SaOptions options_;
    const Bytes raw_;
    SaId id_;
    std::uint64_t number_ = 1;
    std::set<Bytes> ivs_;
};

// The other end, in the same table or another.
class Receiver {
  public:
    Receiver(SaTable& table, const Sender& sender) : table_(table), options_(sender.options()) {
        options_.direction = SaDirection::receiving;
        auto added = table.add(key_of(sender.raw()), options_);
        EXPECT_TRUE(added) << added.error().message;
        if (added) id_ = *added;
    }

    // In place or not; whoever's tag was changed must be found out.
    void receive(const std::vector<Sent>& batch, bool in_place = true,
                 const std::set<std::size_t>& forged = {}) {
        std::vector<Bytes> in, out, tags, ivs;
        for (const Sent& sent : batch) {
            in.push_back(sent.sealed);
            out.emplace_back(sent.sealed.size(), std::uint8_t{0xa5});
            tags.push_back(sent.tag);
            ivs.push_back(sent.iv);
        }
        std::vector<SaPacket> packets;
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (forged.contains(i)) tags[i][i % tags[i].size()] ^= 0x10;
            packets.push_back({in[i].data(), in_place ? in[i].data() : out[i].data(), in[i].size(),
                               batch[i].aad.data(), batch[i].aad.size(), ivs[i].data(),
                               tags[i].data()});
        }
        std::vector<Code> codes(batch.size(), Code::internal);
        const auto opened = table_.open(id_, packets, codes);
        ASSERT_TRUE(opened) << opened.error().message;
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const Bytes& got = in_place ? in[i] : out[i];
            if (forged.contains(i)) {
                EXPECT_EQ(codes[i], Code::authentication);
                const bool kept =
                    in_place ? got == batch[i].sealed : all_are(got, 0xa5) || all_are(got, 0);
                EXPECT_TRUE(kept) << "something was released";
            } else {
                EXPECT_EQ(codes[i], Code::ok) << i;
                EXPECT_EQ(difference(batch[i].plain, got), "");
            }
        }
    }
    SaStatus status() const { return *table_.status(id_); }
    SaId id() const { return id_; }

  private:
    SaTable& table_;
    SaOptions options_;
    SaId id_;
};

}  // namespace dael::test
