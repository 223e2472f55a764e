// SPDX-License-Identifier: Apache-2.0
#include "openssl_side.hpp"

#include <openssl/conf.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

namespace dael::cli {
namespace {

namespace fs = std::filesystem;

struct FreeLibrary {
    void operator()(OSSL_LIB_CTX* library) const { OSSL_LIB_CTX_free(library); }
    void operator()(OSSL_PROVIDER* provider) const { OSSL_PROVIDER_unload(provider); }
    void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
    void operator()(EVP_MD* digest) const { EVP_MD_free(digest); }
};
template <class T>
using Held = std::unique_ptr<T, FreeLibrary>;

std::string openssl_says() {
    std::string all;
    const char* data = nullptr;
    int flags = 0;
    while (const unsigned long code = ERR_get_error_all(nullptr, nullptr, nullptr, &data, &flags)) {
        const char* const reason = ERR_reason_error_string(code);
        if (!all.empty()) all += "; ";
        all += reason ? reason : "an error without a name";
        if (data && *data && (flags & ERR_TXT_STRING)) all += std::string(" (") + data + ")";
    }
    return all.empty() ? "OpenSSL says nothing" : all;
}

bool there(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

std::string parameter_text(OSSL_PROVIDER* provider, const char* name) {
    const char* value = nullptr;
    OSSL_PARAM asked[] = {OSSL_PARAM_construct_utf8_ptr(name, const_cast<char**>(&value), 0),
                          OSSL_PARAM_construct_end()};
    return OSSL_PROVIDER_get_params(provider, asked) == 1 && value ? value : "";
}

Facts facts_of(OSSL_PROVIDER* provider) {
    Facts facts;
    for (const OSSL_PARAM* p = OSSL_PROVIDER_gettable_params(provider); p && p->key; ++p) {
        if (p->data_type == OSSL_PARAM_UTF8_PTR) {
            facts.texts.emplace_back(p->key, parameter_text(provider, p->key));
        } else if (p->data_type == OSSL_PARAM_UNSIGNED_INTEGER) {
            std::uint64_t value = 0;
            OSSL_PARAM asked[] = {OSSL_PARAM_construct_uint64(p->key, &value),
                                  OSSL_PARAM_construct_end()};
            if (OSSL_PROVIDER_get_params(provider, asked) == 1)
                facts.numbers.emplace_back(p->key, value);
        }
    }
    return facts;
}

}  // namespace

std::string find_module(const std::string& given, std::vector<std::string>& looked) {
    std::vector<fs::path> places;
    if (!given.empty()) {
        places.emplace_back(given);
    } else {
        std::error_code none;
        const fs::path program = fs::read_symlink("/proc/self/exe", none).parent_path();
        if (!none) {
            places.push_back(program.parent_path() / "provider/daelstrom.so");  // of a build
            places.push_back(program.parent_path() / "lib/ossl-modules/daelstrom.so");
            places.push_back(program.parent_path() /
                             "lib/x86_64-linux-gnu/ossl-modules/daelstrom.so");
        }
        if (const char* const folder = std::getenv("OPENSSL_MODULES"))
            places.push_back(fs::path(folder) / "daelstrom.so");
        if (const char* const folder = OPENSSL_info(OPENSSL_INFO_MODULES_DIR))
            places.push_back(fs::path(folder) / "daelstrom.so");
    }
    for (const fs::path& place : places) {
        std::error_code none;
        if (there(place)) return fs::absolute(place, none).lexically_normal().string();
        looked.push_back(place.string());
    }
    return {};
}

std::string configuration_file() {
    char* const file = CONF_get1_default_config_file();
    const std::string path = file ? file : "";
    OPENSSL_free(file);
    return path;
}

Result<Facts> ask_module(const std::string& file) {
    ERR_clear_error();
    const Held<OSSL_LIB_CTX> library(OSSL_LIB_CTX_new());
    if (!library) return Error{Code::out_of_memory, "no memory for OpenSSL"};
    // By its file: OpenSSL takes a name with a slash for one.
    const std::string path = file.find('/') == file.npos ? "./" + file : file;
    const Held<OSSL_PROVIDER> provider(OSSL_PROVIDER_load(library.get(), path.c_str()));
    if (!provider)
        return Error{Code::backend_absent, file + " cannot be loaded: " + openssl_says()};
    return facts_of(provider.get());
}

namespace {

struct FreeConf {
    void operator()(CONF* conf) const { NCONF_free(conf); }
};

// What a configuration says of our module: programs pass over one that cannot be loaded in silence,
// so OpenSSL tells nothing of it afterwards.
std::string named_module(const std::string& file, std::string& fault) {
    const std::unique_ptr<CONF, FreeConf> conf(NCONF_new(nullptr));
    if (!conf) return {};
    if (NCONF_load(conf.get(), file.c_str(), nullptr) != 1) {
        fault = openssl_says();
        return {};
    }
    const auto value = [&](const char* section, const char* name) {
        return section ? NCONF_get_string(conf.get(), section, name) : nullptr;
    };
    const char* const start = NCONF_get_string(conf.get(), nullptr, "openssl_conf");
    const char* const module = value(value(value(start, "providers"), "daelstrom"), "module");
    ERR_clear_error();
    return module ? module : "";
}

}  // namespace

Reading read_configuration(const std::string& file) {
    Reading reading;
    ERR_clear_error();
    if (const std::string module = named_module(file, reading.fault); !module.empty())
        if (auto asked = ask_module(module); !asked) reading.fault = asked.error().message;
    ERR_clear_error();
    const Held<OSSL_LIB_CTX> library(OSSL_LIB_CTX_new());
    if ((!library || OSSL_LIB_CTX_load_config(library.get(), file.c_str()) != 1) &&
        reading.fault.empty())
        reading.fault = openssl_says();
    ERR_clear_error();
    if (!library) return reading;
    reading.daelstrom = OSSL_PROVIDER_available(library.get(), "daelstrom") == 1;
    const Held<EVP_CIPHER> cipher(EVP_CIPHER_fetch(library.get(), "AES-256-GCM", nullptr));
    if (cipher)
        reading.cipher_from = OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher.get()));
    const Held<EVP_MD> digest(EVP_MD_fetch(library.get(), "SHA256", nullptr));
    if (digest) reading.digest_from = OSSL_PROVIDER_get0_name(EVP_MD_get0_provider(digest.get()));
    // Asked last: where no other is active, OpenSSL activates it by itself.
    reading.standard = OSSL_PROVIDER_available(library.get(), "default") == 1;
    if (reading.daelstrom) {
        const Held<OSSL_PROVIDER> ours(OSSL_PROVIDER_load(library.get(), "daelstrom"));
        if (ours) reading.engine_fault = parameter_text(ours.get(), "daelstrom-fault");
    }
    ERR_clear_error();
    return reading;
}

}  // namespace dael::cli
