// SPDX-License-Identifier: Apache-2.0
// OpenSSL's libcrypto as a backend: the portable one, and the yardstick for the others.
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "core/backend.hpp"
#include "core/key_schedule.hpp"

namespace dael::backends {
namespace {

using core::Operation;
using core::Segment;

// EVP counts bytes in an int. Pieces are shorter still, so that tests go past one.
constexpr std::size_t kPiece = std::size_t{16} << 20;

struct Free {
    void operator()(EVP_CIPHER* cipher) const noexcept { EVP_CIPHER_free(cipher); }
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using Cipher = std::unique_ptr<EVP_CIPHER, Free>;
using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;  // freeing it wipes the key in it

// The reason is the first of this thread's error queue, which is left empty.
Error failure(const char* call, Code code = Code::internal) {
    char text[256] = "no reason given";
    if (const auto reason = ERR_get_error()) ERR_error_string_n(reason, text, sizeof text);
    ERR_clear_error();
    return {code, std::string("openssl: ") + call + ": " + text};
}

class Openssl final : public core::Backend {
  public:
    // Fetches every cipher now: a fetch costs more than the encryption of a kilobyte.
    static Result<std::unique_ptr<core::Backend>> open() {
        auto backend = std::make_unique<Openssl>();
        for (const Mode mode : kModes)
            for (const int key_bits : {128, 192, 256}) {
                const std::string algorithm =
                    "AES-" + std::to_string(key_bits) + "-" + std::string(dael::name(mode));
                Cipher& cipher = backend->cipher(mode, key_bits);
                cipher.reset(EVP_CIPHER_fetch(nullptr, algorithm.c_str(), nullptr));
                if (!cipher)
                    return failure(("EVP_CIPHER_fetch " + algorithm).c_str(), Code::backend_absent);
            }
        return std::unique_ptr<core::Backend>(std::move(backend));
    }

    std::string_view name() const override { return "openssl"; }
    std::string description() const override { return OpenSSL_version(OPENSSL_VERSION); }
    bool supports(Mode, Direction, std::size_t) const override { return true; }

    Result<> run(const Operation& operation, std::span<const Segment> segments) override {
        const Context context(EVP_CIPHER_CTX_new());
        if (!context) return Error{Code::out_of_memory, "openssl: no memory for a cipher context"};
        const int encrypt = operation.direction == Direction::encrypt;
        if (!EVP_CipherInit_ex2(context.get(), cipher(operation.mode, operation.key->bits()).get(),
                                operation.key->schedule().key().data(), nullptr, encrypt, nullptr))
            return failure("EVP_CipherInit_ex2");
        EVP_CIPHER_CTX_set_padding(context.get(), 0);
        for (const Segment& segment : segments) {
            const auto* iv = takes_iv(operation.mode) ? segment.iv.data() : nullptr;
            if (!EVP_CipherInit_ex2(context.get(), nullptr, nullptr, iv, encrypt, nullptr))
                return failure("EVP_CipherInit_ex2");
            DAEL_TRY(process(context.get(), segment));
        }
        return {};
    }

  private:
    static Result<> process(EVP_CIPHER_CTX* context, const Segment& segment) {
        int written = 0;
        if (segment.skip != 0) {
            std::array<std::uint8_t, kBlockSize> unused{};
            if (!EVP_CipherUpdate(context, unused.data(), &written, unused.data(), segment.skip))
                return failure("EVP_CipherUpdate");
            wipe(unused.data(), unused.size());
        }
        for (std::size_t done = 0; done < segment.size;) {
            const auto size = static_cast<int>(std::min(kPiece, segment.size - done));
            if (!EVP_CipherUpdate(context, segment.out + done, &written, segment.in + done, size))
                return failure("EVP_CipherUpdate");
            done += static_cast<std::size_t>(size);
        }
        return {};
    }

    Cipher& cipher(Mode mode, int key_bits) noexcept {
        return ciphers_[static_cast<std::size_t>(mode)]
                       [static_cast<std::size_t>(key_bits / 64 - 2)];
    }

    std::array<std::array<Cipher, 3>, kModes.size()> ciphers_;  // by mode and key size; read only
};

}  // namespace

extern const core::BackendEntry openssl;
const core::BackendEntry openssl{"openssl", "OpenSSL's libcrypto: runs everywhere",
                                 [](std::string*) { return 1; },
                                 [](const core::BackendOptions&) { return Openssl::open(); }};

}  // namespace dael::backends
