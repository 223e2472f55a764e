// SPDX-License-Identifier: Apache-2.0
// ECB, CBC, CTR and XTS.
#include <algorithm>
#include <bit>
#include <cstring>

#include "hooks.hpp"

namespace daelstrom_tomcrypt {
namespace {

// Calls of fewer blocks are quicker as LibTomCrypt has them; CBC encryption goes block by block
// either way.
constexpr unsigned long kWorthACall = 4, kWorthAChain = 8;

using OneBlock = int (*)(Bytes in, unsigned char* out, symmetric_key* key);

int ecb(Bytes in, unsigned char* out, unsigned long blocks, symmetric_key* key,
        dael_direction direction, OneBlock one) {
    if (blocks >= kWorthACall && !overlap(in, out, blocks * kBlock))
        if (const Ready ready = Ready::of(key, blocks))
            return error_of(
                ready.run(cipher_of(DAEL_ECB, direction), message_of(in, out, blocks * kBlock)));
    for (; blocks > 0; --blocks, in += kBlock, out += kBlock)
        if (const int error = one(in, out, key)) return error;
    return CRYPT_OK;
}

// One step of the counter as ctr_encrypt() does it: of `width` bytes, which wrap by themselves.
void count(unsigned char* counter, int width, bool big) noexcept {
    for (int i = 0; i < width; ++i)
        if (++counter[big ? 15 - i : i] != 0) break;
}

// The hook is not told how wide the counter is. ctr_encrypt() passes the counter and the key of one
// symmetric_CTR, which knows; of anything else it has all 16 bytes.
int counter_width(const unsigned char* counter, bool big, const symmetric_key* key) noexcept {
    const auto base = reinterpret_cast<std::uintptr_t>(key) - offsetof(symmetric_CTR, key);
    if (reinterpret_cast<std::uintptr_t>(counter) != base + offsetof(symmetric_CTR, ctr)) return 16;
    const int stored = reinterpret_cast<const symmetric_CTR*>(base)->ctrlen;
    const int width = big ? 16 - stored : stored;
    return width >= 1 && width <= 16 ? width : 16;
}

// How many blocks from this counter on, up to `most`, need no carry out of its lowest bytes.
unsigned long without_carry(const unsigned char* counter, int width, unsigned long most) noexcept {
    std::uint64_t low = 0;
    const int bytes = std::min(width, 8);
    for (int i = 16 - bytes; i < 16; ++i) low = low << 8 | counter[i];
    const std::uint64_t last = bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
    return last - low >= most ? most : static_cast<unsigned long>(last - low) + 1;
}

void advance(unsigned char* counter, std::uint64_t by) noexcept {
    for (int i = 15; i >= 0 && by != 0; --i) {
        by += counter[i];
        counter[i] = static_cast<unsigned char>(by);
        by >>= 8;
    }
}

dael_status count_up(const Ready& ready, Bytes in, unsigned char* out, unsigned long blocks,
                     unsigned char* counter, int width) noexcept {
    while (blocks > 0) {
        count(counter, width, true);
        const unsigned long some = without_carry(counter, width, blocks);
        dael_message message = message_of(in, out, some * kBlock);
        std::memcpy(message.start, counter, kBlock);
        if (const auto bad = ready.run(cipher_of(DAEL_CTR, DAEL_ENCRYPT), message)) return bad;
        advance(counter, some - 1);
        in += some * kBlock;
        out += some * kBlock;
        blocks -= some;
    }
    return DAEL_OK;
}

// The lowest byte first: daelstrom has no such counter, so its values are encrypted as blocks.
dael_status count_little(const Ready& ready, Bytes in, unsigned char* out, unsigned long blocks,
                         unsigned char* counter, int width) noexcept {
    unsigned char stream[kChunk * kBlock];
    dael_status bad = DAEL_OK;
    while (blocks > 0 && !bad) {
        const unsigned long some = std::min(blocks, kChunk), size = some * kBlock;
        for (unsigned long i = 0; i < some; ++i) {
            count(counter, width, false);
            std::memcpy(stream + i * kBlock, counter, kBlock);
        }
        bad = ready.run(cipher_of(DAEL_ECB, DAEL_ENCRYPT), message_of(stream, stream, size));
        if (!bad) add(out, in, stream, size);
        in += size;
        out += size;
        blocks -= some;
    }
    dael_wipe(stream, sizeof stream);
    return bad;
}

// XTS is ECB between two additions of masks, which `next` yields.
template <class Next>
int masked(Bytes in, unsigned char* out, unsigned long blocks, symmetric_key* key,
           dael_direction direction, Next next) {
    const OneBlock one = direction == DAEL_ENCRYPT ? aes_desc.ecb_encrypt : aes_desc.ecb_decrypt;
    const bool apart = blocks >= kWorthACall && !overlap(in, out, blocks * kBlock);
    const Ready ready = apart ? Ready::of(key, blocks) : Ready();
    unsigned char masks[kChunk * kBlock];
    int error = CRYPT_OK;
    while (blocks > 0 && error == CRYPT_OK) {
        // What overlaps goes block by block, as LibTomCrypt does it.
        const unsigned long some = apart ? std::min(blocks, kChunk) : 1, size = some * kBlock;
        for (unsigned long i = 0; i < some; ++i) next(masks + i * kBlock);
        add(out, in, masks, size);
        if (ready)
            error = error_of(ready.run(cipher_of(DAEL_ECB, direction), message_of(out, out, size)));
        else
            for (unsigned long i = 0; i < some && error == CRYPT_OK; ++i)
                error = one(out + i * kBlock, out + i * kBlock, key);
        add(out, out, masks, size);
        in += size;
        out += size;
        blocks -= some;
    }
    dael_wipe(masks, sizeof masks);
    return error;
}

int xts(Bytes in, unsigned char* out, unsigned long blocks, unsigned char* tweak,
        symmetric_key* data, symmetric_key* tweaks, dael_direction direction) {
    unsigned char encrypted[kBlock];
    if (const int error = aes_desc.ecb_encrypt(tweak, encrypted, tweaks)) return error;
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t low, high;
    std::memcpy(&low, encrypted, 8);
    std::memcpy(&high, encrypted + 8, 8);
    const int error = masked(in, out, blocks, data, direction, [&](unsigned char* mask) {
        std::memcpy(mask, &low, 8);
        std::memcpy(mask + 8, &high, 8);
        // Times x (IEEE 1619 5.2), without a branch.
        const std::uint64_t carry = high >> 63;
        high = high << 1 | low >> 63;
        low = low << 1 ^ (carry * 0x87);
    });
    std::memcpy(tweak, &low, 8);
    std::memcpy(tweak + 8, &high, 8);
    dael_wipe(encrypted, sizeof encrypted);
    dael_wipe(&low, sizeof low);
    dael_wipe(&high, sizeof high);
    return error;
}

}  // namespace

int error_of(dael_status status) noexcept {
    switch (status) {
        case DAEL_OK:
            return CRYPT_OK;
        case DAEL_OUT_OF_MEMORY:
            return CRYPT_MEM;
        case DAEL_KEY_SIZE:
            return CRYPT_INVALID_KEYSIZE;
        case DAEL_LIMIT:
        case DAEL_IV_SIZE:
        case DAEL_INVALID_ARGUMENT:
            return CRYPT_INVALID_ARG;
        default:
            return CRYPT_ERROR;
    }
}

bool overlap(const void* a, const void* b, unsigned long size) noexcept {
    const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
    return x != y && (x < y ? y - x : x - y) < size;
}

void add(unsigned char* to, const unsigned char* a, const unsigned char* b,
         unsigned long size) noexcept {
    for (unsigned long at = 0; at < size; at += 8) {
        std::uint64_t x, y;
        std::memcpy(&x, a + at, 8);
        std::memcpy(&y, b + at, 8);
        x ^= y;
        std::memcpy(to + at, &x, 8);
    }
}

int ecb_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, symmetric_key* key) {
    return ecb(pt, ct, blocks, key, DAEL_ENCRYPT, aes_desc.ecb_encrypt);
}

