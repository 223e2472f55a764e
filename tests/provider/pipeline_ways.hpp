// SPDX-License-Identifier: Apache-2.0
// The two ways to a pipeline of the provider's: by EVP, where OpenSSL has it (3.5), and by the
// table of functions that the provider publishes.
#pragma once

#include "evp.hpp"
#include "functions.hpp"

namespace dael::test {

// The two ways to a pipeline. All of it under one context.
class Ways {
  public:
    virtual ~Ways() = default;
    // `with_ivs` false: as many messages, whose IVs come with another call.
    virtual bool begin(bool encrypts, const Bytes* key, std::vector<const std::uint8_t*>& ivs,
                       std::size_t iv_size, bool with_ivs = true) = 0;
    virtual bool update(std::uint8_t** out, std::size_t* written, const std::size_t* room,
                        const std::uint8_t** in, const std::size_t* size) = 0;
    virtual bool final(std::uint8_t** out, std::size_t* written, const std::size_t* room) = 0;
    virtual bool get(OSSL_PARAM* params) = 0;
    virtual bool set(const OSSL_PARAM* params) = 0;
};

class ByTable final : public Ways {
  public:
    explicit ByTable(const std::string& name)
        : functions_(ours().daelstrom, name),
          context_(find<void*(void*)>(1)(OSSL_PROVIDER_get0_provider_ctx(ours().daelstrom))) {}
    ~ByTable() override { find<void(void*)>(7)(context_); }
    ByTable(const ByTable&) = delete;
    ByTable& operator=(const ByTable&) = delete;

    bool begin(bool encrypts, const Bytes* key, std::vector<const std::uint8_t*>& ivs,
               std::size_t iv_size, bool with_ivs) override {
        const bool ok =
            find<int(void*, const std::uint8_t*, std::size_t, std::size_t, const std::uint8_t**,
                     std::size_t, const OSSL_PARAM*)>(encrypts ? 15 : 16)(
                context_, key ? key->data() : nullptr, key ? key->size() : 0, ivs.size(),
                with_ivs ? ivs.data() : nullptr, with_ivs ? iv_size : 0, nullptr) == 1;
        if (ok) count_ = ivs.size();
        return ok;
    }
    bool update(std::uint8_t** out, std::size_t* written, const std::size_t* room,
                const std::uint8_t** in, const std::size_t* size) override {
        return find<int(void*, std::size_t, std::uint8_t**, std::size_t*, const std::size_t*,
                        const std::uint8_t**, const std::size_t*)>(17)(
                   context_, count_, out, written, room, in, size) == 1;
    }
    bool final(std::uint8_t** out, std::size_t* written, const std::size_t* room) override {
        return find<int(void*, std::size_t, std::uint8_t**, std::size_t*, const std::size_t*)>(18)(
                   context_, count_, out, written, room) == 1;
    }
    bool get(OSSL_PARAM* params) override {
        return find<int(void*, OSSL_PARAM*)>(OSSL_FUNC_CIPHER_GET_CTX_PARAMS)(context_, params) ==
               1;
    }
    bool set(const OSSL_PARAM* params) override {
        return find<int(void*, const OSSL_PARAM*)>(OSSL_FUNC_CIPHER_SET_CTX_PARAMS)(context_,
                                                                                    params) == 1;
    }

    // Whether its context may be copied now.
    bool copies() const {
        void* const copy = find<void*(void*)>(OSSL_FUNC_CIPHER_DUPCTX)(context_);
        if (copy) find<void(void*)>(OSSL_FUNC_CIPHER_FREECTX)(copy);
        return copy != nullptr;
    }

  private:
    template <class Function>
    Function* find(int id) const {
        return functions_.find<Function>(id);
    }
    Functions functions_;
    void* context_;
    std::size_t count_ = 0;
};

#ifdef OSSL_FUNC_CIPHER_PIPELINE_FINAL
class ByEvp final : public Ways {
  public:
    explicit ByEvp(const std::string& name) : cipher_(fetch(ours(), name)), context_(context()) {
        EXPECT_EQ(EVP_CIPHER_can_pipeline(cipher_.get(), 1), 1);
        EXPECT_EQ(EVP_CIPHER_can_pipeline(cipher_.get(), 0), 1);
    }
    bool begin(bool encrypts, const Bytes* key, std::vector<const std::uint8_t*>& ivs,
               std::size_t iv_size, bool with_ivs) override {
        // Given once: with a cipher, EVP begins a context anew, and a key may be kept.
        const EVP_CIPHER* const c =
            EVP_CIPHER_CTX_get0_cipher(context_.get()) ? nullptr : cipher_.get();
        return (encrypts ? EVP_CipherPipelineEncryptInit : EVP_CipherPipelineDecryptInit)(
                   context_.get(), c, key ? key->data() : nullptr, key ? key->size() : 0,
                   ivs.size(), with_ivs ? ivs.data() : nullptr, with_ivs ? iv_size : 0) == 1;
    }
    bool update(std::uint8_t** out, std::size_t* written, const std::size_t* room,
                const std::uint8_t** in, const std::size_t* size) override {
        return EVP_CipherPipelineUpdate(context_.get(), out, written, room, in, size) == 1;
    }
    bool final(std::uint8_t** out, std::size_t* written, const std::size_t* room) override {
        return EVP_CipherPipelineFinal(context_.get(), out, written, room) == 1;
    }
    bool get(OSSL_PARAM* params) override {
        return EVP_CIPHER_CTX_get_params(context_.get(), params) == 1;
    }
    bool set(const OSSL_PARAM* params) override {
        return EVP_CIPHER_CTX_set_params(context_.get(), params) == 1;
    }

  private:
    Cipher cipher_;
    Context context_;
};
inline std::unique_ptr<Ways> way_to(const std::string& name, bool by_table) {
    if (by_table) return std::make_unique<ByTable>(name);
    return std::make_unique<ByEvp>(name);
}
constexpr int kWays = 2;
#else
inline std::unique_ptr<Ways> way_to(const std::string& name, bool) {
    return std::make_unique<ByTable>(name);
}
constexpr int kWays = 1;
#endif

}  // namespace dael::test
