// SPDX-License-Identifier: Apache-2.0
// Modes that authenticate, of the cpu backend at every level that this machine has, beside an
// oracle that shares no code: lengths, lists, forgeries, pieces.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/registry.hpp"
#include "support/bytes.hpp"
#include "support/must.hpp"
#include "support/thorough.hpp"

namespace dael::test {

// A message with all that it needs, and what is to become of it.
struct AeadCase {
    Bytes key, nonce, aad, plain, ciphertext, tag;

    Start start() const {
        Bytes bytes = nonce;
        bytes.resize(2 * kBlockSize);
        Start all;
        std::copy_n(bytes.begin(), kBlockSize, all.first.begin());
        std::copy_n(bytes.begin() + kBlockSize, kBlockSize, all.rest.begin());
        return all;
    }
};

// Where a case is done: away from any boundary, with bytes around that must stay.
struct AeadWork {
    static constexpr std::uint8_t kAround = 0xa5;
    AeadWork(const AeadCase& c, bool encrypts, std::size_t shift, bool in_place)
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

class CpuAead : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend("cpu", {.form = GetParam()});
        if (opened.code() == Code::backend_absent) GTEST_SKIP() << opened.error().message;
        ASSERT_TRUE(opened) << opened.error().message;
        backend_ = std::move(*opened);
    }
    // Both ways, all in one call.
    void check(Mode mode, const std::vector<AeadCase>& cases, const std::string& what) {
        for (const bool encrypts : {true, false}) {
            std::vector<AeadWork> work;
            for (const AeadCase& c : cases)
                work.emplace_back(c, encrypts, random_.below(17), random_.below(2) != 0);
            const std::vector<Code> codes = run(cipher(mode, encrypts, cases), cases, work);
            for (std::size_t i = 0; i < cases.size(); ++i) {
                const AeadCase& c = cases[i];
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
    static Cipher cipher(Mode mode, bool encrypts, const std::vector<AeadCase>& cases) {
        return {mode, encrypts ? Direction::encrypt : Direction::decrypt,
                static_cast<std::uint8_t>(cases[0].tag.size())};
    }
    static std::vector<Key> keys_of(const std::vector<AeadCase>& cases) {
        std::vector<Key> keys;
        for (const AeadCase& c : cases) keys.push_back(must(Key::import(c.key)));
        return keys;
    }
    // Messages of one key name one, which makes them one list of the backend's.
    static std::vector<Message> messages_of(const std::vector<AeadCase>& cases,
                                            std::vector<AeadWork>& work) {
        std::vector<Message> messages;
        for (std::size_t i = 0; i < work.size(); ++i) {
            const auto first = std::find_if(cases.begin(), cases.end(), [&](const AeadCase& c) {
                return c.key == cases[i].key;
            });
            messages.push_back(work[i].message(static_cast<std::uint32_t>(first - cases.begin())));
        }
        return messages;
    }
    std::vector<Code> run(const Cipher& cipher, const std::vector<AeadCase>& cases,
                          std::vector<AeadWork>& work) {
        const std::vector<Key> keys = keys_of(cases);
        const std::vector<Message> messages = messages_of(cases, work);
        std::vector<Code> codes(messages.size(), Code::ok);
        must(backend_->run(cipher, {keys}, messages, codes));
        return codes;
    }

    // Makes a case of random bytes, of so many of data and of AAD.
    using Make = std::function<AeadCase(std::size_t size, std::size_t aad_size)>;
    void every_length(const Cipher& kind, std::size_t most, const Make& make) {
        for (std::size_t size = 0; size <= most; ++size) {
            const std::size_t other = random_.below(2) ? random_.below(most) : 0;
            check(kind.mode, {make(size, other)}, "by itself");
            check(kind.mode, {make(other, size)}, "by itself");
            if (HasFatalFailure()) return;
        }
    }
    // Lists in which neighbours have one size, or none has, or only their AAD differs.
    void side_by_side(const Cipher& kind, std::size_t most, const Make& make) {
        for (int round = 0; round < thorough(60, 10); ++round) {
            const std::size_t count = 1 + random_.below(round % 5 ? 9 : 40);
            const bool one_size = round % 3 != 0, one_aad = round % 4 != 0;
            const std::size_t size = random_.below(most), aad_size = random_.below(2 * most) / 2;
            std::vector<AeadCase> cases;
            for (std::size_t i = 0; i < count; ++i) {
                cases.push_back(make(one_size ? size : random_.below(most),
                                     one_aad ? aad_size : random_.below(most)));
                if (i % 4 != 0) cases.back() = cases[i - 1];  // of one key
            }
            check(kind.mode, cases, "of " + std::to_string(count));
            if (HasFatalFailure()) return;
        }
    }
    // Of a list some are forged, each in another way: they alone are refused, with nothing of the
    // plaintext, and in place the ciphertext as before.
    void forgeries(const Cipher& kind, std::size_t most, const Make& make) {
        for (int round = 0; round < thorough(40, 8); ++round) {
            const std::size_t size = 1 + random_.below(most);
            std::vector<AeadCase> cases;
            for (int i = 0; i < 7; ++i)
                cases.push_back(make(round % 2 ? size : 1 + random_.below(size), 20));
            std::vector<AeadWork> work;
            std::vector<bool> in_place, forged;
            for (const AeadCase& c : cases) {
                in_place.push_back(random_.below(2) != 0);
                work.emplace_back(c, false, random_.below(17), in_place.back());
                const std::size_t way = random_.below(4);
                forged.push_back(way != 0);
                const auto bit = static_cast<std::uint8_t>(1u << random_.below(8));
                if (way == 1) work.back().tag_bytes()[1 + random_.below(c.tag.size())] ^= bit;
                if (way == 2) work.back().aad_bytes().back() ^= bit;
                if (way == 3) work.back().input(random_.below(c.plain.size())) ^= bit;
            }
            std::vector<Bytes> inputs;
            for (std::size_t i = 0; i < work.size(); ++i) {
                inputs.emplace_back();
                for (std::size_t k = 0; k < cases[i].plain.size(); ++k)
                    inputs.back().push_back(work[i].input(k));
            }
            const std::vector<Code> codes = run(cipher(kind.mode, false, cases), cases, work);
            for (std::size_t i = 0; i < work.size(); ++i) {
                const std::string which =
                    "message " + std::to_string(i) + (in_place[i] ? " in place" : "");
                ASSERT_EQ(codes[i], forged[i] ? Code::authentication : Code::ok) << which;
                ASSERT_EQ(work[i].out(), !forged[i]    ? cases[i].plain
                                         : in_place[i] ? inputs[i]
                                                       : Bytes(cases[i].plain.size()))
                    << which;
                ASSERT_TRUE(work[i].untouched_around()) << which;
            }
        }
    }
    void pieces(const Cipher& kind, std::size_t most, const Make& make) {
        for (int round = 0; round < thorough(60, 10); ++round) {
            const AeadCase c = make(random_.below(most), random_.below(most));
            const Key key = must(Key::import(c.key));
            const auto tables = must(backend_->tables({&key, 1}));
            for (const bool encrypts : {true, false}) {
                auto pieces = must(backend_->begin(cipher(kind.mode, encrypts, {c}),
                                                   {{&key, 1}, tables.get()}, 0, c.start()));
                if (round % 3 == 0) {  // what came before a restart is of no account
                    must(pieces->aad(c.plain));
                    must(pieces->restart(c.start()));
                }
                const auto some = [&](std::size_t left) {
                    return std::min(left, random_.below(left + 2 + left / 3));
                };
                for (std::size_t done = 0; done < c.aad.size();) {
                    const std::size_t count = some(c.aad.size() - done);
                    must(pieces->aad(std::span(c.aad).subspan(done, count)));
                    done += count;
                }
                const Bytes& in = encrypts ? c.plain : c.ciphertext;
                Bytes out(in.size());
                for (std::size_t done = 0; done < in.size();) {
                    const std::size_t count = some(in.size() - done);
                    must(pieces->update(in.data() + done, out.data() + done, count));
                    done += count;
                    if (random_.below(4) == 0) pieces = must(pieces->clone());
                }
                const core::Tag tag = must(pieces->finish());
                ASSERT_EQ(out, encrypts ? c.ciphertext : c.plain);
                ASSERT_EQ(Bytes(tag.data(), tag.data() + tag.size), c.tag);
            }
        }
    }

    static bool holds(const Bytes& memory, std::span<const std::uint8_t> block) {
        return memmem(memory.data(), memory.size(), block.data(), block.size()) != nullptr;
    }
    // What is on a thread's stack when it has done this.
    Bytes stack_after(Mode mode, bool encrypts, const std::vector<AeadCase>& cases) {
        struct Call {
            core::Backend& backend;
            Cipher cipher;
            std::vector<Key> keys;
            std::vector<Message> messages{};
            std::vector<Code> codes{};
        } call{*backend_, cipher(mode, encrypts, cases), keys_of(cases)};
        std::vector<AeadWork> work;
        for (const AeadCase& c : cases) work.emplace_back(c, encrypts, 0, false);
        for (std::uint32_t i = 0; i < work.size(); ++i) call.messages.push_back(work[i].message(i));
        call.codes.assign(cases.size(), Code::ok);
        constexpr std::size_t kStack = 256 << 10;
        Bytes stack(kStack);
        void* base = stack.data();
        std::size_t space = stack.size();
        EXPECT_TRUE(std::align(64, kStack - 64, base, space));
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        EXPECT_EQ(pthread_attr_setstack(&attributes, base, kStack - 64), 0);
        pthread_t thread;
        const int failed = pthread_create(
            &thread, &attributes,
            [](void* context) -> void* {
                Call& its = *static_cast<Call*>(context);
                (void)its.backend.run(its.cipher, {its.keys}, its.messages, its.codes);
                return nullptr;
            },
            &call);
        EXPECT_EQ(failed, 0);
        if (!failed) pthread_join(thread, nullptr);
        pthread_attr_destroy(&attributes);
        for (const Code code : call.codes) EXPECT_EQ(code, Code::ok);
        return stack;
    }

    std::unique_ptr<core::Backend> backend_;
    Random random_{27};
};

}  // namespace dael::test
