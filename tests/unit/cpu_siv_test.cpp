// SPDX-License-Identifier: Apache-2.0
// AES-GCM-SIV of the cpu backend at every level that this machine has: RFC 8452's vectors, and all
// lengths against a slow one that is written here, bit by bit, over OpenSSL's ECB.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "support/oracle.hpp"
#include "unit/cpu_aead.hpp"

namespace {

using namespace dael;
using test::AeadCase;
using test::Bytes;

constexpr Cipher kSiv{Mode::gcm_siv, Direction::encrypt, 16};

Bytes cipher_of(const Bytes& key, const Bytes& blocks) {
    return test::oracle(key, {Mode::ecb, Direction::encrypt}, blocks);
}

// RFC 8452, 3: the field with x^128 + x^127 + x^126 + x^121 + 1, and a * b * x^-128.
using Element = std::array<std::uint64_t, 2>;
Element element(const std::uint8_t* bytes) {
    Element e;
    std::memcpy(e.data(), bytes, 16);
    return e;
}
Element dot(const Element& a, const Element& b) {
    Element r{};
    for (std::size_t i = 0; i < 128; ++i) {
        if (a[i / 64] >> (i % 64) & 1) r = {r[0] ^ b[0], r[1] ^ b[1]};
        const bool odd = (r[0] & 1) != 0;  // the polynomial makes it even
        if (odd) r = {r[0] ^ 1, r[1] ^ 0xc200000000000000};
        r = {r[0] >> 1 | r[1] << 63, r[1] >> 1 | std::uint64_t{odd} << 63};
    }
    return r;
}

// RFC 8452, 4: the message-authentication key and the message-encryption key.
Bytes derived(const AeadCase& c) {
    Bytes inputs;
    for (std::uint8_t i = 0; i < 2 + c.key.size() / 8; ++i) {
        inputs.insert(inputs.end(), {i, 0, 0, 0});
        inputs.insert(inputs.end(), c.nonce.begin(), c.nonce.end());
    }
    const Bytes made = cipher_of(c.key, inputs);
    Bytes keys;
    for (std::size_t i = 0; i < made.size(); i += 16)
        keys.insert(keys.end(), made.begin() + static_cast<std::ptrdiff_t>(i),
                    made.begin() + static_cast<std::ptrdiff_t>(i) + 8);
    return keys;
}
AeadCase sealed(AeadCase c) {
    const Bytes keys = derived(c);
    const Element h = element(keys.data());
    const Bytes key(keys.begin() + 16, keys.end());

    Bytes hashed = c.aad;
    hashed.resize((hashed.size() + 15) / 16 * 16);
    hashed.insert(hashed.end(), c.plain.begin(), c.plain.end());
    hashed.resize((hashed.size() + 15) / 16 * 16);
    for (const std::uint64_t bits : {8 * c.aad.size(), 8 * c.plain.size()})
        for (int i = 0; i < 64; i += 8) hashed.push_back(static_cast<std::uint8_t>(bits >> i));
    Element y{};
    for (std::size_t i = 0; i < hashed.size(); i += 16) {
        const Element x = element(hashed.data() + i);
        y = dot({y[0] ^ x[0], y[1] ^ x[1]}, h);
    }
    c.tag.resize(16);
    std::memcpy(c.tag.data(), y.data(), 16);
    for (std::size_t i = 0; i < 12; ++i) c.tag[i] ^= c.nonce[i];
    c.tag[15] &= 0x7f;
    c.tag = cipher_of(key, c.tag);

    Bytes counters;
    std::uint32_t number;
    std::memcpy(&number, c.tag.data(), 4);
    for (std::size_t i = 0; i < c.plain.size(); i += 16, ++number) {
        Bytes counter = c.tag;
        counter[15] |= 0x80;
        std::memcpy(counter.data(), &number, 4);
        counters.insert(counters.end(), counter.begin(), counter.end());
    }
    const Bytes keystream = c.plain.empty() ? Bytes() : cipher_of(key, counters);
    c.ciphertext = c.plain;
    for (std::size_t i = 0; i < c.plain.size(); ++i) c.ciphertext[i] ^= keystream[i];
    return c;
}

class CpuSiv : public test::CpuAead {
  protected:
    Make make(std::size_t key_size) {
        return [this, key_size](std::size_t size, std::size_t aad_size) {
            return sealed({random_.bytes(key_size),
                           random_.bytes(12),
                           random_.bytes(aad_size),
                           random_.bytes(size),
                           {},
                           {}});
        };
    }
};

Bytes bytes(const std::string& hex) {
    Bytes all;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        all.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return all;
}
Bytes first_is(std::uint8_t first, std::size_t size) {
    Bytes all(size);
    all[0] = first;
    return all;
}

// RFC 8452, appendix C.
TEST_P(CpuSiv, GivesTheVectorsOfTheRfc) {
    struct Vector {
        std::size_t key_size;
        const char *plain, *aad, *result;
    };
    const Vector vectors[] = {
        {16, "", "", "dc20e2d83f25705bb49e439eca56de25"},
        {16, "0100000000000000", "", "b5d839330ac7b786578782fff6013b815b287c22493a364c"},
        {16, "0200000000000000", "01", "1e6daba35669f4273b0a1a2560969cdf790d99759abd1508"},
        {32, "", "", "07f5f4169bbf55a8400cd47ea6fd400f"},
        {32, "0100000000000000", "", "c2ef328e5c71c83b843122130f7364b761e0b97427e3df28"},
    };
    for (const Vector& v : vectors) {
        const Bytes result = bytes(v.result), plain = bytes(v.plain);
        const auto end = result.begin() + static_cast<std::ptrdiff_t>(plain.size());
        check(Mode::gcm_siv,
              {{first_is(1, v.key_size), first_is(3, 12), bytes(v.aad), plain,
                Bytes(result.begin(), end), Bytes(end, result.end())}},
              "by itself");
    }
}

// C.3: the counter is ffffffff, and wraps.
TEST_P(CpuSiv, CounterWraps) {
    const AeadCase c{Bytes(32),
                     Bytes(12),
                     {},
                     bytes("000000000000000000000000000000004db923dc793ee6497c76dcc03a98e108"),
                     bytes("f3f80f2cf0cb2dd9c5984fcda908456cc537703b5ba70324a6793a7bf218d3ea"),
                     bytes("ffffffff000000000000000000000000")};
    check(Mode::gcm_siv, {c}, "by itself");
}

// Over what is hashed as one sum, too, by 1 KiB.
TEST_P(CpuSiv, EveryLengthByItself) {
    for (const std::size_t key_size : {16, 32}) {
        every_length(kSiv, test::thorough(400, 150), make(key_size));
        for (std::size_t size = 1000; size < 1160; size += test::thorough(1, 17))
            check(Mode::gcm_siv, {make(key_size)(size, 5), make(key_size)(7, size + 1024)}, "long");
        if (HasFatalFailure()) return;
    }
}

TEST_P(CpuSiv, MessagesSideBySide) {
    for (const std::size_t key_size : {16, 32}) side_by_side(kSiv, 700, make(key_size));
}

TEST_P(CpuSiv, RefusesForgeries) {
    for (const std::size_t key_size : {16, 32}) forgeries(kSiv, 700, make(key_size));
}

TEST_P(CpuSiv, HasNoPieces) {
    const Key key = test::must(Key::import(Bytes(16)));
    const auto tables = test::must(backend_->tables({&key, 1}));
    EXPECT_EQ(backend_->begin(kSiv, {{&key, 1}, tables.get()}, 0, Start()).code(),
              Code::unsupported);
}

TEST_P(CpuSiv, LeavesNothingOnTheStack) {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers keep copies of their own";
    for (const bool encrypts : {true, false})
        for (const std::size_t size : {100, 3000}) {
            const AeadCase c = make(32)(size, 20);
            const Bytes stack = stack_after(Mode::gcm_siv, encrypts, {c});
            Bytes secrets = derived(c);
            // H^2, H^3, ..., which are multiplied by.
            const Element h = element(secrets.data());
            Element power = h;
            for (int i = 0; i < 64; ++i) {
                power = dot(power, h);
                for (const std::uint64_t half : power)
                    for (int k = 0; k < 64; k += 8)
                        secrets.push_back(static_cast<std::uint8_t>(half >> k));
            }
            for (std::size_t i = 0; i < size / 16 * 16; ++i)
                secrets.push_back(c.plain[i] ^ c.ciphertext[i]);
            for (std::size_t i = 0; i < secrets.size(); i += 16)
                ASSERT_FALSE(holds(stack, std::span(secrets).subspan(i, 16)))
                    << (encrypts ? "sealing " : "opening ") << i;
        }
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuSiv, testing::Values("sse", "avx2", "avx512"),
                         [](const auto& its) { return std::string(its.param); });

}  // namespace
