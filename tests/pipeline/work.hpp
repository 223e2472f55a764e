// SPDX-License-Identifier: Apache-2.0
// Messages in memory of the test's own, in place or apart, ordinary or page-locked: what each must
// become, and whether the codes of a call say of each what is true.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "modes/traits.hpp"
#include "support/host_device.hpp"
#include "support/test_batch.hpp"

namespace dael::test {

class Work {
  public:
    struct Options {
        Cipher cipher = {};
        std::vector<std::size_t> sizes = {};
        bool in_place = true;
        Memory* pinned = nullptr;  // whose page-locked memory it is; null: ordinary memory
        bool wraps = false;        // GCM: whether its counter does, a little into the message
    };
    Work(Random& random, const KeyRing& ring, Options options)
        : options_(std::move(options)), ring_(ring) {
        std::size_t all = 0;
        for (const std::size_t size : options_.sizes) all += (size + 79) / 64 * 64;
        size_ = 2 * all;
        data_ = options_.pinned
                    ? static_cast<std::uint8_t*>(*options_.pinned->allocate_pinned(size_ + 64))
                    : static_cast<std::uint8_t*>(std::aligned_alloc(64, size_ + 64));
        tags_.resize(options_.sizes.size() * 16);
        aad_ = random.bytes(40);
        std::ranges::copy(random.bytes(size_), data_);
        const Cipher& cipher = options_.cipher;
        std::size_t at = 0;
        for (std::size_t i = 0; i < options_.sizes.size(); ++i) {
            Message m{data_ + at, data_ + at, options_.sizes[i]};
            at += (m.size + 79) / 64 * 64;
            if (!options_.in_place) m.out += all;
            m.start = fitting_start(cipher, random);
            if (options_.wraps) std::ranges::copy(Bytes{255, 255, 255, 240}, m.start.begin() + 12);
            m.key = static_cast<std::uint32_t>(random.below(ring.keys.size()));
            if (authenticates(cipher.mode)) {
                m.tag = tags_.data() + 16 * i;
                m.aad = aad_.data();
                m.aad_size = random.below(40);
            }
            answers_.push_back(oracle(ring.raw[m.key], cipher, m));
            if (!modes::encrypts(cipher)) std::ranges::copy(answers_[i].tag, m.tag);
            messages.push_back(m);
        }
        before_.assign(data_, data_ + size_);
        tags_before_ = tags_;
        codes.assign(messages.size(), static_cast<Code>(99));
    }
    ~Work() {
        std::memset(data_, 0, size_ + 64);
        if (options_.pinned)
            options_.pinned->release_pinned(data_);
        else
            std::free(data_);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    void again() {
        std::ranges::copy(before_, data_);
        tags_ = tags_before_;
        codes.assign(messages.size(), static_cast<Code>(99));
    }

    // What is wrong after a call that returned `call`: empty if each code is true.
    std::string fault(Code call) const {
        for (std::size_t i = 0; i < messages.size(); ++i)
            if (auto wrong = fault(i, call); !wrong.empty())
                return "message " + std::to_string(i) + " of " + std::to_string(messages.size()) +
                       ", " + std::to_string(messages[i].size) + " bytes: " + wrong;
        return "";
    }
    std::size_t lost() const {
        return static_cast<std::size_t>(std::ranges::count(codes, Code::internal));
    }

    std::vector<Message> messages;
    std::vector<Code> codes;

  private:
    std::string fault(std::size_t i, Code call) const {
        const Message& m = messages[i];
        const std::span out(m.out, m.size);
        const bool seals = authenticates(options_.cipher.mode) && modes::encrypts(options_.cipher);
        if (codes[i] == Code::ok) {
            if (auto wrong = difference(answers_[i].out, out); !wrong.empty()) return wrong;
            const std::size_t tag = options_.cipher.tag;
            return seals ? difference(std::span(answers_[i].tag).first(tag), std::span(m.tag, tag))
                         : "";
        }
        if (call == Code::ok) return "has a code of " + std::to_string(static_cast<int>(codes[i]));
        if (codes[i] == Code::internal) return "";
        if (codes[i] != call)
            return "has " + std::to_string(static_cast<int>(codes[i])) + ", and the call " +
                   std::to_string(static_cast<int>(call));
        const auto at = static_cast<std::size_t>(m.out - data_);
        if (auto wrong = difference(std::span(before_).subspan(at, m.size), out); !wrong.empty())
            return "was touched: " + wrong;
        if (std::equal(m.tag, m.tag + (m.tag ? 16 : 0), tags_before_.data() + 16 * i)) return "";
        return "its tag was touched";
    }

    const Options options_;
    const KeyRing& ring_;
    std::size_t size_ = 0;
    std::uint8_t* data_ = nullptr;
    Bytes before_, tags_, tags_before_, aad_;
    std::vector<Answer> answers_;
};

}  // namespace dael::test
