// SPDX-License-Identifier: Apache-2.0
// The way in: what OpenSSL asks of a provider (provider-base(7)).
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/proverr.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "basis.hpp"
#include "process.hpp"
#include "settings.hpp"

namespace dael::provider {
namespace {

// Names are told by `openssl list -providers -verbose`; counts by OSSL_PROVIDER_get_params(), which
// `daelstrom provider status` asks too.
const OSSL_PARAM kGettable[] = {OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_NAME, nullptr, 0),
                                OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_VERSION, nullptr, 0),
                                OSSL_PARAM_utf8_ptr(OSSL_PROV_PARAM_BUILDINFO, nullptr, 0),
                                OSSL_PARAM_int(OSSL_PROV_PARAM_STATUS, nullptr),
                                OSSL_PARAM_utf8_ptr("daelstrom-backend", nullptr, 0),
                                OSSL_PARAM_utf8_ptr("daelstrom-engine", nullptr, 0),
                                OSSL_PARAM_utf8_ptr("daelstrom-fault", nullptr, 0),
                                OSSL_PARAM_utf8_ptr("daelstrom-vectors", nullptr, 0),
                                OSSL_PARAM_uint64("daelstrom-threads", nullptr),
                                OSSL_PARAM_uint64("daelstrom-threshold", nullptr),
                                OSSL_PARAM_uint64("daelstrom-warmup", nullptr),
                                OSSL_PARAM_uint64("daelstrom-updates", nullptr),
                                OSSL_PARAM_uint64("daelstrom-bytes", nullptr),
                                OSSL_PARAM_uint64("daelstrom-parallel-updates", nullptr),
                                OSSL_PARAM_uint64("daelstrom-parallel-bytes", nullptr),
                                OSSL_PARAM_uint64("daelstrom-failures", nullptr),
                                OSSL_PARAM_END};

const OSSL_PARAM* gettable_params(void*) noexcept {
    return kGettable;
}

// Written once: whoever has it may read it while others ask.
const char* build_info() noexcept {
    struct Text {
        char bytes[320];
        Text() noexcept {
            const char* const backend = *settings().backend ? settings().backend : "auto";
            std::snprintf(bytes, sizeof bytes,
                          "daelstrom %s, built with %s, on %s; backend %s, vectors %s",
                          dael_version(), OPENSSL_VERSION_TEXT, OpenSSL_version(OPENSSL_VERSION),
                          backend, by_vector_units() ? "on" : "off");
        }
    };
    constinit static std::atomic<const Text*> made{nullptr};
    const Text* text = made.load(std::memory_order_acquire);
    if (text) return text->bytes;
    const auto* const fresh = new (std::nothrow) Text;
    if (!fresh) return "daelstrom";
    if (made.compare_exchange_strong(text, fresh)) return fresh->bytes;
    delete fresh;  // another thread was faster
    return text->bytes;
}

int get_params(void* context, OSSL_PARAM params[]) noexcept {
    const auto text = [&](const char* name, const char* value) {
        OSSL_PARAM* const p = OSSL_PARAM_locate(params, name);
        // By type: newer versions put an error on the queue for the other.
        return !p || (p->data_type == OSSL_PARAM_UTF8_PTR ? OSSL_PARAM_set_utf8_ptr(p, value)
                                                          : OSSL_PARAM_set_utf8_string(p, value));
    };
    const auto count = [&](const char* name, std::uint64_t value) {
        OSSL_PARAM* const p = OSSL_PARAM_locate(params, name);
        return !p || OSSL_PARAM_set_uint64(p, value);
    };
    const Settings& s = settings();
    const Counts& done = counts();
    const char* const fault = *engine_fault() ? engine_fault() : s.fault;
    OSSL_PARAM* const status = OSSL_PARAM_locate(params, OSSL_PROV_PARAM_STATUS);
    if (status && !OSSL_PARAM_set_int(status, context != nullptr)) return 0;
    return text(OSSL_PROV_PARAM_NAME, "daelstrom: AES by vector units and GPUs") &&
           text(OSSL_PROV_PARAM_VERSION, DAEL_PROVIDER_VERSION) &&
           text(OSSL_PROV_PARAM_BUILDINFO, build_info()) &&
           text("daelstrom-backend", *s.backend ? s.backend : "auto") &&
           text("daelstrom-engine", opened_engine()   ? "open"
                                    : *engine_fault() ? "cannot be had"
                                                      : "not needed yet") &&
           text("daelstrom-fault", fault) &&
           text("daelstrom-vectors", by_vector_units() ? "on" : "off") &&
           count("daelstrom-threads", static_cast<std::uint64_t>(s.threads)) &&
           count("daelstrom-threshold", s.threshold) && count("daelstrom-warmup", s.warmup) &&
           count("daelstrom-updates", done.updates) && count("daelstrom-bytes", done.bytes) &&
           count("daelstrom-parallel-updates", done.parallel_updates) &&
           count("daelstrom-parallel-bytes", done.parallel_bytes) &&
           count("daelstrom-failures", done.failures);
}

