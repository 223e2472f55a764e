// SPDX-License-Identifier: Apache-2.0
// GCM for packets with keystream made ahead of time, in every host backend that has it and in each
// of its forms, against OpenSSL called directly.
#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "core/packet_cipher.hpp"
#include "core/registry.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"
#include "support/guarded.hpp"
#include "support/oracle.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using test::Bytes;
using test::Poisoned;
using test::Random;

struct Case {
    Bytes key, aad, plain;
    Block first{};
    std::size_t blocks = 0;  // of keystream; 0: none
    std::size_t tag_size = 16;
    std::size_t in_at = 0, out_at = 0, keystream_at = 0;  // distances from a 64-byte boundary
    bool in_place = false;

    std::string text() const {
        return std::to_string(8 * key.size()) + " bits, AAD of " + std::to_string(aad.size()) +
               ", " + std::to_string(plain.size()) + " bytes, keystream of " +
               std::to_string(blocks) + " blocks, tag of " + std::to_string(tag_size) + ", in at " +
               std::to_string(in_at) +
               (in_place ? ", in place" : ", out at " + std::to_string(out_at));
    }
};

Bytes keystream_of(const Case& c) {
    return test::oracle(c.key, {Mode::ctr, Direction::encrypt, c.first},
                        Bytes(c.blocks * kBlockSize));
}

// GCM where `first` is of a nonce. Else counter mode and a tag put together by hand, since only the
// low 32 bits of GCM's own counter count.
test::Sealed expected(const Case& c) {
    if (modes::is_of_nonce(c.first))
        return test::gcm_oracle(c.key, std::span(c.first).first<12>(), c.aad, c.plain);
    test::Sealed sealed{test::oracle(c.key, {Mode::ctr, Direction::encrypt, c.first, 16}, c.plain),
                        {}};
    const auto block = [&](const Block& counter) {
        return test::oracle(c.key, {Mode::ecb, Direction::encrypt}, counter);
    };
    const auto h = modes::load_element(block({}).data());
    modes::Element y = modes::ghash(h, {}, c.aad.data(), c.aad.size());
    y = modes::ghash(h, y, sealed.ciphertext.data(), sealed.ciphertext.size());
    y = modes::ghash(h, y, modes::lengths_block(c.aad.size(), c.plain.size()).data(), 16);
    sealed.tag = block(c.first);
    Block hash;
    modes::store_element(hash.data(), y);
    for (std::size_t i = 0; i < 16; ++i) sealed.tag[i] ^= hash[i];
    return sealed;
}

struct Form {
    std::string backend, form;
};

