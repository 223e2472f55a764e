// SPDX-License-Identifier: Apache-2.0
#include "basis.hpp"

#include <openssl/crypto.h>

#include <atomic>
#include <cstring>
#include <new>
#include <utility>

namespace dael::provider {
namespace {

// Whether a list of names, with colons between, begins with this one.
bool first_of(const char* names, const char* name) noexcept {
    const std::size_t size = std::strlen(name);
    return std::strncmp(names, name, size) == 0 && (names[size] == ':' || names[size] == 0);
}

template <class Function>
void find(const OSSL_DISPATCH* from, int id, Function*& to) noexcept {
    for (; from->function_id != 0; ++from)
        if (from->function_id == id) to = reinterpret_cast<Function*>(from->function);
}

Basis read(const OSSL_DISPATCH* from) noexcept {
    Basis b{};
    find(from, OSSL_FUNC_CIPHER_NEWCTX, b.newctx);
    find(from, OSSL_FUNC_CIPHER_FREECTX, b.freectx);
    find(from, OSSL_FUNC_CIPHER_DUPCTX, b.dupctx);
    find(from, OSSL_FUNC_CIPHER_ENCRYPT_INIT, b.encrypt_init);
    find(from, OSSL_FUNC_CIPHER_DECRYPT_INIT, b.decrypt_init);
    find(from, OSSL_FUNC_CIPHER_UPDATE, b.update);
    find(from, OSSL_FUNC_CIPHER_FINAL, b.final);
    find(from, OSSL_FUNC_CIPHER_CIPHER, b.cipher);
    find(from, OSSL_FUNC_CIPHER_GET_CTX_PARAMS, b.get_ctx_params);
    find(from, OSSL_FUNC_CIPHER_SET_CTX_PARAMS, b.set_ctx_params);
    find(from, OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, b.gettable_ctx_params);
    find(from, OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, b.settable_ctx_params);
    return b;
}

// What we know how to keep in step: of a later OpenSSL's functions the others would reach the
// default provider's context by ours, or with objects of its own.
bool known(int id) noexcept {
    switch (id) {
        case OSSL_FUNC_CIPHER_NEWCTX:
        case OSSL_FUNC_CIPHER_FREECTX:
        case OSSL_FUNC_CIPHER_DUPCTX:
        case OSSL_FUNC_CIPHER_ENCRYPT_INIT:
        case OSSL_FUNC_CIPHER_DECRYPT_INIT:
        case OSSL_FUNC_CIPHER_UPDATE:
        case OSSL_FUNC_CIPHER_FINAL:
        case OSSL_FUNC_CIPHER_CIPHER:
        case OSSL_FUNC_CIPHER_GET_PARAMS:
        case OSSL_FUNC_CIPHER_GET_CTX_PARAMS:
        case OSSL_FUNC_CIPHER_SET_CTX_PARAMS:
        case OSSL_FUNC_CIPHER_GETTABLE_PARAMS:
        case OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS:
        case OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS:
            return true;
        default:
            return false;
    }
}

template <std::size_t offer>
void* new_context(void* provider) noexcept {
    const auto& mine = *static_cast<const Provider*>(provider);
    if constexpr (kOffers[offer].kind == Kind::as_it_is)
        return mine.tables().basis[offer].newctx(mine.tables().default_context);
    else if constexpr (kOffers[offer].kind == Kind::gcm)
        return new_gcm(mine, offer);
    else if constexpr (kOffers[offer].kind == Kind::siv)
        return new_siv(mine, offer);
    else
        return new_blocks(mine, offer);
}

// Which parameters there are does not depend on the context, which may be none.
template <std::size_t offer>
const OSSL_PARAM* gettable(void*, void* provider) noexcept {
    const auto& mine = *static_cast<const Provider*>(provider);
    return mine.tables().basis[offer].gettable_ctx_params(nullptr, mine.tables().default_context);
}
template <std::size_t offer>
const OSSL_PARAM* settable(void*, void* provider) noexcept {
    const auto& mine = *static_cast<const Provider*>(provider);
    return mine.tables().basis[offer].settable_ctx_params(nullptr, mine.tables().default_context);
}

template <std::size_t offer>
void replace_those_of_one(OSSL_DISPATCH* functions) noexcept {
    replace(functions, OSSL_FUNC_CIPHER_NEWCTX, &new_context<offer>);
    replace(functions, OSSL_FUNC_CIPHER_GETTABLE_CTX_PARAMS, &gettable<offer>);
    replace(functions, OSSL_FUNC_CIPHER_SETTABLE_CTX_PARAMS, &settable<offer>);
}
template <std::size_t... offers>
void replace_those_of(std::size_t offer, OSSL_DISPATCH* functions,
                      std::index_sequence<offers...>) noexcept {
    using Replace = void (*)(OSSL_DISPATCH*) noexcept;
    static constexpr Replace all[] = {&replace_those_of_one<offers>...};
    all[offer](functions);
}

void fill(Tables& tables, std::size_t offer, const OSSL_DISPATCH* from) noexcept {
    OSSL_DISPATCH* const functions = tables.functions[offer];
    const Kind kind = kOffers[offer].kind;
    std::size_t count = 0;
    for (; from->function_id != 0 && count + 1 < kMaxFunctions; ++from)
        if (known(from->function_id)) functions[count++] = *from;
    functions[count] = {0, nullptr};
    if (kind == Kind::gcm)
        offer_gcm(functions);
    else if (kind == Kind::siv)
        offer_siv(functions);
    else if (kind != Kind::as_it_is)
        offer_blocks(functions, kind);
    replace_those_of(offer, functions, std::make_index_sequence<kOfferCount>());
}

// Keys of AES by reference: the default provider's functions, those that get a provider with its
// own.
constexpr int kImport = 2, kGenerate = 4, kImportSettable = 6, kGenerateSettable = 7;
#ifdef OSSL_FUNC_SKEYMGMT_GEN_SETTABLE_PARAMS
static_assert(kOperationKeys == OSSL_OP_SKEYMGMT && kImport == OSSL_FUNC_SKEYMGMT_IMPORT &&
              kGenerate == OSSL_FUNC_SKEYMGMT_GENERATE &&
              kImportSettable == OSSL_FUNC_SKEYMGMT_IMP_SETTABLE_PARAMS &&
              kGenerateSettable == OSSL_FUNC_SKEYMGMT_GEN_SETTABLE_PARAMS);
#endif

void* import_key(void* provider, int selection, const OSSL_PARAM* params) noexcept {
    const Tables& mine = static_cast<const Provider*>(provider)->tables();
    return mine.keys.import(mine.default_context, selection, params);
}
void* generate_key(void* provider, const OSSL_PARAM* params) noexcept {
    const Tables& mine = static_cast<const Provider*>(provider)->tables();
    return mine.keys.generate(mine.default_context, params);
}
const OSSL_PARAM* import_settable(void* provider) noexcept {
    const Tables& mine = static_cast<const Provider*>(provider)->tables();
    return mine.keys.import_settable(mine.default_context);
}
const OSSL_PARAM* generate_settable(void* provider) noexcept {
    const Tables& mine = static_cast<const Provider*>(provider)->tables();
    return mine.keys.generate_settable(mine.default_context);
}

void offer_keys(Tables& tables) noexcept {
    int no_cache = 0;
    const OSSL_ALGORITHM* theirs =
        OSSL_PROVIDER_query_operation(tables.default_provider, kOperationKeys, &no_cache);
    while (theirs && theirs->algorithm_names && !first_of(theirs->algorithm_names, "AES")) ++theirs;
    if (!theirs || !theirs->algorithm_names) return;
    KeyManagement& keys = tables.keys;
    std::size_t count = 0;
    for (const OSSL_DISPATCH* f = theirs->implementation; f->function_id != 0; ++f)
        if (f->function_id < 8 && count < 7) keys.functions[count++] = *f;
    keys.functions[count] = {0, nullptr};
    find(theirs->implementation, kImport, keys.import);
    find(theirs->implementation, kGenerate, keys.generate);
    find(theirs->implementation, kImportSettable, keys.import_settable);
    find(theirs->implementation, kGenerateSettable, keys.generate_settable);
    replace(keys.functions, kImport, &import_key);
    replace(keys.functions, kGenerate, &generate_key);
    replace(keys.functions, kImportSettable, &import_settable);
    replace(keys.functions, kGenerateSettable, &generate_settable);
    keys.algorithms[0] = {theirs->algorithm_names, "provider=daelstrom", keys.functions,
                          theirs->algorithm_description};
}

// The default provider in a library context that reads no configuration.
struct Foundation {
    OSSL_LIB_CTX* library = nullptr;
    OSSL_PROVIDER* provider = nullptr;