const OSSL_ALGORITHM* query(void* context, int operation, int* no_cache) noexcept {
    auto& provider = *static_cast<Provider*>(context);
    *no_cache = 0;
    if (operation != OSSL_OP_CIPHER && operation != kOperationKeys) return nullptr;
    const Tables* const tables = make_ready(provider);
    if (!tables) {
        log_line("OpenSSL's default provider cannot be had, so there is nothing to build on",
                 nullptr);
        return nullptr;
    }
    if (operation == OSSL_OP_CIPHER) return tables->algorithms;
    return tables->keys.algorithms[0].algorithm_names ? tables->keys.algorithms : nullptr;
}

// Who asks what was done in a process of another's finds it in the log: a program ends without
// asking, and counts are its own.
void log_counts() noexcept {
    const Counts& done = counts();
    const auto number = [](const std::atomic<std::uint64_t>& count) {
        return static_cast<unsigned long long>(count.load(std::memory_order_relaxed));
    };
    char line[200];
    std::snprintf(line, sizeof line,
                  "%llu updates of %llu bytes on calling threads, %llu of %llu by all cores and "
                  "devices, %llu failures",
                  number(done.updates), number(done.bytes), number(done.parallel_updates),
                  number(done.parallel_bytes), number(done.failures));
    log_line("done when it was given up", line);
}

void teardown(void* context) noexcept {
    log_counts();
    delete static_cast<Provider*>(context);
}

const OSSL_DISPATCH kFunctions[] = {
    {OSSL_FUNC_PROVIDER_TEARDOWN, reinterpret_cast<void (*)()>(&teardown)},
    {OSSL_FUNC_PROVIDER_GETTABLE_PARAMS, reinterpret_cast<void (*)()>(&gettable_params)},
    {OSSL_FUNC_PROVIDER_GET_PARAMS, reinterpret_cast<void (*)()>(&get_params)},
    {OSSL_FUNC_PROVIDER_QUERY_OPERATION, reinterpret_cast<void (*)()>(&query)},
    {0, nullptr}};

}  // namespace
}  // namespace dael::provider

extern "C" __attribute__((visibility("default"))) int OSSL_provider_init(
    const OSSL_CORE_HANDLE* handle, const OSSL_DISPATCH* in, const OSSL_DISPATCH** out,
    void** context) {
    using namespace dael::provider;
    OSSL_FUNC_core_get_params_fn* core_get_params = nullptr;
    for (const OSSL_DISPATCH* f = in; f->function_id != 0; ++f)
        if (f->function_id == OSSL_FUNC_CORE_GET_PARAMS)
            core_get_params = OSSL_FUNC_core_get_params(f);
    read_settings(handle, core_get_params);
    remember_filters();
    // What a provider and its core say to each other is a matter of one major version. The core is
    // asked: the libcrypto that we are linked to may be another, loaded beside it.
    const char* core = "";
    OSSL_PARAM asked[] = {
        OSSL_PARAM_construct_utf8_ptr(OSSL_PROV_PARAM_CORE_VERSION, const_cast<char**>(&core), 0),
        OSSL_PARAM_construct_end()};
    if (!core_get_params || core_get_params(handle, asked) != 1 || !core) core = "";
    if (std::atoi(core) != OPENSSL_VERSION_MAJOR ||
        OPENSSL_version_major() != OPENSSL_VERSION_MAJOR) {
        char why[160];
        std::snprintf(why, sizeof why, "built for OpenSSL %d.x, loaded into %.40s, beside %.60s",
                      OPENSSL_VERSION_MAJOR, *core ? core : "one that does not say",
                      OpenSSL_version(OPENSSL_VERSION));
        log_line("refused", why);
        ERR_raise_data(ERR_LIB_PROV, PROV_R_NOT_SUPPORTED, "daelstrom: %s", why);
        return 0;
    }
    auto* const provider = new (std::nothrow) Provider;
    if (!provider) return 0;
    provider->handle = handle;
    *context = provider;
    *out = kFunctions;
    return 1;
}
