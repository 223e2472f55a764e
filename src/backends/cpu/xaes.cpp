// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/xaes.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <daelstrom/key.hpp>

#include "backends/cpu/clear_stack.hpp"
#include "backends/cpu/gcm.hpp"
#include "backends/cpu/memory_of_call.hpp"
#include "backends/cpu/xaes_avx512.hpp"
#include "backends/cpu/xor_ghash.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu::xaes {
namespace {

constexpr Cipher gcm_of(const Cipher& cipher) noexcept {
    return {Mode::gcm, cipher.direction, cipher.tag};
}

// J0 of N[12:], which GCM has for a nonce.
Block j0(const Start& start) noexcept {
    Block made{};
    std::copy_n(start.first.begin() + 12, 4, made.begin());
    std::copy_n(start.rest.begin(), 8, made.begin() + 4);
    made[15] = 1;
    return made;
}

// What a message's key is derived with; of one key for as long as it is the same.
class Deriver {
  public:
    explicit Deriver(const core::KeySchedule& key) noexcept : key_(key) {
        const Block l = cipher_of({});
        // CMAC's first subkey (SP 800-38B 6.1): the cipher of zeros, doubled.
        for (std::size_t i = 0; i < kBlockSize; ++i)
            k1_[i] =
                static_cast<std::uint8_t>(l[i] << 1 | (i + 1 < kBlockSize ? l[i + 1] >> 7 : 0));
        k1_[15] = static_cast<std::uint8_t>(k1_[15] ^ (0x87 & -(l[0] >> 7)));
    }
    Deriver(const Deriver&) = delete;
    Deriver& operator=(const Deriver&) = delete;
    ~Deriver() { wipe(k1_.data(), k1_.size()); }

    // CMAC's of two messages of one block: their number, "X" and N[:12].
    void derive(const Start& start, std::array<std::uint8_t, 32>& raw) const noexcept {
        for (std::uint8_t i = 0; i < 2; ++i) {
            Block block{0, static_cast<std::uint8_t>(i + 1), 'X', 0};
            std::copy_n(start.first.begin(), 12, block.begin() + 4);
            for (std::size_t k = 0; k < kBlockSize; ++k) block[k] ^= k1_[k];
            block = cipher_of(block);
            std::copy(block.begin(), block.end(), raw.begin() + kBlockSize * i);
            wipe(block.data(), block.size());
        }
    }

  private:
    Block cipher_of(const Block& block) const noexcept {
        Block made;
        kXorGhashPclmul.keystream(key_, block, made.data(), 1);
        return made;
    }
    const core::KeySchedule& key_;
    Block k1_{};
};

// Messages that are done before their tags are compared.
constexpr std::size_t kTogether = 64;

// At most kTogether, of one key.
void open(const core::KeySchedule& key, std::span<const Message> messages,
          xaes_avx512::KeysOfCall& keys, std::span<Code> codes) noexcept {
    std::array<Block, kTogether> tags;
    // What tags forged messages should have had.
    const core::WipeAtEnd wiped(tags.data(), messages.size() * sizeof tags[0]);
    xaes_avx512::messages(Direction::decrypt, key, messages, keys, tags.data(), kBlockSize);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        if (modes::equal_tags(tags[i].data(), m.tag, kBlockSize)) continue;
        // In place, the same keystream once more makes it the ciphertext that it was.
        if (m.in == m.out)
            xaes_avx512::messages(Direction::encrypt, key, {&m, 1}, keys, &tags[i], kBlockSize);
        else if (m.size != 0)
            wipe(m.out, m.size);
        codes[i] = Code::authentication;
    }
    clear_stack();
}

// Under a key of its own, which copies share and nobody changes.
class Pieces final : public core::Pieces {
  public:
    struct Derived {
        Key key;
        std::unique_ptr<core::KeyTables> tables;
    };
    Pieces(core::Backend& backend, const Cipher& cipher, const Key& master) noexcept
        : backend_(backend), cipher_(cipher), master_(master) {}
    Pieces(const Pieces& other, std::unique_ptr<core::Pieces> gcm) noexcept
        : backend_(other.backend_),
          cipher_(other.cipher_),
          master_(other.master_),
          derived_(other.derived_),
          gcm_(std::move(gcm)) {}

