// SPDX-License-Identifier: Apache-2.0
// What a pipeline brings (OpenSSL 3.5): records under one key through EVP_CipherPipeline...(),
// against as many single messages in one context of the default provider, in turns.
//
//     provider_pipelines MODULE
//
// A line of JSON for each cipher, number and size of records: GB/s (10^9) of both, the best of the
// turns by the clock. Threads: as set for the provider. Leave the machine alone meanwhile.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kTurns = 7;
constexpr auto kTurn = std::chrono::milliseconds(40);
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<unsigned char>;

[[noreturn]] void fail(const char* what) {
    std::fprintf(stderr, "provider_pipelines: %s\n", what);
    ERR_print_errors_fp(stderr);
    std::exit(1);
}
void need(int ok, const char* what) {
    if (ok != 1) fail(what);
}

struct Records {
    std::vector<Bytes> data, ivs, tags;
    std::vector<const unsigned char*> in, iv;
    std::vector<unsigned char*> out, tag;
    std::vector<std::size_t> size, room, written;

    Records(std::size_t count, std::size_t bytes, std::size_t iv_size)
        : data(count, Bytes(bytes + 16)), ivs(count, Bytes(iv_size)), tags(count, Bytes(16)) {
        for (std::size_t i = 0; i < count; ++i) {
            in.push_back(data[i].data());
            out.push_back(data[i].data());
            iv.push_back(ivs[i].data());
            tag.push_back(tags[i].data());
            size.push_back(bytes);
            room.push_back(bytes + 16);
            written.push_back(0);
        }
    }
    void next() {  // other IVs
        for (std::size_t i = 0; i < ivs.size(); ++i)
            for (std::size_t at = 0; ++ivs[i][at] == 0 && at < 7; ++at) {
            }
    }
};

template <class Work>
double rate(std::size_t bytes, Work&& work) {
    const auto began = Clock::now();
    std::size_t done = 0;
    auto now = began;
    for (; now - began < kTurn; now = Clock::now()) {
        work();
        done += bytes;
    }
    return static_cast<double>(done) / std::chrono::duration<double>(now - began).count() / 1e9;
}

void measure(OSSL_LIB_CTX* library, const std::string& name, std::size_t count, std::size_t bytes) {
    EVP_CIPHER* const theirs = EVP_CIPHER_fetch(library, name.c_str(), "provider=default");
    EVP_CIPHER* const ours = EVP_CIPHER_fetch(library, name.c_str(), "provider=daelstrom");
    if (!theirs || !ours || EVP_CIPHER_can_pipeline(ours, 1) != 1)
        fail("no such cipher, or no pipelines");
    const bool gcm = EVP_CIPHER_get_mode(ours) == EVP_CIPH_GCM_MODE;
    const auto iv_size = static_cast<std::size_t>(EVP_CIPHER_get_iv_length(ours));
    const Bytes key(32, 7), aad(13, 1);
    Records r(count, bytes, iv_size);
    for (std::size_t i = 0; i < count; ++i) r.ivs[i].back() = static_cast<unsigned char>(i);
    EVP_CIPHER_CTX *single = EVP_CIPHER_CTX_new(), *many = EVP_CIPHER_CTX_new();
    need(EVP_EncryptInit_ex2(single, theirs, key.data(), nullptr, nullptr), "a key");
    std::vector<const unsigned char*> aads(count, aad.data());
    const std::vector<std::size_t> aad_sizes(count, aad.size());
    void* list = r.tag.data();
    OSSL_PARAM tags[] = {OSSL_PARAM_construct_octet_ptr("pipeline-tag", &list, 16),
                         OSSL_PARAM_construct_end()};
    bool first = true;
    const auto one_by_one = [&] {
        r.next();
        for (std::size_t i = 0; i < count; ++i) {
            int made = 0;
            need(EVP_EncryptInit_ex2(single, nullptr, nullptr, r.iv[i], nullptr), "an IV");
            if (gcm) need(EVP_EncryptUpdate(single, nullptr, &made, aad.data(), 13), "AAD");
            need(EVP_EncryptUpdate(single, r.out[i], &made, r.in[i], static_cast<int>(bytes)),
                 "data");
            need(EVP_EncryptFinal_ex(single, r.out[i] + made, &made), "the end");
            if (gcm)
                need(EVP_CIPHER_CTX_ctrl(single, EVP_CTRL_AEAD_GET_TAG, 16, r.tag[i]), "a tag");
        }
    };
    const auto together = [&] {
        r.next();
        need(EVP_CipherPipelineEncryptInit(
                 many, first ? ours : nullptr, first ? key.data() : nullptr,
                 first ? static_cast<std::size_t>(EVP_CIPHER_get_key_length(ours)) : 0, count,
                 r.iv.data(), iv_size),
             "a pipeline");
        first = false;
        if (gcm)
            need(EVP_CipherPipelineUpdate(many, nullptr, r.written.data(), nullptr, aads.data(),
                                          aad_sizes.data()),
                 "AAD of a pipeline");
        need(EVP_CipherPipelineUpdate(many, r.out.data(), r.written.data(), r.room.data(),
                                      r.in.data(), r.size.data()),
             "data of a pipeline");
        std::vector<unsigned char*> ends(r.out);
        for (std::size_t i = 0; i < count; ++i) ends[i] += r.written[i];
        const std::vector<std::size_t> room(count, 16);
        need(EVP_CipherPipelineFinal(many, ends.data(), r.written.data(), room.data()), "its end");
        if (gcm) need(EVP_CIPHER_CTX_get_params(many, tags), "its tags");
    };
    double best[2] = {0, 0};
    for (int turn = 0; turn < kTurns; ++turn) {
        best[0] = std::max(best[0], rate(count * bytes, one_by_one));
        best[1] = std::max(best[1], rate(count * bytes, together));
    }
    std::printf(
        "{\"cipher\": \"%s\", \"records\": %zu, \"size\": %zu, \"default\": %.3f, \"daelstrom\": "
        "%.3f}\n",
        name.c_str(), count, bytes, best[0], best[1]);
    std::fflush(stdout);
    EVP_CIPHER_CTX_free(single);
    EVP_CIPHER_CTX_free(many);
    EVP_CIPHER_free(theirs);
    EVP_CIPHER_free(ours);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) fail("usage: provider_pipelines FOLDER/daelstrom.so");
    setenv("DAELSTROM_PROVIDER_WARMUP", "1", 0);
    const std::string module = arguments[1];
    OSSL_LIB_CTX* const library = OSSL_LIB_CTX_new();
    OSSL_PROVIDER_set_default_search_path(library, module.substr(0, module.rfind('/')).c_str());
    if (!OSSL_PROVIDER_load(library, "default") || !OSSL_PROVIDER_load(library, "daelstrom"))
        fail("no provider");
    for (const char* cipher :
         {"AES-128-GCM", "AES-256-GCM", "AES-128-CBC", "AES-256-CBC", "AES-256-CTR"})
        for (const std::size_t records : {4u, 8u, 32u})
            for (const std::size_t size : {256u, 1024u, 4096u, 16384u})
                measure(library, cipher, records, size);
    return 0;
}
