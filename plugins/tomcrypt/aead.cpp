// SPDX-License-Identifier: Apache-2.0
// The hooks that take a raw key: GCM, CCM, OMAC.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "hooks.hpp"

namespace daelstrom_tomcrypt {
namespace {

// LibTomCrypt's own way, where there is no engine or daelstrom does not take the arguments.
int plain_gcm(Bytes key, unsigned long key_size, Bytes iv, unsigned long iv_size, Bytes aad,
              unsigned long aad_size, unsigned char* pt, unsigned long size, unsigned char* ct,
              unsigned char* tag, unsigned long* tag_size, int direction) {
    int index = find_cipher("aes");
    if (index < 0) index = find_cipher("rijndael");
    constexpr std::size_t kSize = (sizeof(gcm_state) + 15) / 16 * 16;  // its tables are aligned
    auto* const state = static_cast<gcm_state*>(std::aligned_alloc(16, kSize));
    if (!state) return CRYPT_MEM;
    int error = gcm_init(state, index, key, static_cast<int>(key_size));
    if (error == CRYPT_OK) error = gcm_add_iv(state, iv, iv_size);
    if (error == CRYPT_OK) error = gcm_add_aad(state, aad, aad_size);
    if (error == CRYPT_OK) error = gcm_process(state, pt, size, ct, direction);
    if (error == CRYPT_OK) error = gcm_done(state, tag, tag_size);
    dael_wipe(state, kSize);
    std::free(state);
    return error;
}

// What gcm_memory() gives for a ciphertext is the plaintext and the tag that would be right, for
// the caller to compare. In pieces, which take every counter: after an IV of other than 12 bytes it
// begins anywhere, and its 32 bits may wrap within the message (SP 800-38D 6.2).
dael_status unverified(const Ready& ready, const dael_message& message) noexcept {
    const dael_cipher cipher = cipher_of(DAEL_GCM, DAEL_DECRYPT, DAEL_TAG_SIZE);
    dael_pieces* pieces = nullptr;
    dael_status bad = dael_begin(ready.engine(), &cipher, ready.key(), message.start, &pieces);
    if (!bad && message.aad_size != 0) bad = dael_pieces_aad(pieces, message.aad, message.aad_size);
    if (!bad && message.size != 0)
        bad = dael_pieces_update_unverified(pieces, message.in, message.out, message.size);
    if (!bad) bad = dael_pieces_tag(pieces, message.tag);
    dael_pieces_free(pieces);
    return bad;
}

// A context on the stack for hooks that get a raw key: the table then knows it by its bytes.
class Scheduled {
  public:
    Scheduled(Bytes key, unsigned long size, symmetric_key* given) : key_(given) {
        if (given) return;
        key_ = &own_;
        error_ = aes_desc.setup(key, static_cast<int>(size), 0, &own_);
        Context& context = context_of(&own_);
        context.mark = kMark;
        context.id = 0;
        context.spent = ~std::uint64_t{0} / 2;  // worth it from the first call on
    }
    Scheduled(const Scheduled&) = delete;
    Scheduled& operator=(const Scheduled&) = delete;
    ~Scheduled() {
        if (key_ == &own_) dael_wipe(&own_, sizeof(Context));
    }
    int error() const noexcept { return error_; }
    symmetric_key* get() noexcept { return key_; }

  private:
    symmetric_key own_;
    symmetric_key* key_;
    int error_ = CRYPT_OK;
};

// CBC-MAC: mac = E(mac ^ block) for each block.
int chain(symmetric_key* key, Bytes in, unsigned long blocks, unsigned char mac[kBlock]) {
    unsigned char out[kChunk * kBlock];
    int error = CRYPT_OK;
    while (blocks > 0 && error == CRYPT_OK) {
        const unsigned long some = std::min(blocks, kChunk);
        error = cbc_encrypt(in, out, some, mac, key);
        in += some * kBlock;
        blocks -= some;
    }
    dael_wipe(out, sizeof out);
    return error;
}

// The same for what does not fill its last block, which is filled up with zeros.
int chain_padded(symmetric_key* key, Bytes in, unsigned long size, unsigned char mac[kBlock]) {
    int error = chain(key, in, size / kBlock, mac);
    const unsigned long rest = size % kBlock;
    if (error != CRYPT_OK || rest == 0) return error;
    unsigned char last[kBlock] = {};
    std::memcpy(last, in + size - rest, rest);
    error = chain(key, last, 1, mac);
    dael_wipe(last, sizeof last);
    return error;
}

// Counter mode on any length; `counter` is the last one used.
int count(symmetric_key* key, Bytes in, unsigned char* out, unsigned long size,
          unsigned char counter[kBlock]) {
    const unsigned long rest = size % kBlock, whole = size - rest;
    int error = ctr_encrypt(in, out, whole / kBlock, counter, CTR_COUNTER_BIG_ENDIAN, key);
    if (error != CRYPT_OK || rest == 0) return error;
    unsigned char last[kBlock] = {};
    std::memcpy(last, in + whole, rest);
    error = ctr_encrypt(last, last, 1, counter, CTR_COUNTER_BIG_ENDIAN, key);
    if (error == CRYPT_OK) std::memcpy(out + whole, last, rest);
    dael_wipe(last, sizeof last);
    return error;
}

// CCM (SP 800-38C, A.2), as LibTomCrypt reads it: the length field is as long as the nonce leaves
// room, or as the message needs it.
struct Ccm {
    symmetric_key* key;
    unsigned char mac[kBlock] = {}, counter[kBlock] = {};

