// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gcm_avx512_calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include <daelstrom/gcm.hpp>
#include <daelstrom/key.hpp>

#include "core/secure_memory.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/counter.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu {

Result<std::unique_ptr<core::KeyTables>> GcmAvx512Tables::make(std::span<const Key> keys) {
    void* memory = core::secure_allocate(keys.size() * sizeof(Powers));
    if (!memory) return Error{Code::out_of_memory, "no memory for the keys' GCM tables"};
    return std::unique_ptr<core::KeyTables>(std::make_unique<GcmAvx512Tables>(memory, keys));
}

GcmAvx512Tables::GcmAvx512Tables(void* memory, std::span<const Key> keys) noexcept
    : powers_(static_cast<Powers*>(memory)), count_(keys.size()) {
    for (std::uint32_t i = 0; i < count_; ++i) (void)replace(i, keys[i], {});
}

GcmAvx512Tables::~GcmAvx512Tables() {
    core::secure_release(powers_, count_ * sizeof(Powers));
}

Result<> GcmAvx512Tables::replace(std::uint32_t index, const Key& key, Stream) {
    gcm_avx512::expand(key.schedule(), *new (powers_ + index) Powers, kPowers);
    return {};
}

namespace {

// Powers of a key that were not made ready, for as long as a call runs: as many as a message needs,
// in locked memory of the thread's own.
class PowersOfCall {
  public:
    PowersOfCall() noexcept = default;
    PowersOfCall(const PowersOfCall&) = delete;
    PowersOfCall& operator=(const PowersOfCall&) = delete;
    ~PowersOfCall() {
        if (key_) wipe(memory().get(), sizeof(Powers));
    }
    // Null: there is no memory.
    const Powers* of(const Key& key, const Message& m) noexcept {
        auto& mine = memory();
        if (!mine) mine.reset(static_cast<Powers*>(core::secure_allocate(sizeof(Powers))));
        if (!mine) return nullptr;
        const std::size_t needed =
            std::clamp<std::size_t>(most(m.size) + most(m.aad_size) + 2, 4, kPowers);
        if (key_ != &key || there_ < needed) {
            gcm_avx512::expand(key.schedule(), *mine, needed);
            key_ = &key;
            there_ = needed;
        }
        return mine.get();
    }

  private:
    struct Release {
        void operator()(Powers* powers) const noexcept {
            core::secure_release(powers, sizeof *powers);
        }
    };
    static std::unique_ptr<Powers, Release>& memory() noexcept {
        thread_local std::unique_ptr<Powers, Release> mine;
        return mine;
    }
    static std::size_t most(
        std::uint64_t size) noexcept {  // blocks, of more than all powers no more
        return blocks_of(std::min<std::uint64_t>(size, kPowers * kBlockSize));
    }

    const Key* key_ = nullptr;
    std::size_t there_ = 0;
};

class Pieces final : public core::Pieces {
  public:
    Pieces(Direction direction, const Powers& powers, const Key& key, const Block& start) noexcept
        : direction_(direction), powers_(powers), key_(key) {
        begin(start);
    }
    ~Pieces() override {
        wipe(&state_, sizeof state_);
        wipe(begun_.data(), begun_.size());
        wipe(keystream_.data(), keystream_.size());
    }

    Result<> aad(HostIn bytes) override {
        hash(bytes.data(), bytes.size());
        aad_size_ += bytes.size();
        return {};
    }

    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        if (size == 0) return {};
        if (!std::exchange(aad_ended_, true)) end_block();
        const core::KeySchedule& key = key_.schedule();
        const auto begun = static_cast<std::size_t>(size_ % kBlockSize);
        size_ += size;
        if (begun != 0) {
            const std::size_t count = std::min(kBlockSize - begun, size);
            crypt_begun(in, out, begun, count);
            in += count;
            out += count;
            size -= count;
        }
        const std::size_t whole = size / kBlockSize * kBlockSize;
        gcm_avx512::crypt(direction_, key, powers_, state_, in, out, whole);
        if (whole == size) return {};
        gcm_avx512::next_keystream(key, state_, keystream_);
        crypt_begun(in + whole, out + whole, 0, size - whole);
        return {};
    }

    Result<core::Tag> finish() override {
        end_block();
        return core::Tag(
            gcm_avx512::tag(key_.schedule(), powers_, state_, start_, aad_size_, size_));
    }

    Result<std::unique_ptr<core::Pieces>> clone() const override {
        return std::unique_ptr<core::Pieces>(std::make_unique<Pieces>(*this));
    }
    Result<> restart(const Start& start) override {
        begin(start.first);
        return {};
    }

