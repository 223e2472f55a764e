// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/xts.hpp"

#include <algorithm>
#include <array>

#include "core/key_schedule.hpp"
#include "modes/xts.hpp"

namespace dael::openssl {

Result<> Xts::open() {
    DAEL_TRY(fetch(aes128_, "AES-128-XTS"));
    return fetch(aes256_, "AES-256-XTS");
}

Result<> Xts::run(const core::XtsOperation& operation, const core::Segment& segment) const {
    const Context context(EVP_CIPHER_CTX_new());
    if (!context) return Error{Code::out_of_memory, "openssl: no memory for a cipher context"};
    const int encrypt = operation.direction == Direction::encrypt;
    const XtsKey& key = *operation.key;
    std::array<std::uint8_t, 64> both;  // EVP takes the two keys as one
    const auto data = key.data().schedule().key(), tweak = key.tweak().schedule().key();
    std::ranges::copy(tweak, std::ranges::copy(data, both.begin()).out);
    const EVP_CIPHER* cipher = (key.bits() == 128 ? aes128_ : aes256_).get();
    auto ready = initialise(context.get(), cipher, both.data(), nullptr, encrypt);
    wipe(both.data(), both.size());
    if (!ready) return ready;

    Block number = segment.iv;
    for (std::size_t at = 0; at < segment.size; at += operation.sector_size) {
        const std::size_t size = std::min(operation.sector_size, segment.size - at);
        DAEL_TRY(initialise(context.get(), nullptr, nullptr, number.data(), encrypt));
        int written = 0;
        if (!EVP_CipherUpdate(context.get(), segment.out + at, &written, segment.in + at,
                              static_cast<int>(size)))
            return failure("EVP_CipherUpdate");
        number = modes::sector_add(number, 1);
    }
    return {};
}

}  // namespace dael::openssl