    Result<> aad(HostIn bytes) override { return gcm_->aad(bytes); }
    Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) override {
        return gcm_->update(in, out, size);
    }
    Result<core::Tag> finish() override { return gcm_->finish(); }
    Result<std::unique_ptr<core::Pieces>> clone() const override {
        DAEL_LET(gcm, gcm_->clone());
        return std::unique_ptr<core::Pieces>(std::make_unique<Pieces>(*this, std::move(gcm)));
    }
    // Another nonce is another key: unlike GCM's this allocates.
    Result<> restart(const Start& start) override {
        std::array<std::uint8_t, 32> raw;
        const core::WipeAtEnd wiped(raw);
        Deriver(master_.schedule()).derive(start, raw);
        DAEL_LET(key, Key::import(raw));
        auto derived = std::make_shared<Derived>(Derived{std::move(key), nullptr});
        DAEL_LET(tables, backend_.tables({&derived->key, 1}));
        derived->tables = std::move(tables);
        DAEL_LET(gcm, backend_.begin(gcm_of(cipher_), {{&derived->key, 1}, derived->tables.get()},
                                     0, j0(start)));
        gcm_ = std::move(gcm);  // before the key that the last one has
        derived_ = std::move(derived);
        return {};
    }

  private:
    core::Backend& backend_;
    const Cipher cipher_;
    const Key& master_;
    std::shared_ptr<const Derived> derived_;
    std::unique_ptr<core::Pieces> gcm_;
};

}  // namespace

Result<> run_avx512(const Cipher& cipher, std::span<const Key> keys,
                    std::span<const Message> messages, std::span<Code> codes) {
    MemoryOfCall<xaes_avx512::KeysOfCall> derived;
    if (!derived) return Error{Code::out_of_memory, "no memory for the keys of XAES's messages"};
    for (std::size_t i = 0, count = 0; i < messages.size(); i += count) {
        for (count = 1; count < kTogether && i + count < messages.size() &&
                        messages[i + count].key == messages[i].key;)
            ++count;
        const auto these = messages.subspan(i, count);
        derived.used(xaes_avx512::groups_of(count) * sizeof(xaes_avx512::Keys));
        const core::KeySchedule& key = keys[messages[i].key].schedule();
        if (cipher.direction == Direction::encrypt)
            xaes_avx512::messages(Direction::encrypt, key, these, *derived, nullptr, kBlockSize);
        else
            open(key, these, *derived, codes.subspan(i, count));
    }
    clear_stack();
    return {};
}

void run(Workspace& workspace, const Cipher& cipher, std::span<const Key> keys,
         std::span<const Message> messages, std::span<Code> codes) noexcept {
    GcmContext context;
    std::array<std::uint8_t, 32> raw;
    const core::WipeAtEnd wiped(raw), expanded(workspace.gcm_key, sizeof(GcmKey));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const core::KeySchedule& master = keys[messages[i].key].schedule();
        const Start start(messages[i].start, messages[i].start_rest);
        Deriver(master).derive(start, raw);
        workspace.gcm_key->set(*workspace.manager, raw);
        Message m = messages[i];
        m.start = j0(start);
        // Of a nonce the key itself is not asked.
        if (!gcm_message(gcm_of(cipher), *workspace.gcm_key, master, context, m))
            codes[i] = Code::authentication;
    }
}

Result<std::unique_ptr<core::Pieces>> begin(core::Backend& backend, const Cipher& cipher,
                                            const Key& key, const Start& start) {
    auto pieces = std::make_unique<Pieces>(backend, cipher, key);
    DAEL_TRY(pieces->restart(start));
    return std::unique_ptr<core::Pieces>(std::move(pieces));
}

}  // namespace dael::cpu::xaes
