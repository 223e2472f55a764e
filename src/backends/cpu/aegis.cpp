// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/aegis.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <daelstrom/key.hpp>

#include "backends/cpu/clear_stack.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/aegis.hpp"
#include "modes/gcm.hpp"
#include "vectors/units.hpp"

namespace dael::cpu::aegis {
namespace {

// Messages that are handed over together.
constexpr std::size_t kTogether = 64;

const std::uint8_t* raw(std::span<const Key> keys, const Message& m) noexcept {
    return keys[m.key].schedule().raw.data();
}

// At most kTogether.
void open(const Form& form, const Cipher& cipher, std::span<const Key> keys,
          std::span<const Message> messages, std::span<dael::Code> codes) noexcept {
    std::array<std::array<std::uint8_t, kMaxTag>, kTogether> tags;
    // What tags forged messages should have had.
    const core::WipeAtEnd wiped(tags.data(), messages.size() * sizeof tags[0]);
    std::array<Job, kTogether> jobs;
    for (std::size_t i = 0; i < messages.size(); ++i)
        jobs[i] = {raw(keys, messages[i]), &messages[i], tags[i].data()};
    form.run(cipher.mode, Direction::decrypt, std::span(jobs).first(messages.size()), cipher.tag);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        if (modes::equal_tags(tags[i].data(), m.tag, cipher.tag)) continue;
        if (m.in == m.out)
            form.run(cipher.mode, Direction::encrypt, {&jobs[i], 1}, cipher.tag);
        else if (m.size != 0)
            wipe(m.out, m.size);
        codes[i] = dael::Code::authentication;
    }
    if (form.spills) clear_stack();
}

class Pieces final : public core::Pieces {
  public:
    Pieces(const Form& form, const Cipher& cipher, const Key& key, const Start& start) noexcept
        : form_(form), cipher_(cipher), rate_(dael::aegis::rate(cipher.mode)), key_(key) {
        begin(start);
    }
    Pieces(const Pieces&) = default;
    ~Pieces() override {
        wipe(&state_, sizeof state_);
        wipe(begun_.data(), begun_.size());
        wipe(keystream_.data(), keystream_.size());
    }

    Result<> aad(HostIn bytes) override {
        const std::uint8_t* from = bytes.data();
        std::size_t size = bytes.size();
        aad_size_ += size;
        if (waiting_ != 0) {
            const std::size_t count = std::min(rate_ - waiting_, size);
            if (count != 0) std::memcpy(begun_.data() + waiting_, from, count);
            waiting_ += count;
            if (waiting_ < rate_) return {};
            end_block();
            from += count;
            size -= count;
        }
        const std::size_t whole = size / rate_ * rate_;
        if (whole != 0) form_.absorb(cipher_.mode, state_, from, whole);
        waiting_ = size - whole;
        if (waiting_ != 0) std::memcpy(begun_.data(), from + whole, waiting_);
        if (form_.spills) clear_stack();
        return {};
    }

    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        if (size == 0) return {};
        if (!std::exchange(aad_ended_, true)) end_block();
        size_ += size;
        if (waiting_ != 0) {
            const std::size_t count = std::min(rate_ - waiting_, size);
            crypt_begun(in, out, count);
            in += count;
            out += count;
            size -= count;
        }
        const std::size_t whole = size / rate_ * rate_;
        if (whole != 0) form_.crypt(cipher_.mode, cipher_.direction, state_, in, out, whole);
        if (whole != size) {
            form_.keystream(cipher_.mode, state_, keystream_.data());
            crypt_begun(in + whole, out + whole, size - whole);
        }
        if (form_.spills) clear_stack();
        return {};
    }

    Result<core::Tag> finish() override {
        end_block();
        core::Tag tag;
        tag.size = cipher_.tag;
        form_.finish(cipher_.mode, state_, aad_size_, size_, tag.bytes.data(), cipher_.tag);
        if (form_.spills) clear_stack();
        return tag;
    }

    Result<std::unique_ptr<core::Pieces>> clone() const override {
        return std::unique_ptr<core::Pieces>(std::make_unique<Pieces>(*this));
    }
    Result<> restart(const Start& start) override {
        begin(start);
        return {};
    }

  private:
    void begin(const Start& start) noexcept {
        form_.begin(cipher_.mode, key_.schedule().raw.data(), start.first, start.rest, state_);
        if (form_.spills) clear_stack();
        begun_.fill(0);
        waiting_ = 0;
        aad_size_ = size_ = 0;
        aad_ended_ = false;
    }
    // Within the keystream that is there; the plaintext waits for its step.
    void crypt_begun(const std::uint8_t* in, std::uint8_t* out, std::size_t count) noexcept {
        const bool encrypts = cipher_.direction == Direction::encrypt;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint8_t data = in[i];
            out[i] = data ^ keystream_[waiting_ + i];
            begun_[waiting_ + i] = encrypts ? data : out[i];
        }
        waiting_ += count;
        if (waiting_ == rate_) end_block();
    }
    // What has begun, filled up with zeros.
    void end_block() noexcept {
        if (waiting_ == 0) return;
        std::memset(begun_.data() + waiting_, 0, rate_ - waiting_);
        form_.absorb(cipher_.mode, state_, begun_.data(), rate_);
        waiting_ = 0;
    }

    const Form& form_;
    const Cipher cipher_;
    const std::size_t rate_;
    const Key& key_;
    State state_;
    std::array<std::uint8_t, kMaxRate> begun_{};      // of AAD or plaintext, `waiting_` bytes
    std::array<std::uint8_t, kMaxRate> keystream_{};  // of data that has begun
    std::size_t waiting_ = 0;
    std::uint64_t aad_size_ = 0, size_ = 0;
    bool aad_ended_ = false;
};

}  // namespace

const Form& form(Level level) noexcept {
    const vectors::Units units = vectors::units();
    if (!units.vaes || level == Level::sse) return kAesni;
    return level == Level::avx512 && units.avx512 && units.bmi2 ? kVaes512 : kVaes256;
}

void run(const Form& form, const Cipher& cipher, std::span<const Key> keys,
         std::span<const Message> messages, std::span<dael::Code> codes) noexcept {
    for (std::size_t i = 0; i < messages.size(); i += kTogether) {
        const auto these = messages.subspan(i, std::min(kTogether, messages.size() - i));
        if (cipher.direction == Direction::decrypt) {
            open(form, cipher, keys, these, codes.subspan(i, these.size()));
            continue;
        }
        std::array<Job, kTogether> jobs;
        for (std::size_t k = 0; k < these.size(); ++k)
            jobs[k] = {raw(keys, these[k]), &these[k], these[k].tag};
        form.run(cipher.mode, Direction::encrypt, std::span(jobs).first(these.size()), cipher.tag);
    }
    if (form.spills) clear_stack();
}

std::unique_ptr<core::Pieces> begin(const Form& form, const Cipher& cipher, const Key& key,
                                    const Start& start) {
    return std::make_unique<Pieces>(form, cipher, key, start);
}

}  // namespace dael::cpu::aegis
