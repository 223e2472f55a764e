// SPDX-License-Identifier: Apache-2.0
// AEGIS of the cpu backend at every level that this machine has: RFC 10032's vectors; every length
// against an AEGIS by bytes, by itself and side by side with others; forgeries; pieces; and what is
// left on the stack.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "modes/aegis.hpp"
#include "support/aegis_plain.hpp"
#include "unit/cpu_aead.hpp"

namespace {

using namespace dael;
using test::AeadCase;
using test::Bytes;
using test::Random;

constexpr std::array kAegis{Mode::aegis128l, Mode::aegis256, Mode::aegis128x2, Mode::aegis128x4};

std::size_t plain_degree(Mode mode) {
    return mode == Mode::aegis256 ? 0 : aegis::degree(mode);
}
std::size_t key_size(Mode mode) {
    return mode == Mode::aegis256 ? 32 : 16;
}

AeadCase case_of(Mode mode, Random& random, std::size_t size, std::size_t aad_size,
                 std::size_t tag_size) {
    AeadCase c{random.bytes(key_size(mode)),
               random.bytes(key_size(mode)),
               random.bytes(aad_size),
               random.bytes(size),
               {},
               {}};
    auto made =
        test::plain::aegis_seal(plain_degree(mode), c.key, c.nonce, c.aad, c.plain, tag_size);
    c.ciphertext = std::move(made.out);
    c.tag = std::move(made.tag);
    return c;
}

class CpuAegis : public test::CpuAead {
  protected:
    template <class Run>
    void for_every_kind(Run run) {
        for (const Mode mode : kAegis)
            for (const std::uint8_t tag_size : {std::uint8_t{16}, std::uint8_t{32}}) {
                run(Cipher{mode, Direction::encrypt, tag_size}, aegis::rate(mode),
                    [&](std::size_t size, std::size_t aad_size) {
                        return case_of(mode, random_, size, aad_size, tag_size);
                    });
                if (HasFatalFailure()) return;
            }
    }
};

std::string text(Mode mode, std::size_t tag_size) {
    return "AEGIS " + std::to_string(static_cast<int>(mode)) + ", tag of " +
           std::to_string(tag_size);
}

Bytes bytes(const std::string& hex) {
    Bytes all;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        all.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    return all;
}

// RFC 10032, "Test Vectors".
struct Vector {
    Mode mode;
    const char *aad, *plain, *ciphertext, *tag128, *tag256;
};
const Vector kVectors[] = {
    {Mode::aegis128l, "", "00000000000000000000000000000000", "c1c0e58bd913006feba00f4b3cc3594e",
     "abe0ece80c24868a226a35d16bdae37a",
     "25835bfbb21632176cf03840687cb968cace4617af1bd0f7d064c639a5c79ee4"},
    {Mode::aegis128l, "", "", "", "c2b879a67def9d74e6c14f708bbcc9b4",
     "1360dc9db8ae42455f6e5b6a9d488ea4f2184c4e12120249335c4ee84bafe25d"},
    {Mode::aegis128l, "0001020304050607",
     "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
     "79d94593d8c2119d7e8fd9b8fc77845c5c077a05b2528b6ac54b563aed8efe84",
     "cc6f3372f6aa1bb82388d695c3962d9a",
     "022cb796fe7e0ae1197525ff67e309484cfbab6528ddef89f17d74ef8ecd82b3"},
    {Mode::aegis128l, "0001020304050607", "000102030405060708090a0b0c0d",
     "79d94593d8c2119d7e8fd9b8fc77", "5c04b3dba849b2701effbe32c7f0fab7",
     "86f1b80bfb463aba711d15405d094baf4a55a15dbfec81a76f35ed0b9c8b04ac"},
    {Mode::aegis128l,
     "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829",
     "101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637",
     "b31052ad1cca4e291abcf2df3502e6bdb1bfd6db36798be3607b1f94d34478aa7ede7f7a990fec10",
     "7542a745733014f9474417b337399507",
     "b91e2947a33da8bee89b6794e647baf0fc835ff574aca3fc27c33be0db2aff98"},
    {Mode::aegis256, "", "00000000000000000000000000000000", "754fc3d8c973246dcc6d741412a4b236",
     "3fe91994768b332ed7f570a19ec5896e",
     "1181a1d18091082bf0266f66297d167d2e68b845f61a3b0527d31fc7b7b89f13"},
    {Mode::aegis256, "", "", "", "e3def978a0f054afd1e761d7553afba3",
     "6a348c930adbd654896e1666aad67de989ea75ebaa2b82fb588977b1ffec864a"},
    {Mode::aegis256, "0001020304050607",
     "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
     "f373079ed84b2709faee373584585d60accd191db310ef5d8b11833df9dec711",
     "8d86f91ee606e9ff26a01b64ccbdd91d",
     "b7d28d0c3c0ebd409fd22b44160503073a547412da0854bfb9723020dab8da1a"},
    {Mode::aegis256, "0001020304050607", "000102030405060708090a0b0c0d",
     "f373079ed84b2709faee37358458", "c60b9c2d33ceb058f96e6dd03c215652",
     "8c1cc703c81281bee3f6d9966e14948b4a175b2efbdc31e61a98b4465235c2d9"},
    {Mode::aegis256,
     "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829",
     "101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637",
     "57754a7d09963e7c787583a2e7b859bb24fa1e04d49fd550b2511a358e3bca252a9b1b8b30cc4a67",
     "ab8a7d53fd0e98d727accca94925e128",
     "a3aca270c006094d71c20e6910b5161c0826df233d08919a566ec2c05990f734"},
    {Mode::aegis128x2, "", "", "", "63117dc57756e402819a82e13eca8379",
     "b92c71fdbd358b8a4de70b27631ace90cffd9b9cfba82028412bac41b4f53759"},
    {Mode::aegis128x2, "0102030401020304", nullptr,
     "5795544301997f93621b278809d6331b3bfa6f18e90db12c4aa35965b5e98c5f"
     "c6fb4e54bcb6111842c20637252eff747cb3a8f85b37de80919a589fe0f24872"
     "bc926360696739e05520647e390989e1eb5fd42f99678a0276a498f8c454761c"
     "9d6aacb647ad56be62b29c22cd4b5761b38f43d5a5ee062f",
     "1aebc200804f405cab637f2adebb6d77",
     "c471876f9b4978c44f2ae1ce770cdb11a094ee3feca64e7afcd48bfe52c60eca"},
    {Mode::aegis128x4, "", "", "", "5bef762d0947c00455b97bb3af30dfa3",
     "a4b25437f4be93cfa856a2f27e4416b42cac79fd4698f2cdbe6af25673e10a68"},
    {Mode::aegis128x4, "0102030401020304", nullptr,
     "e836118562f4479c9d35c17356a833114c21f9aa39e4dda5e5c87f4152a00fce"
     "9a7c38f832eafe8b1c12f8a7cf12a81a1ad8a9c24ba9dedfbdaa586ffea67ddc"
     "801ea97d9ab4a872f42d0e352e2713dacd609f9442c17517c5a29daf3e2a3fac"
     "4ff6b1380c4e46df7b086af6ce6bc1ed594b8dd64aed2a7e",
     "0e56ab94e2e85db80f9d54010caabfb4",
     "69abf0f64a137dd6e122478d777e98bc422823006cf57f5ee822dd78397230b2"},
};
AeadCase case_of(const Vector& v, std::size_t tag_size) {
    AeadCase c;
    const bool parallel = aegis::degree(v.mode) > 1;
    c.key =
        bytes(parallel ? "000102030405060708090a0b0c0d0e0f" : "10010000000000000000000000000000");
    c.nonce =
        bytes(parallel ? "101112131415161718191a1b1c1d1e1f" : "10000200000000000000000000000000");
    c.key.resize(key_size(v.mode));
    c.nonce.resize(key_size(v.mode));
    c.aad = bytes(v.aad);
    c.ciphertext = bytes(v.ciphertext);
    if (v.plain)
        c.plain = bytes(v.plain);
    else  // 04050607, again and again
        for (std::size_t i = 0; i < c.ciphertext.size(); ++i)
            c.plain.push_back(static_cast<std::uint8_t>(4 + i % 4));
    c.tag = bytes(tag_size == 16 ? v.tag128 : v.tag256);
    return c;
}

TEST_P(CpuAegis, GivesTheVectorsOfTheRfc) {
    for (const Vector& v : kVectors)
        for (const std::size_t tag_size : {16, 32}) {
            const AeadCase c = case_of(v, tag_size);
            check(v.mode, {c}, text(v.mode, tag_size));
            check(v.mode, std::vector<AeadCase>(5, c), text(v.mode, tag_size));
            if (HasFatalFailure()) return;
        }
}

TEST_P(CpuAegis, EveryLengthByItself) {
    for_every_kind([this](const Cipher& kind, std::size_t rate, const Make& make) {
        every_length(kind, rate * test::thorough(4, 2) + 20, make);
    });
}

TEST_P(CpuAegis, MessagesSideBySide) {
    for_every_kind([this](const Cipher& kind, std::size_t rate, const Make& make) {
        side_by_side(kind, rate * 5 + 3, make);
    });
}

TEST_P(CpuAegis, MoreMessagesThanAreHandedOverTogether) {
    const AeadCase c = case_of(Mode::aegis128l, random_, 70, 5, 16);
    check(Mode::aegis128l, std::vector<AeadCase>(150, c), text(Mode::aegis128l, 16));
}

TEST_P(CpuAegis, RefusesForgeries) {
    for_every_kind([this](const Cipher& kind, std::size_t rate, const Make& make) {
        forgeries(kind, 3 * rate, make);
    });
}

TEST_P(CpuAegis, PiecesOfAnySizeMakeTheWhole) {
    for_every_kind([this](const Cipher& kind, std::size_t rate, const Make& make) {
        pieces(kind, 4 * rate, make);
    });
}

// ---------------------------------------------------------------- what is left

// A block, for modes/aegis.hpp.
struct Plain {
    test::plain::Bits bits;
};
Plain operator^(const Plain& a, const Plain& b) {
    return {test::plain::operator^(a.bits, b.bits)};
}
Plain aes_round(const Plain& in, const Plain& key) {
    return {test::plain::aes_round(in.bits, key.bits)};
}
Plain all(const Block& block) {
    return {block};
}

// Every block of every state of a message without AAD, of whole steps.
std::vector<Block> states_of(Mode mode, const AeadCase& c) {
    std::vector<Block> found;
    const auto keep = [&](const auto& state) {
        for (const Plain& part : state.s) found.push_back(part.bits);
    };
    const auto at = [](const Bytes& from, std::size_t i) {
        return Plain{test::plain::block_of(from, i)};
    };
    const Block key = at(c.key, 0).bits, nonce = at(c.nonce, 0).bits;
    const Plain sizes{aegis::lengths(0, c.plain.size())};
    const std::size_t degree = aegis::degree(mode);
    if (mode == Mode::aegis256) {
        aegis::State256<Plain> state;
        state.begin(key, at(c.key, 16).bits, nonce, at(c.nonce, 16).bits, all);
        keep(state);
        for (std::size_t i = 0; i < c.plain.size(); i += 16) {
            state.update(at(c.plain, i));
            keep(state);
        }
        state.end(sizes);
        keep(state);
        return found;
    }
    for (std::size_t d = 0; d < degree; ++d) {
        aegis::State128<Plain> state;
        state.begin(key, nonce, {aegis::context(d, degree)}, all);
        keep(state);
        for (std::size_t i = 16 * d; i < c.plain.size(); i += aegis::rate(mode)) {
            state.update(at(c.plain, i), at(c.plain, i + 16 * degree));
            keep(state);
        }
        state.end(sizes);
        keep(state);
    }
    return found;
}

TEST_P(CpuAegis, LeavesNoStateOnTheStack) {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers keep copies of their own";
    for (const Mode mode : kAegis)
        for (const bool encrypts : {true, false})
            for (const bool one_size : {true, false}) {
                std::vector<AeadCase> cases;
                for (std::size_t i = 0; i < 4; ++i)
                    cases.push_back(
                        case_of(mode, random_, aegis::rate(mode) * (one_size ? 3 : 1 + i), 0, 16));
                const Bytes stack = stack_after(mode, encrypts, cases);
                for (const AeadCase& c : cases)
                    for (const Block& block : states_of(mode, c))
                        ASSERT_FALSE(holds(stack, block))
                            << text(mode, 16) << (encrypts ? " sealing" : " opening");
            }
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuAegis, testing::Values("sse", "avx2", "avx512"),
                         [](const auto& its) { return std::string(its.param); });

}  // namespace