    ~Ccm() {
        dael_wipe(mac, sizeof mac);
        dael_wipe(counter, sizeof counter);
    }

    int begin(Bytes nonce, unsigned long nonce_size, Bytes header, unsigned long header_size,
              unsigned long size, unsigned long tag_size) {
        unsigned long width = 2;
        while (width < 8 && size >> 8 * width != 0) ++width;
        width = std::max(width, 15 - std::min(nonce_size, 13UL));
        counter[0] = static_cast<unsigned char>(width - 1);
        std::memcpy(counter + 1, nonce, 15 - width);

        unsigned char first[kBlock];
        std::memcpy(first, counter, kBlock);
        first[0] = static_cast<unsigned char>((header_size > 0 ? 0x40 : 0) |
                                              (tag_size - 2) / 2 << 3 | (width - 1));
        for (unsigned i = 0; i < 4 && i < width; ++i)
            first[15 - i] = static_cast<unsigned char>(size >> 8 * i);
        if (const int error = chain(key, first, 1, mac)) return error;
        if (header_size == 0) return CRYPT_OK;

        // Its length in front of the header, and then whole blocks of it.
        unsigned char start[kBlock] = {};
        unsigned long used = 0;
        const auto put = [&](unsigned long value, unsigned bytes) {
            while (bytes-- > 0) start[used++] = static_cast<unsigned char>(value >> 8 * bytes);
        };
        if (header_size >= 0xff00) put(0xfffe, 2);
        put(header_size, header_size >= 0xff00 ? 4 : 2);
        const unsigned long some = std::min(kBlock - used, header_size);
        std::memcpy(start + used, header, some);
        if (const int error = chain(key, start, 1, mac)) return error;
        return chain_padded(key, header + some, header_size - some, mac);
    }

    // The MAC goes through counter 0.
    int finish() {
        unsigned char zero[kBlock];
        std::memcpy(zero, counter, kBlock);
        std::memset(zero + kBlock - (zero[0] + 1UL), 0, zero[0] + 1UL);
        const int error = aes_desc.ecb_encrypt(zero, zero, key);
        add(mac, mac, zero, kBlock);
        dael_wipe(zero, sizeof zero);
        return error;
    }

    int seal(Bytes pt, unsigned char* ct, unsigned long size) {
        if (const int error = chain_padded(key, pt, size, mac)) return error;
        return count(key, pt, ct, size, counter);
    }

