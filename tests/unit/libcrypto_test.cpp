// SPDX-License-Identifier: Apache-2.0
// A process whose openssl.cnf asks for a provider that is not there: libcrypto has no cipher,
// digest or random bytes for it, and this library works all the same, in a context of its own.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include <daelstrom/gcm.hpp>
#include <daelstrom/sealed.hpp>
#include <daelstrom/xts.hpp>

#include "core/random.hpp"

namespace {

using namespace dael;
using Bytes = std::vector<std::uint8_t>;

TEST(Libcrypto, TheProcessHasNothing) {
    EXPECT_EQ(EVP_CIPHER_fetch(nullptr, "AES-128-CTR", nullptr), nullptr);
    EXPECT_EQ(EVP_MD_fetch(nullptr, "SHA256", nullptr), nullptr);
}

class Libcrypto : public testing::TestWithParam<const char*> {};

TEST_P(Libcrypto, EnginesWork) {
    auto engine = Engine::open({.backend = GetParam(), .threads = 2, .calibrated = false});
    ASSERT_TRUE(engine) << engine.error().message;
    const auto key = Key::import(Bytes(16, 1));
    const auto xts_key = Key::import_xts([] {
        Bytes raw(32, 1);
        raw[31] = 2;
        return raw;
    }());
    ASSERT_TRUE(key && xts_key);
    Bytes data(1000, 3), tag(16);
    const Bytes plain = data;
    const auto authenticated = gcm::seal(*engine, *key, Bytes(12), {}, data, data, tag);
    ASSERT_TRUE(authenticated) << authenticated.error().message;
    ASSERT_TRUE(gcm::open(*engine, *key, Bytes(12), {}, data, data, tag));
    EXPECT_EQ(data, plain);
    const auto sealed = xts::encrypt(*engine, *xts_key, {}, data, data);
    ASSERT_TRUE(sealed) << sealed.error().message;
    ASSERT_TRUE(xts::decrypt(*engine, *xts_key, {}, data, data));
    EXPECT_EQ(data, plain);
}

INSTANTIATE_TEST_SUITE_P(Backend, Libcrypto, testing::Values("auto", "openssl"));

TEST(Libcrypto, EnvelopesWork) {
    Bytes identity(sealed::kIdentitySize);
    ASSERT_TRUE(sealed::make_identity(identity));
    auto identities = sealed::Identities::parse(identity);
    ASSERT_TRUE(identities) << identities.error().message;
    const auto passphrase = sealed::Recipients::of_passphrase(Bytes(8, 'p'), 4);
    const auto recipients = sealed::Recipients::parse(*identities->recipients());
    ASSERT_TRUE(passphrase && recipients);
    const auto made = sealed::make_envelope(*recipients);
    ASSERT_TRUE(made) << made.error().message;
    const auto keys = sealed::open_envelope(*identities, made->envelope);
    EXPECT_TRUE(keys) << keys.error().message;
    const auto other = sealed::rewrap_envelope(*identities, made->envelope, *passphrase);
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_TRUE(sealed::open_envelope(*sealed::Identities::of_passphrase(Bytes(8, 'p')), *other));
}

TEST(RandomBytes, FillAllOfIt) {
    for (const std::size_t size : {0, 1, 31, 300, 5000}) {
        Bytes bytes(size + 1);
        ASSERT_TRUE(core::fill_random(std::span(bytes).first(size)));
        EXPECT_EQ(bytes.back(), 0);
        if (size >= 300) {  // all 256 values, but with a chance of nothing
            EXPECT_NE(std::count(bytes.begin(), bytes.end() - 1, bytes[0]),
                      static_cast<std::ptrdiff_t>(size));
        }
    }
}

}  // namespace

// Before anything asks libcrypto for something.
int main(int argc, char** argv) {
    char name[] = "/tmp/daelstrom-openssl-XXXXXX";
    const int file = mkstemp(name);
    if (file < 0) return 1;
    close(file);
    std::ofstream(name) << "openssl_conf = o\n[o]\nalg_section = a\n[a]\n"
                           "default_properties = provider=acme\n";
    setenv("OPENSSL_CONF", name, 1);
    testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    unlink(name);
    return result;
}