class PacketCipher : public testing::TestWithParam<Form> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend(GetParam().backend, {.form = GetParam().form});
        if (opened.code() == Code::backend_absent) GTEST_SKIP() << opened.error().message;
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
    }
    bool slow() const { return GetParam().backend == "reference"; }

    const core::PacketCipher& cipher(const Bytes& key) {
        auto& kept = ciphers_[key];
        if (!kept) {
            const auto imported = Key::import(key);
            auto made = backend_->packets(*imported);
            if (!made) throw std::runtime_error(made.error().message);
            kept = std::move(*made);
        }
        return *kept;
    }
    void check(const Case& c) {
        const auto sealed = expected(c);
        check(c, sealed, true);
        if (!HasFatalFailure()) check(c, sealed, false);
    }
    void check(const Case& c, const test::Sealed& sealed, bool seal) {
        const std::string what = c.text() + (seal ? ", sealing" : ", opening");
        const Bytes& from = seal ? c.plain : sealed.ciphertext;
        const Bytes& to = seal ? sealed.ciphertext : c.plain;
        const Bytes tag(sealed.tag.begin(),
                        sealed.tag.begin() + static_cast<std::ptrdiff_t>(c.tag_size));
        Poisoned source(from, c.in_at), apart(from.size(), c.out_at), aad(c.aad, c.keystream_at);
        Poisoned keystream(keystream_of(c), c.keystream_at);
        Poisoned tag_there = seal ? Poisoned(c.tag_size, c.in_at) : Poisoned(tag, c.in_at);
        Poisoned& target = c.in_place ? source : apart;
        const core::CipherPacket packet{
            source.data(), target.data(), from.size(),
            aad.data(),    c.aad.size(),  tag_there.data(),
            c.tag_size,    c.first,       c.blocks ? keystream.data() : nullptr,
            c.blocks};
        Code code = Code::internal;
        if (seal)
            code = cipher(c.key).seal({&packet, 1});
        else
            cipher(c.key).open({&packet, 1}, {&code, 1});
        ASSERT_EQ(code, Code::ok) << what;
        ASSERT_EQ(test::difference(to, target.span()), "") << what;
        ASSERT_EQ(test::difference(tag, tag_there.span()), "") << what << ", its tag";
        ASSERT_TRUE(target.intact() && tag_there.intact()) << what << ": wrote outside";
        ASSERT_EQ(aad.bytes(), c.aad) << what << ": wrote to the AAD";
        ASSERT_EQ(keystream.bytes(), keystream_of(c)) << what << ": wrote to the keystream";
        if (!c.in_place) {
            ASSERT_EQ(source.bytes(), from) << what << ": wrote to the input";
        }
    }
    // Opens what was tampered with.
    void check_refused(const Case& c, const test::Sealed& sealed, const std::string& fault) {
        Poisoned source(sealed.ciphertext, c.in_at), apart(c.plain.size(), c.out_at);
        Poisoned& target = c.in_place ? source : apart;
        Bytes tag = sealed.tag;
        const Bytes keystream = keystream_of(c);
        const core::CipherPacket packet{
            source.data(), target.data(), c.plain.size(),
            c.aad.data(),  c.aad.size(),  tag.data(),
            c.tag_size,    c.first,       c.blocks ? keystream.data() : nullptr,
            c.blocks};
        Code code = Code::ok;
        cipher(c.key).open({&packet, 1}, {&code, 1});
        ASSERT_EQ(code, Code::authentication) << fault << ", " << c.text();
        ASSERT_TRUE(target.intact());
        if (c.in_place)
            ASSERT_EQ(test::difference(sealed.ciphertext, target.span()), "") << fault << c.text();
        else  // as it was, or wiped
            ASSERT_TRUE(test::all_are(target.span(), Poisoned::kPoison) ||
                        test::all_are(target.span(), 0))
                << fault << ", " << c.text();
    }
    Block nonce() {
        Block first = random_.block();
        first[12] = first[13] = first[14] = 0;
        first[15] = 1;
        return first;
    }
    const Bytes& key() { return keys_[random_.below(keys_.size())]; }
    // Whole and more, none, or a part.
    std::size_t some_blocks(std::size_t size) {
        const std::size_t whole = 1 + (size + 15) / 16;
        switch (random_.below(5)) {
            case 0:
                return 0;
            case 1:
            case 2:
                return whole;
            case 3:
                return whole + random_.below(5);
            default:
                return random_.below(whole + 1);
        }
    }
    Case any(std::size_t size) {
        static constexpr std::size_t kTags[] = {8, 12, 16}, kAads[] = {8, 12, 0, 16, 20, 61};
        return {.key = key(),
                .aad = random_.bytes(kAads[random_.below(std::size(kAads))]),
                .plain = random_.bytes(size),
                .first = nonce(),
                .blocks = some_blocks(size),
                .tag_size = kTags[random_.below(3)],
                .in_at = random_.below(64),
                .out_at = random_.below(64),
                .keystream_at = random_.below(2) * random_.below(64),
                .in_place = random_.below(2) == 0};
    }

    std::unique_ptr<core::Backend> backend_;
    std::map<Bytes, std::unique_ptr<core::PacketCipher>> ciphers_;
    Random random_{977};
    const std::vector<Bytes> keys_{random_.bytes(16), random_.bytes(24), random_.bytes(32)};
};

TEST_P(PacketCipher, EveryLengthTo2Kib) {
    const std::size_t step = slow() ? 37 : test::thorough(1, 5);
    for (std::size_t size = 0; size <= 2048; size += step) {
        check(any(size));
        if (HasFatalFailure()) return;
        if (slow()) continue;
        Case whole = any(size);
        whole.blocks = 1 + (size + 15) / 16;
        check(whole);
        if (HasFatalFailure()) return;
    }
}

TEST_P(PacketCipher, EveryAmountOfKeystream) {
    for (const std::size_t size : {0, 1, 16, 63, 100, 256, 513}) {
        if (slow() && size > 100) break;
        for (std::size_t blocks = 0; blocks <= (size + 15) / 16 + 3; ++blocks) {
            Case c = any(size);
            c.blocks = blocks;
            check(c);
            if (HasFatalFailure()) return;
        }
    }
}

TEST_P(PacketCipher, EveryAadTo600) {
    for (std::size_t size = 0; size <= 600; size += slow() ? 97 : 1) {
        Case c = any(random_.below(200));
        c.aad = random_.bytes(size);
        check(c);
        if (HasFatalFailure()) return;
    }
}

