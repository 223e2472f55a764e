// SPDX-License-Identifier: Apache-2.0
#include "modes/xaes.hpp"

#include <algorithm>
#include <utility>

#include <daelstrom/key.hpp>

#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::modes {
namespace {

// Under a key of its own, which copies share and nobody changes.
class Pieces final : public core::Pieces {
  public:
    struct Derived {
        Key key;
        std::unique_ptr<core::KeyTables> tables;
    };
    Pieces(core::Backend& backend, const Cipher& cipher, const Key& master,
           DeriveXaes derive) noexcept
        : backend_(backend),
          cipher_{Mode::gcm, cipher.direction, cipher.tag},
          master_(master),
          derive_(derive) {}
    Pieces(const Pieces& other, std::unique_ptr<core::Pieces> gcm) noexcept
        : backend_(other.backend_),
          cipher_(other.cipher_),
          master_(other.master_),
          derive_(other.derive_),
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
    Result<> restart(const Start& nonce) override {
        XaesKey raw;
        const core::WipeAtEnd wiped(raw);
        derive_(master_.schedule(), nonce, raw);
        DAEL_LET(key, Key::import(raw));
        auto derived = std::make_shared<Derived>(Derived{std::move(key), nullptr});
        DAEL_LET(tables, backend_.tables({&derived->key, 1}));
        derived->tables = std::move(tables);
        DAEL_LET(gcm, backend_.begin(cipher_, {{&derived->key, 1}, derived->tables.get()}, 0,
                                     xaes_gcm_start(nonce)));
        gcm_ = std::move(gcm);  // before the key that the last one has
        derived_ = std::move(derived);
        return {};
    }

  private:
    core::Backend& backend_;
    const Cipher cipher_;
    const Key& master_;
    const DeriveXaes derive_;
    std::shared_ptr<const Derived> derived_;
    std::unique_ptr<core::Pieces> gcm_;
};

}  // namespace

Block xaes_gcm_start(const Start& nonce) noexcept {
    Block made{};
    std::copy_n(nonce.first.begin() + 12, 4, made.begin());
    std::copy_n(nonce.rest.begin(), 8, made.begin() + 4);
    made[15] = 1;
    return made;
}

Block cmac_subkey(const Block& l) noexcept {
    Block k1;
    for (std::size_t i = 0; i < kBlockSize; ++i)
        k1[i] = static_cast<std::uint8_t>(l[i] << 1 | (i + 1 < kBlockSize ? l[i + 1] >> 7 : 0));
    k1[15] = static_cast<std::uint8_t>(k1[15] ^ (0x87 & -(l[0] >> 7)));
    return k1;
}

XaesKey xaes_blocks(const Block& k1, const Start& nonce) noexcept {
    XaesKey blocks{};
    for (std::size_t i = 0; i < 2; ++i) {
        std::uint8_t* const block = blocks.data() + kBlockSize * i;
        block[1] = static_cast<std::uint8_t>(i + 1);
        block[2] = 'X';
        std::copy_n(nonce.first.begin(), 12, block + 4);
        for (std::size_t k = 0; k < kBlockSize; ++k) block[k] ^= k1[k];
    }
    return blocks;
}

void derive_xaes(const core::KeySchedule& key, const Start& nonce, XaesKey& derived) noexcept {
    Block k1 = cmac_subkey(encrypt_block(key, {}));
    const core::WipeAtEnd wiped(k1);
    derived = xaes_blocks(k1, nonce);
    for (std::uint8_t* half : {derived.data(), derived.data() + kBlockSize}) {
        Block block;
        std::copy_n(half, kBlockSize, block.begin());
        block = encrypt_block(key, block);
        std::ranges::copy(block, half);
        wipe(block.data(), block.size());
    }
}

Result<std::unique_ptr<core::Pieces>> begin_xaes(core::Backend& backend, const Cipher& cipher,
                                                 const Key& key, const Start& nonce,
                                                 DeriveXaes derive) {
    auto pieces = std::make_unique<Pieces>(backend, cipher, key, derive);
    DAEL_TRY(pieces->restart(nonce));
    return std::unique_ptr<core::Pieces>(std::move(pieces));
}

}  // namespace dael::modes
