// SPDX-License-Identifier: Apache-2.0
// The accelerator hooks of an ltc_cipher_descriptor, as LibTomCrypt 1.18.2 calls them, which is not
// always as its header has it.
#pragma once

#include "keys.hpp"

namespace daelstrom_tomcrypt {

using Bytes = const unsigned char*;

int ecb_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, symmetric_key* key);
int ecb_decrypt(Bytes ct, unsigned char* pt, unsigned long blocks, symmetric_key* key);
int cbc_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, unsigned char* iv,
                symmetric_key* key);
int cbc_decrypt(Bytes ct, unsigned char* pt, unsigned long blocks, unsigned char* iv,
                symmetric_key* key);
int ctr_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, unsigned char* iv, int mode,
                symmetric_key* key);
// The tweak comes plain and leaves encrypted, as the one of the block that follows.
int xts_encrypt(Bytes pt, unsigned char* ct, unsigned long blocks, unsigned char* tweak,
                symmetric_key* data, symmetric_key* tweaks);
int xts_decrypt(Bytes ct, unsigned char* pt, unsigned long blocks, unsigned char* tweak,
                symmetric_key* data, symmetric_key* tweaks);
int gcm_memory(Bytes key, unsigned long key_size, Bytes iv, unsigned long iv_size, Bytes aad,
               unsigned long aad_size, unsigned char* pt, unsigned long size, unsigned char* ct,
               unsigned char* tag, unsigned long* tag_size, int direction);
int ccm_memory(Bytes key, unsigned long key_size, symmetric_key* scheduled, Bytes nonce,
               unsigned long nonce_size, Bytes header, unsigned long header_size, unsigned char* pt,
               unsigned long size, unsigned char* ct, unsigned char* tag, unsigned long* tag_size,
               int direction);
int omac_memory(Bytes key, unsigned long key_size, Bytes in, unsigned long size, unsigned char* out,
                unsigned long* out_size);

// Shared by them.
constexpr unsigned long kBlock = 16, kChunk = 64;  // bytes; blocks that lie on the stack at once
int error_of(dael_status status) noexcept;
// Neither the same nor apart: what LibTomCrypt does there block by block is left to it.
bool overlap(const void* a, const void* b, unsigned long size) noexcept;
void add(unsigned char* to, const unsigned char* a, const unsigned char* b,
         unsigned long size) noexcept;  // XOR
inline dael_cipher cipher_of(dael_mode mode, dael_direction direction, std::uint8_t tag = 0) {
    return {static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(direction), tag, 0, 0};
}
inline dael_message message_of(const unsigned char* in, unsigned char* out, unsigned long size) {
    dael_message message{};
    message.in = in;
    message.out = out;
    message.size = size;
    return message;
}

}  // namespace daelstrom_tomcrypt