TEST_P(PacketCipher, EveryTagSize) {
    for (const std::size_t size : {4, 8, 12, 13, 14, 15, 16}) {
        Case c = any(77);
        c.tag_size = size;
        check(c);
        if (HasFatalFailure()) return;
    }
}

TEST_P(PacketCipher, LongPackets) {
    for (const std::size_t size : {4096, 9000, 65535, 1 << 20}) {
        if (slow() && size > 4096) break;
        for (const std::size_t blocks : {std::size_t{0}, size / 32, 1 + (size + 15) / 16}) {
            Case c = any(size);
            c.blocks = blocks;
            check(c);
            if (HasFatalFailure()) return;
        }
    }
}

// What the layout `stream` does: any 16 bytes, and a counter of 128 bits from there on.
TEST_P(PacketCipher, CounterBlocksThatAreNoNonces) {
    for (std::size_t from = 0; from <= 16; ++from)
        for (const unsigned before : {0u, 1u, 2u, 7u, 40u}) {  // blocks before the carry
            Case c = any(slow() ? 100 : 900);
            c.first = random_.block();
            std::fill(c.first.begin() + static_cast<std::ptrdiff_t>(from), c.first.end(),
                      std::uint8_t{0xff});
            if (from < 16) c.first[15] = static_cast<std::uint8_t>(0xff - before);
            check(c);
            if (HasFatalFailure()) return;
        }
}

