// SPDX-License-Identifier: Apache-2.0
// The C structures and enumerators are those of C++: what is aliased, never copied, is laid out
// alike, and numbers mean the same.
#include <daelstrom/daelstrom.h>

#include <cstddef>

#include <daelstrom/engine.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/xts.hpp>

namespace {

template <class A, class B>
constexpr bool same_size = sizeof(A) == sizeof(B) && alignof(A) == alignof(B);
#define DAEL_SAME(c, cpp, member)                                \
    static_assert(offsetof(c, member) == offsetof(cpp, member)); \
    static_assert(sizeof(c::member) == sizeof(cpp::member))

static_assert(same_size<dael_cipher, dael::Cipher> && sizeof(dael_cipher) == 8);
DAEL_SAME(dael_cipher, dael::Cipher, mode);
DAEL_SAME(dael_cipher, dael::Cipher, direction);
DAEL_SAME(dael_cipher, dael::Cipher, tag);
DAEL_SAME(dael_cipher, dael::Cipher, unused);
DAEL_SAME(dael_cipher, dael::Cipher, sector);

static_assert(same_size<dael_message, dael::Message> && sizeof(dael_message) == 96);
DAEL_SAME(dael_message, dael::Message, in);
DAEL_SAME(dael_message, dael::Message, out);
DAEL_SAME(dael_message, dael::Message, size);
DAEL_SAME(dael_message, dael::Message, aad);
DAEL_SAME(dael_message, dael::Message, aad_size);
DAEL_SAME(dael_message, dael::Message, tag);
DAEL_SAME(dael_message, dael::Message, start);
DAEL_SAME(dael_message, dael::Message, key);
DAEL_SAME(dael_message, dael::Message, skip);
DAEL_SAME(dael_message, dael::Message, unused);
DAEL_SAME(dael_message, dael::Message, start_rest);

static_assert(same_size<dael_device_nonces, dael::DeviceNonces>);
DAEL_SAME(dael_device_nonces, dael::DeviceNonces, fixed);
DAEL_SAME(dael_device_nonces, dael::DeviceNonces, unused);
DAEL_SAME(dael_device_nonces, dael::DeviceNonces, next);

static_assert(sizeof(dael_ran) == 64);                 // for ever
static_assert(sizeof(dael::Code) == sizeof(int32_t));  // lists of codes

#define DAEL_EQUAL(c, cpp) static_assert(static_cast<int>(c) == static_cast<int>(cpp))
DAEL_EQUAL(DAEL_OK, dael::Code::ok);
DAEL_EQUAL(DAEL_INVALID_ARGUMENT, dael::Code::invalid_argument);
DAEL_EQUAL(DAEL_KEY_SIZE, dael::Code::key_size);
DAEL_EQUAL(DAEL_IV_SIZE, dael::Code::iv_size);
DAEL_EQUAL(DAEL_RAGGED_LENGTH, dael::Code::ragged_length);
DAEL_EQUAL(DAEL_BAD_PADDING, dael::Code::bad_padding);
DAEL_EQUAL(DAEL_OVERLAP, dael::Code::overlap);
DAEL_EQUAL(DAEL_LIMIT, dael::Code::limit);
DAEL_EQUAL(DAEL_UNKNOWN_BACKEND, dael::Code::unknown_backend);
DAEL_EQUAL(DAEL_BACKEND_ABSENT, dael::Code::backend_absent);
DAEL_EQUAL(DAEL_UNSUPPORTED, dael::Code::unsupported);
DAEL_EQUAL(DAEL_OUT_OF_MEMORY, dael::Code::out_of_memory);
DAEL_EQUAL(DAEL_DEVICE, dael::Code::device);
DAEL_EQUAL(DAEL_IO, dael::Code::io);
DAEL_EQUAL(DAEL_BAD_FORMAT, dael::Code::bad_format);
DAEL_EQUAL(DAEL_INTERNAL, dael::Code::internal);
DAEL_EQUAL(DAEL_AUTHENTICATION, dael::Code::authentication);
static_assert(DAEL_AUTHENTICATION + 1 == dael::kCodeCount);  // and there are no others

DAEL_EQUAL(DAEL_ECB, dael::Mode::ecb);
DAEL_EQUAL(DAEL_CBC, dael::Mode::cbc);
DAEL_EQUAL(DAEL_CFB, dael::Mode::cfb);
DAEL_EQUAL(DAEL_OFB, dael::Mode::ofb);
DAEL_EQUAL(DAEL_CTR, dael::Mode::ctr);
DAEL_EQUAL(DAEL_GCM, dael::Mode::gcm);
DAEL_EQUAL(DAEL_GCM_CTR, dael::Mode::gcm_ctr);
DAEL_EQUAL(DAEL_XTS, dael::Mode::xts);
DAEL_EQUAL(DAEL_AEGIS128L, dael::Mode::aegis128l);
DAEL_EQUAL(DAEL_AEGIS256, dael::Mode::aegis256);
DAEL_EQUAL(DAEL_AEGIS128X2, dael::Mode::aegis128x2);
DAEL_EQUAL(DAEL_AEGIS128X4, dael::Mode::aegis128x4);
DAEL_EQUAL(DAEL_XAES256GCM, dael::Mode::xaes256gcm);
DAEL_EQUAL(DAEL_GCM_SIV, dael::Mode::gcm_siv);
static_assert(DAEL_GCM_SIV + 1 == dael::kModes.size());
DAEL_EQUAL(DAEL_ENCRYPT, dael::Direction::encrypt);
DAEL_EQUAL(DAEL_DECRYPT, dael::Direction::decrypt);
DAEL_EQUAL(DAEL_PLACE_HOST, dael::Place::host);
DAEL_EQUAL(DAEL_PLACE_DEVICE, dael::Place::device);
DAEL_EQUAL(DAEL_FROM_HOST, dael::Job::From::host);
DAEL_EQUAL(DAEL_FROM_PINNED, dael::Job::From::pinned);
DAEL_EQUAL(DAEL_FROM_DEVICE, dael::Job::From::device);

static_assert(DAEL_MAX_LAUNCHED == dael::kMaxLaunched &&
              DAEL_MAX_LAUNCHED_AAD == dael::kMaxLaunchedAad);
static_assert(DAEL_BLOCK_SIZE == dael::kBlockSize && DAEL_NONCE_SIZE == dael::gcm::kNonceSize &&
              DAEL_TAG_SIZE == dael::gcm::kTagSize);

}  // namespace