  private:
    void begin(const Block& start) noexcept {
        start_ = start;
        state_ = {modes::counter_add32(start, 1), {}};
        begun_.fill(0);
        waiting_ = 0;
        aad_size_ = size_ = 0;
        aad_ended_ = false;
    }
    // `count` bytes within the block of keystream that is there, from byte `at` of it on.
    void crypt_begun(const std::uint8_t* in, std::uint8_t* out, std::size_t at,
                     std::size_t count) noexcept {
        gcm_avx512::crypt_within(direction_, keystream_, begun_, at, in, out, count);
        waiting_ = at + count;
        if (waiting_ == kBlockSize) end_block();
    }
    // AAD: whole blocks at once; what is left of one waits.
    void hash(const std::uint8_t* bytes, std::size_t size) noexcept {
        if (waiting_ != 0) {
            const std::size_t count = std::min(kBlockSize - waiting_, size);
            std::memcpy(begun_.data() + waiting_, bytes, count);
            waiting_ += count;
            if (waiting_ < kBlockSize) return;
            end_block();
            bytes += count;
            size -= count;
        }
        const std::size_t whole = size / kBlockSize * kBlockSize;
        gcm_avx512::hash(powers_, state_.hashed, bytes, whole);
        waiting_ = size - whole;
        if (waiting_ != 0) std::memcpy(begun_.data(), bytes + whole, waiting_);
    }
    // The block that has begun, filled up with zeros.
    void end_block() noexcept {
        if (waiting_ == 0) return;
        gcm_avx512::hash(powers_, state_.hashed, begun_.data(), waiting_);
        waiting_ = 0;
    }

    const Direction direction_;
    const Powers& powers_;
    const Key& key_;
    Block start_{};
    gcm_avx512::State state_;
    Block begun_{};      // of AAD or ciphertext, `waiting_` bytes
    Block keystream_{};  // of the block of data that has begun
    std::size_t waiting_ = 0;
    std::uint64_t aad_size_ = 0, size_ = 0;
    bool aad_ended_ = false;
};

// Messages of one key that are done before their tags are compared.
constexpr std::size_t kTogether = 32;

// At most kTogether.
void open(const Cipher& cipher, const core::KeySchedule& key, const Powers& powers,
          std::span<const Message> messages, std::span<Code> codes) {
    std::array<Block, kTogether> tags;
    const core::WipeAtEnd wiped(tags);  // what tags forged messages should have had
    gcm_avx512::messages(Direction::decrypt, key, powers, messages, tags.data(), kBlockSize);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        if (modes::equal_tags(tags[i].data(), m.tag, cipher.tag)) continue;
        // In place, the same keystream once more makes it the ciphertext that it was.
        if (m.in == m.out)
            gcm_avx512::message(Direction::encrypt, key, powers, m.start, m.aad, m.aad_size, m.in,
                                m.out, m.size, tags[i].data(), kBlockSize);
        else if (m.size != 0)
            wipe(m.out, m.size);
        codes[i] = Code::authentication;
    }
}

}  // namespace

Result<> gcm_avx512_run(const Cipher& cipher, const core::KeyList& keys,
                        std::span<const Message> messages, std::span<Code> codes) {
    const auto* const tables = static_cast<const GcmAvx512Tables*>(keys.tables);
    PowersOfCall own;
    for (std::size_t i = 0, count = 0; i < messages.size(); i += count) {
        const Key& key = keys.list[messages[i].key];
        const Powers* powers = tables ? &(*tables)[messages[i].key] : nullptr;
        count = 0;
        do {
            if (!tables) powers = own.of(key, messages[i + count]);
            if (!powers) return Error{Code::out_of_memory, "no memory for a key's GCM tables"};
            ++count;
        } while (count < kTogether && i + count < messages.size() &&
                 messages[i + count].key == messages[i].key);
        const auto these = messages.subspan(i, count);
        if (cipher.direction == Direction::encrypt)
            gcm_avx512::messages(Direction::encrypt, key.schedule(), *powers, these, nullptr,
                                 cipher.tag);
        else
            open(cipher, key.schedule(), *powers, these, codes.subspan(i, count));
    }
    return {};
}

std::unique_ptr<core::Pieces> begin_gcm_avx512(Direction direction, const Powers& powers,
                                               const Key& key, const Block& start) {
    return std::make_unique<Pieces>(direction, powers, key, start);
}

}  // namespace dael::cpu