    Foundation() noexcept {
        library = OSSL_LIB_CTX_new();
        if (library) provider = OSSL_PROVIDER_load(library, "default");
    }
    Foundation(const Foundation&) = delete;
    Foundation& operator=(const Foundation&) = delete;
    ~Foundation() {
        if (provider) OSSL_PROVIDER_unload(provider);
        OSSL_LIB_CTX_free(library);
    }
};

// The one of this process, however often the provider is loaded, and never freed: a thread that had
// random numbers of it says so when it ends, and the program knows of its own contexts alone
// (OPENSSL_thread_stop_ex(3)). Null where memory ran out. Any thread; no lock, so that fork() does
// no harm.
const Foundation* foundation() noexcept {
    constinit static std::atomic<const Foundation*> shared{nullptr};
    if (const Foundation* const made = shared.load(std::memory_order_acquire)) return made;
    const auto* const fresh = new (std::nothrow) Foundation;
    if (!fresh) return nullptr;
    const Foundation* first = nullptr;
    if (!fresh->provider || !shared.compare_exchange_strong(first, fresh)) {
        delete fresh;  // nobody has used it: another thread was faster, or there is none to be had
        return first;
    }
    return fresh;
}

bool load(Tables& tables) noexcept {
    const Foundation* const below = foundation();
    if (!below) return false;
    tables.library = below->library;
    tables.default_provider = below->provider;
    tables.default_context = OSSL_PROVIDER_get0_provider_ctx(tables.default_provider);
    int no_cache = 0;
    const OSSL_ALGORITHM* const theirs =
        OSSL_PROVIDER_query_operation(tables.default_provider, OSSL_OP_CIPHER, &no_cache);
    if (!theirs) return false;
    std::size_t count = 0;
    for (std::size_t offer = 0; offer < kOfferCount; ++offer) {
        for (const OSSL_ALGORITHM* a = theirs; a->algorithm_names; ++a) {
            if (!first_of(a->algorithm_names, kOffers[offer].name)) continue;
            Basis& basis = tables.basis[offer] = read(a->implementation);
            basis.provider_context = tables.default_context;
            basis.kind = kOffers[offer].kind;
            basis.key_bytes = kOffers[offer].key_bytes;
            if (!tables.basis[offer].complete()) break;
            fill(tables, offer, a->implementation);
            tables.algorithms[count++] = {a->algorithm_names, "provider=daelstrom",
                                          tables.functions[offer], a->algorithm_description};
            break;
        }
    }
    tables.algorithms[count] = {};
    offer_keys(tables);
    return true;
}

}  // namespace

const Tables* make_ready(Provider& provider) noexcept {
    if (const Tables* const made = provider.made.load(std::memory_order_acquire)) return made;
    auto* const fresh = new (std::nothrow) Tables;
    if (!fresh) return nullptr;
    const Tables* first = nullptr;
    if (load(*fresh) && provider.made.compare_exchange_strong(first, fresh)) return fresh;
    delete fresh;  // nobody has seen it: another thread was faster, or there is none to be had
    return provider.made.load(std::memory_order_acquire);
}

}  // namespace dael::provider
