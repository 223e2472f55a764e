// SPDX-License-Identifier: Apache-2.0
// libssl with the provider in one process: two hundred connections at once, by many threads, where
// the servers' side has daelstrom's AES and the clients' the default provider's. Under
// ThreadSanitizer too, which programs that load the module cannot be.
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <thread>

#include "evp.hpp"

namespace {

using namespace dael::test;

constexpr int kThreads = 8, kEach = 25;
constexpr std::size_t kAnswer = 100'000;  // seven records

struct FreeSsl {
    void operator()(SSL_CTX* c) const { SSL_CTX_free(c); }
    void operator()(SSL* c) const { SSL_free(c); }
    void operator()(EVP_PKEY* k) const { EVP_PKEY_free(k); }
    void operator()(X509* x) const { X509_free(x); }
};
using Settings = std::unique_ptr<SSL_CTX, FreeSsl>;
using Connection = std::unique_ptr<SSL, FreeSsl>;

Settings client(const Side& side) {
    OSSL_PROVIDER_load(side.library, "default");
    Settings made(SSL_CTX_new_ex(side.library, "?provider=default", TLS_client_method()));
    SSL_CTX_set_verify(made.get(), SSL_VERIFY_NONE, nullptr);
    return made;
}
Settings server(const Side& side) {
    Settings made(SSL_CTX_new_ex(side.library, "?provider=daelstrom", TLS_server_method()));
    const std::unique_ptr<EVP_PKEY, FreeSsl> key(
        EVP_PKEY_Q_keygen(side.library, nullptr, "EC", "P-256"));
    const std::unique_ptr<X509, FreeSsl> its(X509_new());
    ASN1_INTEGER_set(X509_get_serialNumber(its.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(its.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(its.get()), 3600);
    X509_set_pubkey(its.get(), key.get());
    if (X509_sign(its.get(), key.get(), EVP_sha256()) == 0 ||
        SSL_CTX_use_certificate(made.get(), its.get()) != 1 ||
        SSL_CTX_use_PrivateKey(made.get(), key.get()) != 1)
        return nullptr;
    return made;
}

// Both ends, joined in memory.
struct Pair {
    Connection ends[2];
    Pair(SSL_CTX* serves, SSL_CTX* asks, int version, const char* suite)
        : ends{Connection(SSL_new(serves)), Connection(SSL_new(asks))} {
        BIO* pipes[2] = {};
        BIO_new_bio_pair(&pipes[0], 0, &pipes[1], 0);
        for (int i = 0; i < 2; ++i) {
            SSL* const end = ends[i].get();
            SSL_set_bio(end, pipes[i], pipes[i]);
            SSL_set_min_proto_version(end, version);
            SSL_set_max_proto_version(end, version);
            version == TLS1_3_VERSION ? SSL_set_ciphersuites(end, suite)
                                      : SSL_set_cipher_list(end, suite);
        }
        SSL_set_accept_state(ends[0].get());
        SSL_set_connect_state(ends[1].get());
    }
    bool shakes_hands() {
        bool done[2] = {};
        for (int turn = 0; turn < 100 && !(done[0] && done[1]); ++turn)
            for (int i = 0; i < 2; ++i) done[i] = SSL_do_handshake(ends[i].get()) == 1;
        ERR_clear_error();  // each has wanted more of the other
        return done[0] && done[1];
    }
    // From the one end to the other, as the pipe has room.
    bool carries(int from, const Bytes& data) {
        Bytes got(data.size());
        std::size_t sent = 0, come = 0, some = 0;
        for (int turn = 0; turn < 10000 && come < data.size(); ++turn) {
            if (sent < data.size() &&
                SSL_write_ex(ends[from].get(), data.data() + sent,
                             std::min<std::size_t>(data.size() - sent, 16384), &some) == 1)
                sent += some;
            while (SSL_read_ex(ends[1 - from].get(), got.data() + come, got.size() - come, &some) ==
                   1)
                if ((come += some) == got.size()) break;
        }
        ERR_clear_error();
        return got == data;
    }
};

TEST(Tls, TwoHundredConnectionsAtOnce) {
    const auto serves = server(ours()), asks = client(theirs());
    ASSERT_TRUE(serves && asks);
    struct Suite {
        int version;
        const char* name;
    };
    static constexpr Suite kSuites[] = {{TLS1_3_VERSION, "TLS_AES_256_GCM_SHA384"},
                                        {TLS1_3_VERSION, "TLS_AES_128_GCM_SHA256"},
                                        {TLS1_2_VERSION, "ECDHE-ECDSA-AES256-GCM-SHA384"},
                                        {TLS1_2_VERSION, "ECDHE-ECDSA-AES128-SHA256"},
                                        {TLS1_2_VERSION, "ECDHE-ECDSA-AES256-SHA"}};
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            std::vector<std::unique_ptr<Pair>> all;
            for (int i = 0; i < kEach; ++i) {
                const Suite& suite = kSuites[(t + i) % 5];
                all.push_back(
                    std::make_unique<Pair>(serves.get(), asks.get(), suite.version, suite.name));
                EXPECT_TRUE(all.back()->shakes_hands()) << suite.name;
            }
            Numbers numbers(static_cast<std::uint64_t>(t));
            for (auto& pair : all)
                right += pair->carries(1, numbers.bytes(300)) &&
                         pair->carries(0, numbers.bytes(kAnswer)) &&
                         pair->carries(0, numbers.bytes(1));
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, kThreads * kEach);
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
    EXPECT_GT(counter("daelstrom-bytes"), 0u) << "and it was daelstrom's AES";
}

}  // namespace
