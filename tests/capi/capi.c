/* SPDX-License-Identifier: Apache-2.0
 * What the programs share. */
#include "capi.h"

int failures = 0;

const struct known kKnown[5] = {
    {DAEL_ECB, NULL,
     "3ad77bb40d7a3660a89ecaf32466ef97f5d3d58503b9699de785895a96fdbaaf"
     "43b1cd7f598ece23881b00e3ed0306887b0c785e27e8ad3f8223207104725dd4"},
    {DAEL_CBC, IV,
     "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
     "73bed6b8e3c1743b7116e69e222295163ff1caa1681fac09120eca307586e1a7"},
    {DAEL_CFB, IV,
     "3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b"
     "26751f67a3cbb140b1808cf187a4f4dfc04b05357c5d1c0eeac4c66f9ff7f2e6"},
    {DAEL_OFB, IV,
     "3b3fd92eb72dad20333449f8e83cfb4a7789508d16918f03f53c52dac54ed825"
     "9740051e9c5fecf64344f7a82260edcc304c6528f659c77866a510d9c1d6ae5e"},
    {DAEL_CTR, COUNTER,
     "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
     "5ae4df3edbd5d35e5b4f09020db03eab1e031dda2fbe03d1792170a0f3009cee"},
};

static int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}
size_t from_hex(const char* hex, uint8_t* bytes) {
    const size_t size = strlen(hex) / 2;
    for (size_t i = 0; i < size; ++i)
        bytes[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    return size;
}
int equals_hex(const uint8_t* bytes, const char* hex) {
    uint8_t expected[256];
    return memcmp(bytes, expected, from_hex(hex, expected)) == 0;
}

dael_key* key_of(const char* hex) {
    uint8_t bytes[64];
    dael_key* key = NULL;
    EXPECT(dael_key_import(bytes, from_hex(hex, bytes), &key) == DAEL_OK);
    return key;
}
dael_engine* engine_on(const char* backend) {
    const dael_engine_options options = {.struct_size = sizeof options, .backend = backend};
    dael_engine* engine = NULL;
    EXPECT(dael_engine_open(&options, &engine) == DAEL_OK);
    return engine;
}