int ecb_decrypt(Bytes ct, unsigned char* pt, unsigned long blocks, symmetric_key* key) {
    return ecb(ct, pt, blocks, key, DAEL_DECRYPT, aes_desc.ecb_decrypt);
}

int cbc_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, unsigned char* iv,
                symmetric_key* key) {
    if (blocks >= kWorthAChain && !overlap(pt, ct, blocks * kBlock))
        if (const Ready ready = Ready::of(key, blocks)) {
            dael_message message = message_of(pt, ct, blocks * kBlock);
            std::memcpy(message.start, iv, kBlock);
            const dael_status status = ready.run(cipher_of(DAEL_CBC, DAEL_ENCRYPT), message);
            if (status == DAEL_OK) std::memcpy(iv, ct + (blocks - 1) * kBlock, kBlock);
            return error_of(status);
        }
    for (; blocks > 0; --blocks, pt += kBlock, ct += kBlock) {
        add(iv, iv, pt, kBlock);
        if (const int error = aes_desc.ecb_encrypt(iv, ct, key)) return error;
        std::memcpy(iv, ct, kBlock);
    }
    return CRYPT_OK;
}

int cbc_decrypt(Bytes ct, unsigned char* pt, unsigned long blocks, unsigned char* iv,
                symmetric_key* key) {
    if (blocks >= kWorthACall && !overlap(ct, pt, blocks * kBlock))
        if (const Ready ready = Ready::of(key, blocks)) {
            dael_message message = message_of(ct, pt, blocks * kBlock);
            std::memcpy(message.start, iv, kBlock);
            unsigned char last[kBlock];  // in place it is gone afterwards
            std::memcpy(last, ct + (blocks - 1) * kBlock, kBlock);
            const dael_status status = ready.run(cipher_of(DAEL_CBC, DAEL_DECRYPT), message);
            if (status == DAEL_OK) std::memcpy(iv, last, kBlock);
            return error_of(status);
        }
    for (; blocks > 0; --blocks, ct += kBlock, pt += kBlock) {
        unsigned char block[kBlock], next[kBlock];
        std::memcpy(next, ct, kBlock);
        if (const int error = aes_desc.ecb_decrypt(ct, block, key)) return error;
        add(pt, block, iv, kBlock);
        std::memcpy(iv, next, kBlock);
        dael_wipe(block, sizeof block);
    }
    return CRYPT_OK;
}

