// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/xaes.hpp"

#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/xaes.hpp"

namespace dael::openssl {
namespace {

template <std::size_t N>
Result<> encrypt(const Notes& notes, EVP_CIPHER_CTX* aes, std::array<std::uint8_t, N>& blocks) {
    int written = 0;
    if (EVP_CipherUpdate(aes, blocks.data(), &written, blocks.data(), N)) return {};
    return failure(notes, "EVP_CipherUpdate");
}

}  // namespace

Result<> Xaes::run(const Gcm& gcm, const Cipher& cipher, std::span<const Key> keys,
                   std::span<const Message> messages, std::span<Code> codes) const {
    const Notes notes;
    DAEL_LET(aes, new_context());
    Lent lent = gcm.lent();
    const Cipher inner{Mode::gcm, cipher.direction, cipher.tag};
    const Key* key = nullptr;  // that of `aes`, and of k1
    Block k1;
    modes::XaesKey derived;
    const core::WipeAtEnd wiped(k1), wiped_too(derived);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        Message m = messages[i];
        if (key != &keys[m.key]) {
            DAEL_TRY(initialise(notes, aes.get(), key ? nullptr : aes_.get(),
                                keys[m.key].schedule().key().data(), nullptr, 1));
            key = &keys[m.key];
            k1 = {};
            DAEL_TRY(encrypt(notes, aes.get(), k1));
            k1 = modes::cmac_subkey(k1);
        }
        const Start nonce(m.start, m.start_rest);
        derived = modes::xaes_blocks(k1, nonce);
        DAEL_TRY(encrypt(notes, aes.get(), derived));
        m.start = modes::xaes_gcm_start(nonce);
        DAEL_TRY(lent.set_key(notes, derived));
        DAEL_TRY(lent.run(notes, *key, inner, m, codes[i]));
    }
    return {};
}

}  // namespace dael::openssl
