// SPDX-License-Identifier: Apache-2.0
// GCM by libipsec-mb's direct calls, which need no manager's state: only its functions, which are
// chosen once when keys are made ready.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "backends/cpu/ipsec_mb.hpp"
#include "core/backend.hpp"

namespace dael::cpu {

// Longer messages go piece by piece, far from where 32-bit arithmetic might hide, and so short that
// tests go past it. A multiple of 16, so that no piece but the last ends inside a block.
inline constexpr std::size_t kGcmPiece = std::size_t{16} << 20;

// The library's functions for one key size.
struct GcmCalls {
    aes_gcm_pre_t expand;
    aes_gcm_enc_dec_t seal, open;
    aes_gcm_init_var_iv_t begin;
    aes_gcm_enc_dec_update_t encrypt, decrypt;
    aes_gcm_enc_dec_finalize_t end_encrypt, end_decrypt;
    aes_gmac_init_t begin_aad;
    aes_gmac_update_t more_aad;
};
GcmCalls gcm_calls(const IMB_MGR& manager, int key_bytes) noexcept;

// Round keys and powers of the hash subkey. The header asks for this alignment in its Windows build
// only.
struct alignas(64) GcmKey {
    gcm_key_data data;
    GcmCalls calls;

    void set(const IMB_MGR& manager, std::span<const std::uint8_t> raw) noexcept;
};

// A GcmKey for each key, in locked memory that wipes itself.
class Tables final : public core::KeyTables {
  public:
    static Result<std::unique_ptr<core::KeyTables>> make(const IMB_MGR& manager,
                                                         std::span<const Key> keys);
    // On any thread's manager of this level: its functions are the same.
    Tables(const IMB_MGR& manager, void* memory, std::span<const Key> keys) noexcept;
    ~Tables() override;
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override;
    const GcmKey& operator[](std::size_t i) const noexcept { return keys_[i]; }

  private:
    std::array<GcmCalls, 3> calls_;  // by key size
    GcmKey* const keys_;
    const std::size_t count_;
};

// The library's state of a message, in which keystream remains.
struct GcmContext : gcm_context_data {
    GcmContext() noexcept {}  // the library fills it
    GcmContext(const GcmContext&) = default;
    GcmContext& operator=(const GcmContext&) = default;
    ~GcmContext();
};

// The IV that yields a pre-counter block: a nonce, or 16 bytes solved for.
class GcmIv {
  public:
    GcmIv(const core::KeySchedule& key, const Block& start) noexcept;
    const std::uint8_t* data() const noexcept { return bytes_.data(); }
    std::size_t size() const noexcept { return size_; }

  private:
    Block bytes_;
    std::size_t size_;
};

// One message, to its tag, and back where that does not match: whether it did. `schedule` is the
// same key, which is asked where J0 is of no nonce.
bool gcm_message(const Cipher& cipher, const GcmKey& key, const core::KeySchedule& schedule,
                 GcmContext& context, const Message& message) noexcept;

// Messages under prepared keys; or where there are no tables, under keys expanded one after the
// other in the workspace, which is not needed else.
void gcm(Workspace* workspace, const Cipher& cipher, const core::KeyList& keys,
         std::span<const Message> messages, std::span<Code> codes);

}  // namespace dael::cpu
