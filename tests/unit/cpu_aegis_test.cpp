// SPDX-License-Identifier: Apache-2.0
// AEGIS of the cpu backend at every level that this machine has: RFC 10032's vectors; every length
// against an AEGIS by bytes, by itself and side by side with others; forgeries; pieces; and what is
// left on the stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.hpp"
#include "modes/aegis.hpp"
#include "support/aegis_plain.hpp"
#include "support/must.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;
using test::Bytes;
using test::Random;

constexpr std::array kAegis{Mode::aegis128l, Mode::aegis256, Mode::aegis128x2, Mode::aegis128x4};

std::size_t plain_degree(Mode mode) {
    return mode == Mode::aegis256 ? 0 : aegis::degree(mode);
}
std::size_t key_size(Mode mode) {
    return mode == Mode::aegis256 ? 32 : 16;
}

// A message with all that it needs, a byte around each thing.
struct Case {
    Bytes key, nonce, aad, plain, ciphertext, tag;

    Case() = default;
    Case(Mode mode, Random& random, std::size_t size, std::size_t aad_size, std::size_t tag_size)
        : key(random.bytes(key_size(mode))),
          nonce(random.bytes(key_size(mode))),
          aad(random.bytes(aad_size)),
          plain(random.bytes(size)) {
        auto made = test::plain::aegis_seal(plain_degree(mode), key, nonce, aad, plain, tag_size);
        ciphertext = std::move(made.out);
        tag = std::move(made.tag);
    }
    Start start() const {
        Start all;
        std::copy_n(nonce.begin(), 16, all.first.begin());
        if (nonce.size() == 32) std::copy_n(nonce.begin() + 16, 16, all.rest.begin());
        return all;
    }
};

// Where a case is done: away from any boundary, with bytes around that must stay.
struct Work {
    static constexpr std::uint8_t kAround = 0xa5;
    Work(const Case& c, bool encrypts, std::size_t shift, bool in_place)
        : shift_(1 + shift), in_place_(in_place) {
        const Bytes& from = encrypts ? c.plain : c.ciphertext;
        size_ = from.size();
        in_.assign(size_ + shift_, 0);
        std::copy(from.begin(), from.end(), in_.begin() + at());
        out_.assign(size_ + shift_ + 1, kAround);
        if (in_place) std::copy(from.begin(), from.end(), out_.begin() + at());
        tag_.assign(c.tag.size() + 2, kAround);
        if (!encrypts) std::copy(c.tag.begin(), c.tag.end(), tag_.begin() + 1);
        aad_.assign(c.aad.size() + shift_, 0);
        std::copy(c.aad.begin(), c.aad.end(), aad_.begin() + at());
        start_ = c.start();
    }
    Message message(std::uint32_t key) {
        Message m;
        m.out = size_ != 0 ? out_.data() + shift_ : nullptr;
        m.in = in_place_ || size_ == 0 ? m.out : in_.data() + shift_;
        m.size = size_;
        m.aad_size = aad_.size() - shift_;
        m.aad = m.aad_size != 0 ? aad_.data() + shift_ : nullptr;
        m.tag = tag_.data() + 1;
        m.start = start_.first;
        m.start_rest = start_.rest;
        m.key = key;
        return m;
    }
    Bytes out() const { return Bytes(out_.begin() + at(), out_.begin() + at() + size()); }
    Bytes tag() const { return Bytes(tag_.begin() + 1, tag_.end() - 1); }
    Bytes& tag_bytes() { return tag_; }
    Bytes& aad_bytes() { return aad_; }
    std::uint8_t& input(std::size_t i) { return (in_place_ ? out_ : in_)[shift_ + i]; }
    bool untouched_around() const {
        return tag_.front() == kAround && tag_.back() == kAround && out_.back() == kAround &&
               std::all_of(out_.begin(), out_.begin() + at(),
                           [](std::uint8_t byte) { return byte == kAround; });
    }