    // Decrypts for the MAC alone: nothing is kept before it has been compared.
    int look(Bytes ct, unsigned long size) {
        unsigned char plain[kChunk * kBlock];
        int error = CRYPT_OK;
        for (unsigned long at = 0; at < size && error == CRYPT_OK; at += sizeof plain) {
            const unsigned long some = std::min(size - at, sizeof plain);
            error = count(key, ct + at, plain, some, counter);
            if (error == CRYPT_OK) error = chain_padded(key, plain, some, mac);
        }
        dael_wipe(plain, sizeof plain);
        return error;
    }
};

}  // namespace

int gcm_memory(Bytes key, unsigned long key_size, Bytes iv, unsigned long iv_size, Bytes aad,
               unsigned long aad_size, unsigned char* pt, unsigned long size, unsigned char* ct,
               unsigned char* tag, unsigned long* tag_size, int direction) {
    if (!key || !tag || !tag_size || (iv_size != 0 && !iv) || (aad_size != 0 && !aad) ||
        (size != 0 && (!pt || !ct)))
        return CRYPT_INVALID_ARG;
    const bool encrypts = direction == GCM_ENCRYPT;
    if (!encrypts && direction != GCM_DECRYPT) return CRYPT_INVALID_ARG;
    if (key_size != 16 && key_size != 24 && key_size != 32) return CRYPT_INVALID_KEYSIZE;
    const Ready ready =
        iv_size == 0 || overlap(pt, ct, size) ? Ready() : Ready::of({key, key_size});
    if (!ready)
        return plain_gcm(key, key_size, iv, iv_size, aad, aad_size, pt, size, ct, tag, tag_size,
                         direction);
    unsigned char whole_tag[DAEL_TAG_SIZE];
    dael_message message = encrypts ? message_of(pt, ct, size) : message_of(ct, pt, size);
    message.aad = aad;
    message.aad_size = aad_size;
    message.tag = whole_tag;
    dael_status status = iv_size == DAEL_NONCE_SIZE
                             ? dael_gcm_start(iv, message.start)
                             : dael_gcm_start_iv(ready.key(), iv, iv_size, message.start);
    if (status == DAEL_OK)
        status = encrypts ? ready.run(cipher_of(DAEL_GCM, DAEL_ENCRYPT, DAEL_TAG_SIZE), message)
                          : unverified(ready, message);
    if (status == DAEL_OK) {
        *tag_size = std::min<unsigned long>(*tag_size, DAEL_TAG_SIZE);
        std::memcpy(tag, whole_tag, *tag_size);
    }
    dael_wipe(whole_tag, sizeof whole_tag);
    return error_of(status);
}

int ccm_memory(Bytes key, unsigned long key_size, symmetric_key* scheduled, Bytes nonce,
               unsigned long nonce_size, Bytes header, unsigned long header_size, unsigned char* pt,
               unsigned long size, unsigned char* ct, unsigned char* tag, unsigned long* tag_size,
               int direction) {
    // Lengths of more than 32 bits are not laid out as the standard has it there.
    if (size >> 32 != 0 || header_size >> 32 != 0) return CRYPT_INVALID_ARG;
    // What overlaps would be encrypted over before it is read.
    if (overlap(pt, ct, size)) return CRYPT_INVALID_ARG;
    Scheduled schedule(key, key_size, scheduled);
    if (schedule.error() != CRYPT_OK) return schedule.error();
    Ccm ccm{schedule.get()};
    if (const int bad = ccm.begin(nonce, nonce_size, header, header_size, size, *tag_size))
        return bad;
    if (direction == CCM_ENCRYPT) {
        int error = ccm.seal(pt, ct, size);
        if (error == CRYPT_OK) error = ccm.finish();
        if (error == CRYPT_OK) std::memcpy(tag, ccm.mac, *tag_size);
        return error;
    }
    unsigned char first[kBlock];
    std::memcpy(first, ccm.counter, kBlock);
    int error = ccm.look(ct, size);
    if (error == CRYPT_OK) error = ccm.finish();
    if (error != CRYPT_OK) return error;
    if (XMEM_NEQ(ccm.mac, tag, *tag_size) != 0) {
        std::memset(pt, 0, size);
        return CRYPT_ERROR;
    }
    return count(schedule.get(), ct, pt, size, first);
}

// SP 800-38B 6.2.
int omac_memory(Bytes key, unsigned long key_size, Bytes in, unsigned long size, unsigned char* out,
                unsigned long* out_size) {
    Scheduled schedule(key, key_size, nullptr);
    if (schedule.error() != CRYPT_OK) return schedule.error();
    unsigned char mac[kBlock] = {}, last[kBlock] = {}, mask[kBlock] = {};
    const bool full = size != 0 && size % kBlock == 0;
    const unsigned long tail = full ? kBlock : size % kBlock;
    int error = aes_desc.ecb_encrypt(mask, mask, schedule.get());
    for (int times = full ? 1 : 2; times > 0; --times) {
        const auto carry = static_cast<unsigned char>(0x87 & -(mask[0] >> 7));
        for (int i = 0; i < 15; ++i)
            mask[i] = static_cast<unsigned char>(mask[i] << 1 | mask[i + 1] >> 7);
        mask[15] = static_cast<unsigned char>(mask[15] << 1 ^ carry);
    }
    if (tail != 0) std::memcpy(last, in + size - tail, tail);
    if (!full) last[tail] = 0x80;
    add(last, last, mask, kBlock);
    if (error == CRYPT_OK) error = chain(schedule.get(), in, (size - tail) / kBlock, mac);
    if (error == CRYPT_OK) error = chain(schedule.get(), last, 1, mac);
    if (error == CRYPT_OK) {
        *out_size = std::min(*out_size, kBlock);
        std::memcpy(out, mac, *out_size);
    }
    for (unsigned char* secret : {mac, last, mask}) dael_wipe(secret, kBlock);
    return error;
}

}  // namespace daelstrom_tomcrypt
