// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/gcm.hpp"

#include <algorithm>

#include <daelstrom/key.hpp>

#include "core/secure_memory.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu {
namespace {

std::size_t by_size(int key_bytes) noexcept {
    return static_cast<std::size_t>(key_bytes / 8 - 2);
}

// A message in pieces: any IV, any length. Writes the whole tag.
void piece_by_piece(Direction direction, const GcmKey& key, const core::KeySchedule& schedule,
                    GcmContext& context, const Message& m, std::uint8_t* tag) noexcept {
    const GcmCalls& calls = key.calls;
    const bool encrypt = direction == Direction::encrypt;
    const auto update = encrypt ? calls.encrypt : calls.decrypt;
    const GcmIv iv(schedule, m.start);
    calls.begin(&key.data, &context, iv.data(), iv.size(), m.aad, m.aad_size);
    for (std::uint64_t done = 0; done < m.size; done += kGcmPiece)
        update(&key.data, &context, m.out + done, m.in + done, std::min(kGcmPiece, m.size - done));
    (encrypt ? calls.end_encrypt : calls.end_decrypt)(&key.data, &context, tag, gcm::kTagSize);
}

// Writes the whole tag. Decrypts without looking at it.
inline void transform(Direction direction, const GcmKey& key, const core::KeySchedule& schedule,
                      GcmContext& context, const Message& m, std::uint8_t* tag) noexcept {
    if (!modes::is_of_nonce(m.start) || m.size > kGcmPiece)
        return piece_by_piece(direction, key, schedule, context, m, tag);
    const auto call = direction == Direction::encrypt ? key.calls.seal : key.calls.open;
    call(&key.data, &context, m.out, m.in, m.size, m.start.data(), m.aad, m.aad_size, tag,
         gcm::kTagSize);
}

}  // namespace

GcmCalls gcm_calls(const IMB_MGR& m, int key_bytes) noexcept {
    switch (key_bytes) {
        case 16:
            return {m.gcm128_pre,          m.gcm128_enc,          m.gcm128_dec,
                    m.gcm128_init_var_iv,  m.gcm128_enc_update,   m.gcm128_dec_update,
                    m.gcm128_enc_finalize, m.gcm128_dec_finalize, m.gmac128_init,
                    m.gmac128_update};
        case 24:
            return {m.gcm192_pre,          m.gcm192_enc,          m.gcm192_dec,
                    m.gcm192_init_var_iv,  m.gcm192_enc_update,   m.gcm192_dec_update,
                    m.gcm192_enc_finalize, m.gcm192_dec_finalize, m.gmac192_init,
                    m.gmac192_update};
        default:
            return {m.gcm256_pre,          m.gcm256_enc,          m.gcm256_dec,
                    m.gcm256_init_var_iv,  m.gcm256_enc_update,   m.gcm256_dec_update,
                    m.gcm256_enc_finalize, m.gcm256_dec_finalize, m.gmac256_init,
                    m.gmac256_update};
    }
}

void GcmKey::set(const IMB_MGR& manager, std::span<const std::uint8_t> raw) noexcept {
    calls = gcm_calls(manager, static_cast<int>(raw.size()));
    calls.expand(raw.data(), &data);
}

Result<std::unique_ptr<core::KeyTables>> Tables::make(const IMB_MGR& manager,
                                                      std::span<const Key> keys) {
    void* memory = core::secure_allocate(keys.size() * sizeof(GcmKey));
    if (!memory) return Error{Code::out_of_memory, "no memory for the keys' GCM tables"};
    return std::unique_ptr<core::KeyTables>(std::make_unique<Tables>(manager, memory, keys));
}

Tables::Tables(const IMB_MGR& manager, void* memory, std::span<const Key> keys) noexcept
    : calls_{gcm_calls(manager, 16), gcm_calls(manager, 24), gcm_calls(manager, 32)},
      keys_(static_cast<GcmKey*>(memory)),
      count_(keys.size()) {
    for (std::uint32_t i = 0; i < count_; ++i) (void)replace(i, keys[i], {});
}

Tables::~Tables() {
    core::secure_release(keys_, count_ * sizeof(GcmKey));
}

Result<> Tables::replace(std::uint32_t index, const Key& key, Stream) {
    GcmKey& it = keys_[index];
    it.calls = calls_[by_size(key.schedule().key_bytes)];
    it.calls.expand(key.schedule().raw.data(), &it.data);
    return {};
}

GcmContext::~GcmContext() {
    wipe(this, sizeof *this);
}

GcmIv::GcmIv(const core::KeySchedule& key, const Block& start) noexcept
    : bytes_(start), size_(gcm::kNonceSize) {
    if (modes::is_of_nonce(start)) return;
    modes::Element h = modes::hash_subkey(key);
    const core::WipeAtEnd wipe(h);
    bytes_ = modes::iv_for(h, start);
    size_ = bytes_.size();
}

bool gcm_message(const Cipher& cipher, const GcmKey& key, const core::KeySchedule& schedule,
                 GcmContext& context, const Message& m) noexcept {
    Block tag;
    if (cipher.direction == Direction::encrypt) {
        const bool whole = cipher.tag == gcm::kTagSize;
        transform(Direction::encrypt, key, schedule, context, m, whole ? m.tag : tag.data());
        if (!whole) std::copy_n(tag.begin(), cipher.tag, m.tag);
        return true;
    }
    transform(Direction::decrypt, key, schedule, context, m, tag.data());
    if (modes::equal_tags(tag.data(), m.tag, cipher.tag)) return true;
    // In place, the same keystream once more makes it the ciphertext that it was.
    if (m.in == m.out)
        transform(Direction::encrypt, key, schedule, context, m, tag.data());
    else
        wipe(m.out, m.size);
    return false;
}

void gcm(Workspace* workspace, const Cipher& cipher, const core::KeyList& keys,
         std::span<const Message> messages, std::span<Code> codes) {
    const auto* const tables = static_cast<const Tables*>(keys.tables);
    const Key* expanded = nullptr;  // the one in the workspace
    GcmContext context;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        const Key& of_message = keys.list[m.key];
        if (!tables && expanded != &of_message) {
            workspace->gcm_key->set(*workspace->manager, of_message.schedule().key());
            expanded = &of_message;
        }
        const GcmKey& key = tables ? (*tables)[m.key] : *workspace->gcm_key;
        if (!gcm_message(cipher, key, of_message.schedule(), context, m))
            codes[i] = Code::authentication;
    }
    if (expanded) wipe(workspace->gcm_key, sizeof(GcmKey));
}

}  // namespace dael::cpu
