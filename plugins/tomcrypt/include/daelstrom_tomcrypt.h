/* SPDX-License-Identifier: Apache-2.0
 *
 * daelstrom below LibTomCrypt 1.18: after one call every program that uses LibTomCrypt's AES has
 * its bulk work (ECB, CBC, CTR, XTS, GCM, CCM, OMAC) done by daelstrom, with the same bytes.
 *
 *     daelstrom_tomcrypt_register();      in the place of register_cipher(&aes_desc)
 *
 * What stays LibTomCrypt's own: single blocks, and so whatever it builds of them (CFB, OFB, F8,
 * LRW, EAX, OCB, and gcm_process() bit by bit, where GHASH is what costs), and calls of a few
 * blocks, which are as fast there. Those use tables, as in plain LibTomCrypt: their timing depends
 * on the data. Bulk work is constant in time.
 *
 * Safety: gcm_memory() of this version returns the tag of what it decrypts and verifies nothing:
 * compare it, in constant time, before you use the plaintext. Nothing here changes that.
 *
 * Threads: any number may use the descriptor, its contexts as in plain LibTomCrypt (one may encrypt
 * by several threads where its mode allows that), daelstrom_tomcrypt_forget() and
 * daelstrom_tomcrypt_served() at once. Registering, unregistering and daelstrom_tomcrypt_use() are
 * for when no other thread is in a call of LibTomCrypt's; with unregistering the engine is closed.
 *
 * A context that is done, or an engine that is closed, while a thread is in a call with it is the
 * program's fault, and has no defined result.
 *
 * fork(): a child goes on with the keys that were ready, and with contexts as they stood, whatever
 * other threads of the parent were doing; in counter modes that is the parent's keystream once
 * more, as with any copy. A given engine has to be one that a child may use: one that works in host
 * memory.
 *
 * Keys: a context's own memory holds its key, as in plain LibTomCrypt, and the cipher's done()
 * wipes it. Beside that up to 64 keys of contexts are kept ready in locked memory, until done(), or
 * until others take their places; and the eight last keys of gcm_memory(), ccm_memory() and
 * omac_memory(), until daelstrom_tomcrypt_forget(). A context that is copied, or abandoned without
 * done(), costs nothing more.
 */
#ifndef DAELSTROM_TOMCRYPT_H
#define DAELSTROM_TOMCRYPT_H

#include <daelstrom/daelstrom.h>
#include <tomcrypt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The descriptor: the ID and the name of LibTomCrypt's aes_desc, whose contexts it shares. */
extern const struct ltc_cipher_descriptor daelstrom_aes_desc;

/* Puts it where AES stands in LibTomCrypt's table ("aes" or "rijndael"; register_cipher() refuses a
 * second one of the same ID), or in a free place. Indexes and contexts that exist stay valid. Call
 * it before threads use LibTomCrypt: the table has no lock for readers. A later
 * register_cipher(&aes_desc) changes nothing. Again is fine, and needed after xts_test(), which
 * leaves hooks of its own behind. Returns AES's index, or -1 if the table is full. */
int daelstrom_tomcrypt_register(void);

/* LibTomCrypt's own AES again, in the same place; contexts that exist stay valid. Forgets all keys.
 * The engine that was opened is closed: no call may run meanwhile. */
void daelstrom_tomcrypt_unregister(void);

/* Wipes all keys that are kept ready; who still needs one makes it ready again. */
void daelstrom_tomcrypt_forget(void);

/* The engine that does the work, from the next call on, in the place of one that is opened when it
 * is first needed: the environment's DAELSTROM_BACKEND, else "cpu", else "openssl", on the calling
 * thread alone. It must stay open until unregister. Null: the former again. */
void daelstrom_tomcrypt_use(dael_engine* engine);

/* How many calls daelstrom has served since the program began: to see that it does. */
unsigned long long daelstrom_tomcrypt_served(void);

#ifdef __cplusplus
}
#endif

#endif /* DAELSTROM_TOMCRYPT_H */