int ctr_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, unsigned char* iv, int mode,
                symmetric_key* key) {
    const bool big = mode == CTR_COUNTER_BIG_ENDIAN;
    const int width = counter_width(iv, big, key);
    if (blocks >= kWorthACall && !overlap(pt, ct, blocks * kBlock))
        if (const Ready ready = Ready::of(key, blocks))
            return error_of((big ? count_up : count_little)(ready, pt, ct, blocks, iv, width));
    unsigned char stream[kBlock];
    for (; blocks > 0; --blocks, pt += kBlock, ct += kBlock) {
        count(iv, width, big);
        if (const int error = aes_desc.ecb_encrypt(iv, stream, key)) return error;
        add(ct, pt, stream, kBlock);
    }
    dael_wipe(stream, sizeof stream);
    return CRYPT_OK;
}

int xts_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, unsigned char* tweak,
                symmetric_key* data, symmetric_key* tweaks) {
    return xts(pt, ct, blocks, tweak, data, tweaks, DAEL_ENCRYPT);
}

int xts_decrypt(Bytes ct, unsigned char* pt, unsigned long blocks, unsigned char* tweak,
                symmetric_key* data, symmetric_key* tweaks) {
    return xts(ct, pt, blocks, tweak, data, tweaks, DAEL_DECRYPT);
}

}  // namespace daelstrom_tomcrypt