  private:
    std::ptrdiff_t at() const { return static_cast<std::ptrdiff_t>(shift_); }
    std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(size_); }
    std::size_t shift_, size_;
    bool in_place_;
    Bytes in_, out_, tag_, aad_;
    Start start_;
};

class CpuAegis : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend("cpu", {.form = GetParam()});
        if (opened.code() == Code::backend_absent) GTEST_SKIP() << opened.error().message;
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
    }
    // Both ways, all in one call.
    void check(Mode mode, const std::vector<Case>& cases, const std::string& what) {
        const std::vector<Key> keys = keys_of(cases);
        for (const bool encrypts : {true, false}) {
            std::vector<Work> work;
            for (const Case& c : cases)
                work.emplace_back(c, encrypts, random_.below(17), random_.below(2) != 0);
            const std::vector<Code> codes = run(cipher(mode, encrypts, cases), keys, work);
            for (std::size_t i = 0; i < cases.size(); ++i) {
                const Case& c = cases[i];
                const auto which = [&] {
                    return what + ", " + std::to_string(c.plain.size()) + " bytes, " +
                           std::to_string(c.aad.size()) + " of AAD, message " + std::to_string(i) +
                           (encrypts ? ", sealing" : ", opening");
                };
                ASSERT_EQ(codes[i], Code::ok) << which();
                ASSERT_EQ(work[i].out(), encrypts ? c.ciphertext : c.plain) << which();
                ASSERT_EQ(work[i].tag(), c.tag) << which();
                ASSERT_TRUE(work[i].untouched_around()) << which();
            }
        }
    }
    static Cipher cipher(Mode mode, bool encrypts, const std::vector<Case>& cases) {
        return {mode, encrypts ? Direction::encrypt : Direction::decrypt,
                static_cast<std::uint8_t>(cases[0].tag.size())};
    }
    static std::vector<Key> keys_of(const std::vector<Case>& cases) {
        std::vector<Key> keys;
        for (const Case& c : cases) keys.push_back(test::must(Key::import(c.key)));
        return keys;
    }
    std::vector<Code> run(const Cipher& cipher, const std::vector<Key>& keys,
                          std::vector<Work>& work) {
        std::vector<Message> messages;
        for (std::uint32_t i = 0; i < work.size(); ++i) messages.push_back(work[i].message(i));
        std::vector<Code> codes(messages.size(), Code::ok);
        test::must(backend_->run(cipher, {keys}, messages, codes));
        return codes;
    }

    std::unique_ptr<core::Backend> backend_;
    Random random_{27};
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
Case case_of(const Vector& v, std::size_t tag_size) {
    Case c;
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
            const Case c = case_of(v, tag_size);
            check(v.mode, {c}, text(v.mode, tag_size));
            check(v.mode, std::vector<Case>(5, c), text(v.mode, tag_size));
            if (HasFatalFailure()) return;
        }
}

TEST_P(CpuAegis, EveryLengthByItself) {
    for (const Mode mode : kAegis)
        for (const std::size_t tag_size : {16, 32}) {
            const std::size_t most = aegis::rate(mode) * test::thorough(4, 2) + 20;
            for (std::size_t size = 0; size <= most; ++size) {
                const std::size_t aad_size = random_.below(2) ? random_.below(most) : 0;
                check(mode, {Case(mode, random_, size, aad_size, tag_size)}, text(mode, tag_size));
                check(mode, {Case(mode, random_, aad_size, size, tag_size)}, text(mode, tag_size));
                if (HasFatalFailure()) return;
            }
        }
}

