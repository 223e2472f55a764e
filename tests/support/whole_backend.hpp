// SPDX-License-Identifier: Apache-2.0
// A backend that has every mode: OpenSSL's and, for what that lacks, the CPU's own or, where there
// is none, the reference, which would take most of the time of what computes with it.
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
        auto both = std::make_unique<Both>();
        DAEL_LET(openssls, openssl_->tables(keys));
        DAEL_LET(rests, rest_->tables(keys));
        both->openssls = std::move(openssls);
        both->rests = std::move(rests);
        return std::unique_ptr<core::KeyTables>(std::move(both));
    }
    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        return of(cipher).run(cipher, its(cipher, keys), messages, codes);
    }
    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList& keys,
                                                std::uint32_t key, const Start& start) override {
        return of(cipher).begin(cipher, its(cipher, keys), key, start);
    }

  private:
    struct Both final : core::KeyTables {
        Result<> replace(std::uint32_t index, const Key& key, Stream stream) override {
            DAEL_TRY(openssls->replace(index, key, stream));
            return rests->replace(index, key, stream);
        }
        std::unique_ptr<core::KeyTables> openssls, rests;
    };
    static bool is_openssls(const Cipher& cipher) {
        return !authenticates(cipher.mode) || cipher.mode == Mode::gcm;
    }
    core::Backend& of(const Cipher& cipher) const {
        return is_openssls(cipher) ? *openssl_ : *rest_;
    }
    static core::KeyList its(const Cipher& cipher, const core::KeyList& keys) {
        const auto* const both = static_cast<const Both*>(keys.tables);
        return {keys.list, !both                 ? nullptr
                           : is_openssls(cipher) ? both->openssls.get()
                                                 : both->rests.get()};
    }
    static std::unique_ptr<core::Backend> the_rest() {
        auto cpu = core::open_backend("cpu");
        return cpu ? std::move(*cpu) : *core::open_backend("reference");
    }
    std::unique_ptr<core::Backend> openssl_ = *core::open_backend("openssl"), rest_ = the_rest();
};

}  // namespace dael::test
