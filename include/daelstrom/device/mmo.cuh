// SPDX-License-Identifier: Apache-2.0
// Hashing blocks with AES under a fixed key, as protocols for multi-party computation and private
// information retrieval do it: <daelstrom/device/aes.cuh>, on the device and on the host.
//
// Safety: these are not collision-resistant hashes of messages. Each takes one block to one block,
// and is proven for AES as a random permutation, under a key that everybody may know and that is
// chosen independently of the inputs. Which property a protocol needs is the protocol's affair:
//   mmo          correlation robust                    one AES; 7.2
//   mmo_sigma    circular correlation robust           one AES; 7.3
//   tmmo         tweakable circular correlation robust two AES; 7.4
// The sections are those of C. Guo, J. Katz, X. Wang and Y. Yu, "Efficient and Secure Multiparty
// Computation from Fixed-Key Block Ciphers", IEEE S&P 2020 (ePrint 2019/074), where pi is AES under
// the fixed key. Plain mmo where a protocol asks for the circular property breaks the protocol.
//
// `cipher` is SharedTables on the device and NoTables on the host. Nothing keeps state: any number
// of threads at once.
#pragma once

#include <daelstrom/device/tables.cuh>

namespace dael::device {

// pi(x) ^ x: Matyas, Meyer and Oseas (1985), with the key fixed.
template <class Cipher, int kBits>
DAEL_HD Block mmo(const Cipher& cipher, const EncryptionKey<kBits>& key, const Block& x) {
    return cipher.encrypt_xor(key, x, x);
}

// The linear orthomorphism sigma(L || R) = (L ^ R) || L. L is the upper half of a little-endian
// number of 128 bits, bytes 8 to 15, as libraries on x86 processors have it.
DAEL_HD Block sigma(const Block& x) {
    return {x.z, x.w, x.x ^ x.z, x.y ^ x.w};
}

// pi(sigma(x)) ^ sigma(x).
template <class Cipher, int kBits>
DAEL_HD Block mmo_sigma(const Cipher& cipher, const EncryptionKey<kBits>& key, const Block& x) {
    return mmo(cipher, key, sigma(x));
}

// pi(pi(x) ^ tweak) ^ pi(x).
template <class Cipher, int kBits>
DAEL_HD Block tmmo(const Cipher& cipher, const EncryptionKey<kBits>& key, const Block& x,
                   const Block& tweak) {
    const Block y = cipher.encrypt(key, x);
    return cipher.encrypt_xor(key, y ^ tweak, y);
}

}  // namespace dael::device