TEST_P(PacketCipher, RefusesEveryFlippedBit) {
    for (const std::size_t size : {0, 5, 64, 200})
        for (const bool in_place : {false, true})
            for (const std::size_t blocks :
                 {std::size_t{0}, std::size_t{1}, std::size_t{3}, 1 + (size + 15) / 16}) {
                if (slow() && size > 5) continue;
                Case c = any(size);
                c.in_place = in_place;
                c.blocks = blocks;
                const auto sealed = expected(c);
                const std::size_t step = test::thorough(1, 7);
                for (std::size_t bit = 0; bit < 8 * c.tag_size; bit += step) {
                    auto bad = sealed;
                    bad.tag[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
                    check_refused(c, bad, "tag, bit " + std::to_string(bit));
                    if (HasFatalFailure()) return;
                }
                for (std::size_t bit = 0; bit < 8 * size; bit += step) {
                    auto bad = sealed;
                    bad.ciphertext[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
                    check_refused(c, bad, "data, bit " + std::to_string(bit));
                    if (HasFatalFailure()) return;
                }
                for (std::size_t bit = 0; bit < 8 * c.aad.size(); bit += step) {
                    Case bad = c;
                    bad.aad[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
                    check_refused(bad, sealed, "AAD, bit " + std::to_string(bit));
                    if (HasFatalFailure()) return;
                }
            }
}

// A batch of all kinds: what one packet is does not matter to the next.
TEST_P(PacketCipher, BatchesWithForgeriesAmongThem) {
    const Bytes one_key = key();
    for (std::size_t count : {2u, 3u, 17u, 64u}) {
        if (slow()) count = 5;
        std::vector<Case> cases;
        std::vector<test::Sealed> sealed;
        std::vector<Bytes> keystreams, out, tags;
        std::vector<core::CipherPacket> packets;
        for (std::size_t i = 0; i < count; ++i) {
            Case c = any(random_.below(slow() ? 100 : 1500));
            c.key = one_key;
            sealed.push_back(expected(c));
            sealed.back().tag.resize(c.tag_size);
            keystreams.push_back(keystream_of(c));
            out.emplace_back(c.plain.size(), std::uint8_t{0xa5});
            tags.emplace_back(c.tag_size, std::uint8_t{0xa5});
            cases.push_back(std::move(c));
        }
        const auto fill = [&](bool seal) {
            packets.clear();
            for (std::size_t i = 0; i < count; ++i) {
                const Case& c = cases[i];
                packets.push_back({seal ? c.plain.data() : sealed[i].ciphertext.data(),
                                   out[i].data(), c.plain.size(), c.aad.data(), c.aad.size(),
                                   tags[i].data(), c.tag_size, c.first,
                                   c.blocks ? keystreams[i].data() : nullptr, c.blocks});
            }
        };
        fill(true);
        ASSERT_EQ(cipher(one_key).seal(packets), Code::ok);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(test::difference(sealed[i].ciphertext, out[i]), "") << cases[i].text();
            ASSERT_EQ(test::difference(sealed[i].tag, tags[i]), "") << cases[i].text();
            std::ranges::fill(out[i], 0xa5);
            if (i % 3 == 1) tags[i][i % tags[i].size()] ^= 0x10;
        }
        fill(false);
        std::vector<Code> codes(count, Code::internal);
        cipher(one_key).open(packets, codes);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(codes[i], i % 3 == 1 ? Code::authentication : Code::ok) << cases[i].text();
            if (i % 3 != 1) {
                ASSERT_EQ(test::difference(cases[i].plain, out[i]), "") << cases[i].text();
            }
        }
    }
}

// Nothing is read or written beyond the buffers, keystream included, nor before them.
TEST_P(PacketCipher, StaysBetweenGuardPages) {
    test::report_faults();
    test::Guarded in(4096), out(4096), keystream(4096), aad(4096), tag(4096);
    for (std::size_t size = 0; size <= 1500; size += slow() ? 311 : 1)
        for (const bool at_end : {true, false}) {
            if (!at_end && size % 7 != 0) continue;
            Case c = any(size);
            if (size % 2 == 0) c.blocks = 1 + (size + 15) / 16;
            if (size % 3 != 0) c.aad.resize(8);
            test::now_running(c.text());
            const auto place = [&](test::Guarded& where, const Bytes& bytes) {
                const auto span =
                    at_end ? where.at_end(bytes.size()) : where.at_begin(bytes.size());
                std::ranges::copy(bytes, span.begin());
                return span.data();
            };
            const auto sealed = expected(c);
            const Bytes tag_bytes(c.tag_size);
            core::CipherPacket p{place(in, c.plain),
                                 place(out, c.plain),
                                 size,
                                 place(aad, c.aad),
                                 c.aad.size(),
                                 place(tag, tag_bytes),
                                 c.tag_size,
                                 c.first,
                                 place(keystream, keystream_of(c)),
                                 c.blocks};
            if (c.in_place) p.out = const_cast<std::uint8_t*>(p.in);
            ASSERT_EQ(cipher(c.key).seal({&p, 1}), Code::ok);
            ASSERT_EQ(test::difference(sealed.ciphertext, {p.out, size}), "") << c.text();
            p.in = p.out;
            Code code = Code::internal;
            cipher(c.key).open({&p, 1}, {&code, 1});
            ASSERT_EQ(code, Code::ok);
            ASSERT_EQ(test::difference(c.plain, {p.out, size}), "") << c.text();
        }
    test::now_running("");
}

TEST_P(PacketCipher, ServesManyThreadsAtOnce) {
    const Case c = any(slow() ? 50 : 1000);
    const auto sealed = expected(c);
    const Bytes keystream = keystream_of(c);
    const auto& shared = cipher(c.key);
    std::vector<std::thread> threads;
    std::vector<int> faults(4);
    for (int& fault : faults)
        threads.emplace_back([&] {
            Bytes out(c.plain.size()), tag(c.tag_size);
            for (int round = 0; round < (slow() ? 3 : 200); ++round) {
                const bool ahead = c.blocks != 0 && round % 2 == 0;
                core::CipherPacket p{
                    c.plain.data(),      out.data(),   out.size(),
                    c.aad.data(),        c.aad.size(), tag.data(),
                    c.tag_size,          c.first,      ahead ? keystream.data() : nullptr,
                    ahead ? c.blocks : 0};
                Code code = shared.seal({&p, 1});
                fault += code != Code::ok || out != sealed.ciphertext;
                p.in = out.data();
                shared.open({&p, 1}, {&code, 1});
                fault += code != Code::ok || out != c.plain;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(faults, std::vector<int>(4));
}

std::vector<Form> forms() {
    std::vector<Form> list{{"reference", ""}, {"openssl", ""}};
    for (const char* form : {"sse", "avx2", "avx512"}) list.push_back({"cpu", form});
    return list;
}

TEST(PacketCipherOf, OtherBackendsRefuses) {
    const auto backend = core::open_backend("opengl");
    if (!backend) GTEST_SKIP() << backend.error().message;
    const auto none = (*backend)->packets(*Key::import(Bytes(16)));
    EXPECT_EQ(none.code(), Code::unsupported);
    EXPECT_NE(none.error().message.find("use 'cpu' or 'openssl'"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Host, PacketCipher, testing::ValuesIn(forms()), [](const auto& form) {
    return form.param.backend + (form.param.form.empty() ? "" : "_" + form.param.form);
});

}  // namespace
