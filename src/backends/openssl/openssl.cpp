// SPDX-License-Identifier: Apache-2.0
// OpenSSL's libcrypto as a backend: the portable one, and the yardstick for the others.
#include <openssl/crypto.h>

#include <algorithm>
#include <array>

#include "backends/openssl/evp.hpp"
#include "backends/openssl/gcm.hpp"
#include "backends/openssl/xts.hpp"
#include "core/backend.hpp"
#include "core/key_schedule.hpp"

namespace dael::backends {
namespace {

using core::Operation;
using core::Segment;
using openssl::Cipher;
using openssl::Context;
using openssl::failure;
using openssl::initialise;
using openssl::kPiece;

class Openssl final : public core::Backend {
  public:
    static Result<std::unique_ptr<core::Backend>> open() {
        auto backend = std::make_unique<Openssl>();
        for (const Mode mode : kModes)
            for (const int key_bits : {128, 192, 256}) {
                const std::string algorithm =
                    "AES-" + std::to_string(key_bits) + "-" + std::string(dael::name(mode));
                DAEL_TRY(openssl::fetch(backend->cipher(mode, key_bits), algorithm));
            }
        DAEL_TRY(backend->gcm_.open());
        DAEL_TRY(backend->xts_.open());
        return std::unique_ptr<core::Backend>(std::move(backend));
    }

    std::string_view name() const override { return "openssl"; }
    std::string description() const override { return OpenSSL_version(OPENSSL_VERSION); }
    bool supports(Mode, Direction, std::size_t) const override { return true; }

    Result<> run(const Operation& operation, std::span<const Segment> segments) override {
        const auto made = openssl::new_context();
        if (!made) return made.error();
        const Context& context = *made;
        const int encrypt = operation.direction == Direction::encrypt;
        DAEL_TRY(initialise(context.get(), cipher(operation.mode, operation.key->bits()).get(),
                            operation.key->schedule().key().data(), nullptr, encrypt));
        EVP_CIPHER_CTX_set_padding(context.get(), 0);
        for (const Segment& segment : segments) {
            const auto* iv = takes_iv(operation.mode) ? segment.iv.data() : nullptr;
            DAEL_TRY(initialise(context.get(), nullptr, nullptr, iv, encrypt));
            DAEL_TRY(process(context.get(), segment));
        }
        return {};
    }

    bool has_xts() const override { return true; }
    Result<> xts(const core::XtsOperation& operation, const Segment& segment) override {
        return xts_.run(operation, segment);
    }

    Result<std::unique_ptr<core::PreparedKeys>> prepare_keys(std::span<const Key> keys) override {
        return gcm_.prepare_keys(keys);
    }
    Result<> gcm(Direction direction, const core::PreparedKeys& keys,
                 std::span<const core::GcmSegment> segments, std::span<Code> results) override {
        return gcm_.run(direction, keys, segments, results);
    }
    Result<std::unique_ptr<core::GcmStream>> gcm_stream(Direction direction,
                                                        const core::PreparedKeys& keys,
                                                        std::uint32_t key,
                                                        std::span<const std::uint8_t> iv) override {
        return gcm_.stream(direction, keys, key, iv);
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
    openssl::Gcm gcm_;
    openssl::Xts xts_;
};

}  // namespace

extern const core::BackendEntry openssl;
const core::BackendEntry openssl{"openssl", "OpenSSL's libcrypto: runs everywhere",
                                 [](std::string*) { return 1; },
                                 [](const core::BackendOptions&) { return Openssl::open(); }};

}  // namespace dael::backends
