// SPDX-License-Identifier: Apache-2.0
// OpenSSL's libcrypto as a backend: the portable one, and the yardstick for the others.
#include <openssl/crypto.h>

#include "backends/openssl/gcm.hpp"
#include "backends/openssl/modes.hpp"
#include "backends/openssl/packet_cipher.hpp"
#include "backends/openssl/pieces.hpp"
#include "backends/openssl/siv.hpp"
#include "backends/openssl/xaes.hpp"
#include "backends/openssl/xts.hpp"
#include "core/backend.hpp"
#include "modes/xaes.hpp"

namespace dael::backends {
namespace {

class Openssl final : public core::Backend {
  public:
    static Result<std::unique_ptr<core::Backend>> open() {
        auto backend = std::make_unique<Openssl>();
        DAEL_TRY(backend->modes_.open());
        DAEL_TRY(backend->gcm_.open());
        DAEL_TRY(backend->xts_.open());
        DAEL_TRY(backend->packets_.open());
        DAEL_TRY(backend->xaes_.open());
        DAEL_TRY(backend->siv_.open());
        return std::unique_ptr<core::Backend>(std::move(backend));
    }

    const core::Profile& profile() const override { return profile_; }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        if (cipher.mode == Mode::xts && key_bits == 192)
            return {core::Can::no, "XTS takes keys of 128 and 256 bits"};
        if (is_aegis(cipher.mode))
            return {core::Can::no,
                    "libcrypto has no AEGIS, and no single rounds of AES to make it of; use the "
                    "backend 'auto' or 'cpu'"};
        if (cipher.mode == Mode::gcm_siv && !siv_.why().empty()) return {core::Can::no, siv_.why()};
        return {};
    }

    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        return gcm_.tables(keys);
    }
    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        switch (cipher.mode) {
            case Mode::gcm:
                return gcm_.run(openssl::Notes(), cipher, keys, messages, codes);
            case Mode::xaes256gcm:
                return xaes_.run(gcm_, cipher, keys.list, messages, codes);
            case Mode::gcm_siv:
                return siv_.run(openssl::Notes(), cipher, keys.list, messages, codes);
            case Mode::xts:
                return xts_.run(cipher, keys.list, messages);
            default:
                return modes_.run(cipher, keys.list, messages);
        }
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        if (cipher.mode == Mode::xaes256gcm)
            return modes::begin_xaes(*this, cipher, keys.list[key], start);
        return openssl::begin(cipher.direction, static_cast<const openssl::Tables&>(*keys.tables),
                              key, keys.list[key], start.first);
    }
    Result<std::unique_ptr<core::PacketCipher>> packets(const Key& key) override {
        return packets_.make(gcm_, key);
    }

  private:
    const core::Profile profile_{"openssl", OpenSSL_version(OPENSSL_VERSION)};
    openssl::Modes modes_;
    openssl::Gcm gcm_;
    openssl::Xts xts_;
    openssl::PacketCiphers packets_;
    openssl::Xaes xaes_;
    openssl::Siv siv_;
};

}  // namespace

extern const core::BackendEntry openssl;
const core::BackendEntry openssl{
    .name = "openssl",
    .summary = "OpenSSL's libcrypto: runs everywhere",
    .count = [](std::string*) { return 1; },
    .open = [](const core::BackendOptions&) { return Openssl::open(); },
    .expected = [](const std::string&) -> core::Expected {
        return {.parallel = 5,
                .cfb_decrypt = 0.9,
                .sequential = 1.2,
                .sequential_batch = 1.2,
                .gcm = 5};
    }};

}  // namespace dael::backends
