// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/xts.hpp"

#include <algorithm>
#include <array>

#include "core/key_schedule.hpp"
#include "modes/traits.hpp"

namespace dael::openssl {
namespace {

Result<> sectors(const Notes& notes, EVP_CIPHER_CTX* context, const Cipher& cipher,
                 const Message& m) {
    const int encrypt = cipher.direction == Direction::encrypt;
    Block number = m.start;
    for (std::uint64_t at = 0; at < m.size; at += cipher.sector) {
        const auto size = static_cast<int>(std::min<std::uint64_t>(cipher.sector, m.size - at));
        DAEL_TRY(initialise(notes, context, nullptr, nullptr, number.data(), encrypt));
        int written = 0;
        if (!EVP_CipherUpdate(context, m.out + at, &written, m.in + at, size))
            return failure(notes, "EVP_CipherUpdate");
        number = modes::sector_add(number, 1);
    }
    return {};
}

}  // namespace

Result<> Xts::open() {
    DAEL_TRY(fetch(aes128_, "AES-128-XTS"));
    return fetch(aes256_, "AES-256-XTS");
}

Result<> Xts::run(const Cipher& cipher, std::span<const Key> keys,
                  std::span<const Message> messages) const {
    const Notes notes;
    DAEL_LET(context, new_context());
    const Key* key = nullptr;  // the context's
    for (const Message& m : messages) {
        if (key != &keys[m.key]) {
            key = &keys[m.key];
            std::array<std::uint8_t, 64> both;  // EVP takes the two keys as one
            const auto data = key->schedule().key(), tweak = key->tweak().key();
            std::ranges::copy(tweak, std::ranges::copy(data, both.begin()).out);
            const EVP_CIPHER* algorithm = (key->bits() == 128 ? aes128_ : aes256_).get();
            auto ready = initialise(notes, context.get(), algorithm, both.data(), nullptr,
                                    cipher.direction == Direction::encrypt);
            wipe(both.data(), both.size());
            DAEL_TRY(std::move(ready));
        }
        DAEL_TRY(sectors(notes, context.get(), cipher, m));
    }
    return {};
}

}  // namespace dael::openssl