// Lists in which neighbours have one size, or none has, or only their AAD differs.
TEST_P(CpuAegis, MessagesSideBySide) {
    for (const Mode mode : kAegis)
        for (int round = 0; round < test::thorough(60, 10); ++round) {
            const std::size_t tag_size = round % 2 ? 16 : 32, count = 1 + random_.below(9);
            const bool one_size = round % 3 != 0, one_aad = round % 4 != 0;
            const std::size_t most = aegis::rate(mode) * 5 + 3;
            const std::size_t size = random_.below(most), aad_size = random_.below(2 * most) / 2;
            std::vector<Case> cases;
            for (std::size_t i = 0; i < count; ++i)
                cases.emplace_back(mode, random_, one_size ? size : random_.below(most),
                                   one_aad ? aad_size : random_.below(most), tag_size);
            check(mode, cases, text(mode, tag_size) + " of " + std::to_string(count));
            if (HasFatalFailure()) return;
        }
}

TEST_P(CpuAegis, MoreMessagesThanAreHandedOverTogether) {
    const Case c(Mode::aegis128l, random_, 70, 5, 16);
    check(Mode::aegis128l, std::vector<Case>(150, c), text(Mode::aegis128l, 16));
}

// Of a list some are forged, each in another way: they alone are refused, with nothing of the
// plaintext, and in place the ciphertext as before.
TEST_P(CpuAegis, RefusesForgeries) {
    for (const Mode mode : kAegis)
        for (const std::size_t tag_size : {16, 32})
            for (int round = 0; round < test::thorough(40, 8); ++round) {
                const std::size_t size = 1 + random_.below(3 * aegis::rate(mode));
                std::vector<Case> cases;
                for (int i = 0; i < 7; ++i)
                    cases.emplace_back(mode, random_, round % 2 ? size : 1 + random_.below(size),
                                       20, tag_size);
                const std::vector<Key> keys = keys_of(cases);
                std::vector<Work> work;
                std::vector<bool> in_place, forged;
                for (const Case& c : cases) {
                    in_place.push_back(random_.below(2) != 0);
                    work.emplace_back(c, false, random_.below(17), in_place.back());
                    const std::size_t way = random_.below(4);
                    forged.push_back(way != 0);
                    const auto bit = static_cast<std::uint8_t>(1u << random_.below(8));
                    if (way == 1) work.back().tag_bytes()[1 + random_.below(tag_size)] ^= bit;
                    if (way == 2) work.back().aad_bytes().back() ^= bit;
                    if (way == 3) work.back().input(random_.below(c.plain.size())) ^= bit;
                }
                std::vector<Bytes> inputs;
                for (std::size_t i = 0; i < work.size(); ++i) {
                    inputs.emplace_back();
                    for (std::size_t k = 0; k < cases[i].plain.size(); ++k)
                        inputs.back().push_back(work[i].input(k));
                }
                const std::vector<Code> codes = run(cipher(mode, false, cases), keys, work);
                for (std::size_t i = 0; i < work.size(); ++i) {
                    const std::string which = text(mode, tag_size) + " message " +
                                              std::to_string(i) + (in_place[i] ? " in place" : "");
                    ASSERT_EQ(codes[i], forged[i] ? Code::authentication : Code::ok) << which;
                    ASSERT_EQ(work[i].out(), !forged[i]    ? cases[i].plain
                                             : in_place[i] ? inputs[i]
                                                           : Bytes(cases[i].plain.size()))
                        << which;
                    ASSERT_TRUE(work[i].untouched_around()) << which;
                }
            }
}

