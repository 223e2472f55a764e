// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/modes.hpp"

#include <algorithm>
#include <cstring>

#include "core/key_schedule.hpp"

namespace dael::openssl {
namespace {

// Keystream without input is made of zeros, in pieces that stay in the cache.
constexpr std::size_t kInCache = std::size_t{16} << 10;

Result<> process(const Notes& notes, EVP_CIPHER_CTX* context, const Message& m) {
    int written = 0;
    if (m.skip != 0) {
        std::array<std::uint8_t, kBlockSize> unused{};
        if (!EVP_CipherUpdate(context, unused.data(), &written, unused.data(), m.skip))
            return failure(notes, "EVP_CipherUpdate");
        wipe(unused.data(), unused.size());
    }
    const std::size_t most = m.in ? kPiece : kInCache;
    for (std::size_t done = 0; done < m.size;) {
        const std::size_t size = std::min(most, m.size - done);
        std::uint8_t* const out = m.out + done;
        if (!m.in) std::memset(out, 0, size);
        if (!EVP_CipherUpdate(context, out, &written, m.in ? m.in + done : out,
                              static_cast<int>(size)))
            return failure(notes, "EVP_CipherUpdate");
        done += size;
    }
    return {};
}

}  // namespace

Result<> Modes::open() {
    for (const Mode mode : kModes38a)
        for (std::size_t i = 0; i < 3; ++i)
            DAEL_TRY(
                fetch(algorithms_[static_cast<std::size_t>(mode)][i],
                      "AES-" + std::to_string(128 + 64 * i) + "-" + std::string(dael::name(mode))));
    return {};
}

Result<> Modes::run(const Cipher& cipher, std::span<const Key> keys,
                    std::span<const Message> messages) const {
    const Mode mode = cipher.mode == Mode::gcm_ctr ? Mode::ctr : cipher.mode;
    const auto& algorithms = algorithms_[static_cast<std::size_t>(mode)];
    const int encrypt = cipher.direction == Direction::encrypt;
    const Notes notes;
    DAEL_LET(context, new_context());
    const core::KeySchedule* key = nullptr;  // the context's
    for (const Message& m : messages) {
        const auto* iv = takes_iv(mode) ? m.start.data() : nullptr;
        if (const auto* of_message = &keys[m.key].schedule(); key == of_message) {
            DAEL_TRY(initialise(notes, context.get(), nullptr, nullptr, iv, encrypt));
        } else {
            // The same algorithm need not be set again, which would cost an allocation.
            const bool same = key && key->key_bytes == of_message->key_bytes;
            const auto* algorithm = algorithms[by_size(of_message->key_bytes)].get();
            key = of_message;
            DAEL_TRY(initialise(notes, context.get(), same ? nullptr : algorithm, key->raw.data(),
                                iv, encrypt));
            EVP_CIPHER_CTX_set_padding(context.get(), 0);
        }
        DAEL_TRY(process(notes, context.get(), m));
    }
    return {};
}

}  // namespace dael::openssl
