// SPDX-License-Identifier: Apache-2.0
// A backend that has every mode: OpenSSL's and, for what that lacks, the reference.
#pragma once

#include <memory>

#include "core/backend.hpp"
#include "core/registry.hpp"

namespace dael::test {

class WholeBackend final : public core::Backend {
  public:
    const core::Profile& profile() const override { return openssl_->profile(); }
    core::Can can(const Cipher& cipher, int bits) const override {
        return of(cipher).can(cipher, bits);
    }
    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) override {
        return openssl_->tables(keys);  // of which the reference needs none
    }
    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        return of(cipher).run(cipher, keys, messages, codes);
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        return of(cipher).begin(cipher, keys, key, start);
    }

  private:
    core::Backend& of(const Cipher& cipher) const {
        const bool has = !authenticates(cipher.mode) || cipher.mode == Mode::gcm;
        return has ? *openssl_ : *reference_;
    }
    std::unique_ptr<core::Backend> openssl_ = *core::open_backend("openssl"),
                                   reference_ = *core::open_backend("reference");
};

}  // namespace dael::test