TEST_P(CpuAegis, PiecesOfAnySizeMakeTheWhole) {
    for (const Mode mode : kAegis)
        for (int round = 0; round < test::thorough(60, 10); ++round) {
            const std::size_t tag_size = round % 2 ? 16 : 32, most = 4 * aegis::rate(mode);
            const Case c(mode, random_, random_.below(most), random_.below(most), tag_size);
            const Key key = test::must(Key::import(c.key));
            const auto tables = test::must(backend_->tables({&key, 1}));
            for (const bool encrypts : {true, false}) {
                auto pieces = test::must(backend_->begin(cipher(mode, encrypts, {c}),
                                                         {{&key, 1}, tables.get()}, 0, c.start()));
                if (round % 3 == 0) {  // what came before a restart is of no account
                    test::must(pieces->aad(c.plain));
                    test::must(pieces->restart(c.start()));
                }
                const auto some = [&](std::size_t left) {
                    return std::min(left, random_.below(left + 2 + left / 3));
                };
                for (std::size_t done = 0; done < c.aad.size();) {
                    const std::size_t count = some(c.aad.size() - done);
                    test::must(pieces->aad(std::span(c.aad).subspan(done, count)));
                    done += count;
                }
                const Bytes& in = encrypts ? c.plain : c.ciphertext;
                Bytes out(in.size());
                for (std::size_t done = 0; done < in.size();) {
                    const std::size_t count = some(in.size() - done);
                    test::must(pieces->update(in.data() + done, out.data() + done, count));
                    done += count;
                    if (random_.below(4) == 0) pieces = test::must(pieces->clone());
                }
                const core::Tag tag = test::must(pieces->finish());
                ASSERT_EQ(out, encrypts ? c.ciphertext : c.plain) << text(mode, tag_size);
                ASSERT_EQ(Bytes(tag.data(), tag.data() + tag.size), c.tag) << text(mode, tag_size);
            }
        }
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
std::vector<Block> states_of(Mode mode, const Case& c) {
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

struct OnAStack {
    core::Backend& backend;
    Cipher cipher;
    const std::vector<Key>& keys;
    const std::vector<Message>& messages;
    std::vector<Code>& codes;
};

TEST_P(CpuAegis, LeavesNoStateOnTheStack) {
    if (test::kSanitized) GTEST_SKIP() << "sanitizers keep copies of their own";
    constexpr std::size_t kStack = 256 << 10;
    for (const Mode mode : kAegis)
        for (const bool encrypts : {true, false})
            for (const bool one_size : {true, false}) {
                std::vector<Case> cases;
                for (std::size_t i = 0; i < 4; ++i)
                    cases.emplace_back(mode, random_, aegis::rate(mode) * (one_size ? 3 : 1 + i), 0,
                                       16);
                const std::vector<Key> keys = keys_of(cases);
                std::vector<Work> work;
                for (const Case& c : cases) work.emplace_back(c, encrypts, 0, false);
                std::vector<Message> messages;
                for (std::uint32_t i = 0; i < 4; ++i) messages.push_back(work[i].message(i));
                std::vector<Code> codes(4, Code::ok);
                OnAStack call{*backend_, cipher(mode, encrypts, cases), keys, messages, codes};
                std::vector<std::uint8_t> stack(kStack);
                void* base = stack.data();
                std::size_t space = stack.size();
                ASSERT_TRUE(std::align(64, kStack - 64, base, space));
                pthread_attr_t attributes;
                pthread_attr_init(&attributes);
                ASSERT_EQ(pthread_attr_setstack(&attributes, base, kStack - 64), 0);
                pthread_t thread;
                ASSERT_EQ(pthread_create(
                              &thread, &attributes,
                              [](void* context) -> void* {
                                  const OnAStack& its = *static_cast<OnAStack*>(context);
                                  (void)its.backend.run(its.cipher, {its.keys}, its.messages,
                                                        its.codes);
                                  return nullptr;
                              },
                              &call),
                          0);
                pthread_join(thread, nullptr);
                pthread_attr_destroy(&attributes);
                for (std::size_t i = 0; i < 4; ++i) {
                    ASSERT_EQ(codes[i], Code::ok);
                    for (const Block& block : states_of(mode, cases[i]))
                        ASSERT_EQ(memmem(stack.data(), stack.size(), block.data(), block.size()),
                                  nullptr)
                            << text(mode, 16) << (encrypts ? " sealing" : " opening");
                }
            }
}

INSTANTIATE_TEST_SUITE_P(Levels, CpuAegis, testing::Values("sse", "avx2", "avx512"),
                         [](const auto& its) { return std::string(its.param); });

}  // namespace
