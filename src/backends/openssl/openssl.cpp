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

constexpr std::size_t kPiece = std::size_t{1} << 30;  // EVP counts bytes in an int

const EVP_CIPHER* cipher_for(Mode mode, int key_bits) {
    // Fetched once, implicitly, by EVP_aes_*; these never allocate.
    const int size = key_bits / 64 - 2;  // 0, 1, 2
    switch (mode) {
        case Mode::ecb:
            return std::array{EVP_aes_128_ecb(), EVP_aes_192_ecb(), EVP_aes_256_ecb()}[size];
        case Mode::cbc:
            return std::array{EVP_aes_128_cbc(), EVP_aes_192_cbc(), EVP_aes_256_cbc()}[size];
        case Mode::cfb:
            return std::array{EVP_aes_128_cfb128(), EVP_aes_192_cfb128(),
                              EVP_aes_256_cfb128()}[size];
        case Mode::ofb:
            return std::array{EVP_aes_128_ofb(), EVP_aes_192_ofb(), EVP_aes_256_ofb()}[size];
        case Mode::ctr:
            return std::array{EVP_aes_128_ctr(), EVP_aes_192_ctr(), EVP_aes_256_ctr()}[size];
    }
    return nullptr;
}

Error failure(const char* call) {
    char text[256] = "no reason given";
    if (const auto code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
    return {Code::internal, std::string("openssl: ") + call + ": " + text};
}

class Openssl final : public core::Backend {
  public:
    std::string_view name() const override { return "openssl"; }
    std::string description() const override { return OpenSSL_version(OPENSSL_VERSION); }
    bool supports(Mode, Direction, std::size_t) const override { return true; }

    Result<> run(const Operation& operation, std::span<const Segment> segments) override {
        const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
            EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
        if (!context) return Error{Code::out_of_memory, "openssl: no memory for a cipher context"};
        const int encrypt = operation.direction == Direction::encrypt;
        if (!EVP_CipherInit_ex(context.get(), cipher_for(operation.mode, operation.key->bits()),
                               nullptr, operation.key->schedule().key().data(), nullptr, encrypt))
            return failure("EVP_CipherInit_ex");
        EVP_CIPHER_CTX_set_padding(context.get(), 0);
        for (const Segment& segment : segments) {
            const auto* iv = takes_iv(operation.mode) ? segment.iv.data() : nullptr;
            if (!EVP_CipherInit_ex(context.get(), nullptr, nullptr, nullptr, iv, encrypt))
                return failure("EVP_CipherInit_ex");
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
};

}  // namespace

extern const core::BackendEntry openssl;
const core::BackendEntry openssl{
    "openssl", "OpenSSL's libcrypto: runs everywhere, one core per message",
    [](std::string*) { return 1; },
    [](const core::BackendOptions&) -> Result<std::unique_ptr<core::Backend>> {
        return std::unique_ptr<core::Backend>(std::make_unique<Openssl>());
    }};

}  // namespace dael::backends
