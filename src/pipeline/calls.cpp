// SPDX-License-Identifier: Apache-2.0
// The modes' named calls: each makes a message and gives it to the engine.
#include <algorithm>

#include <daelstrom/aegis.hpp>
#include <daelstrom/ctr.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/gcm_siv.hpp>
#include <daelstrom/unauthenticated.hpp>
#include <daelstrom/xaes.hpp>
#include <daelstrom/xts.hpp>

#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"
#include "modes/traits.hpp"

namespace dael {
namespace {

Result<Ran> run(Engine& engine, const Cipher& cipher, const Key& key, const Block& start, HostIn in,
                HostOut out) {
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    Message message{in.data(), out.data(), in.size()};
    message.start = start;
    return engine.run(cipher, key, message);
}

Result<Message> on_device(DeviceIn in, DeviceOut out, const Block& start) {
    if (in.size != out.size) return modes::sizes_differ(in.size, out.size);
    Message message{static_cast<const std::uint8_t*>(in.data), static_cast<std::uint8_t*>(out.data),
                    in.size};
    message.start = start;
    return message;
}

Result<Message> at_offset(Message message, std::uint64_t offset) {
    if (message.size != 0 && message.size - 1 > ~std::uint64_t{0} - offset)
        return Error{Code::limit, "offset plus length passes 2^64 bytes"};
    return modes::from_offset(message, offset);
}

}  // namespace

#define DAEL_TWO_WAYS(mode)                                                               \
    Result<Ran> mode::encrypt(Engine& engine, const Key& key, const Block& iv, HostIn in, \
                              HostOut out) {                                              \
        return run(engine, {Mode::mode, Direction::encrypt}, key, iv, in, out);           \
    }                                                                                     \
    Result<Ran> mode::decrypt(Engine& engine, const Key& key, const Block& iv, HostIn in, \
                              HostOut out) {                                              \
        return run(engine, {Mode::mode, Direction::decrypt}, key, iv, in, out);           \
    }
DAEL_TWO_WAYS(cbc)
DAEL_TWO_WAYS(cfb)
#undef DAEL_TWO_WAYS

Result<Ran> ecb::encrypt(Engine& engine, const Key& key, HostIn in, HostOut out) {
    return run(engine, {Mode::ecb, Direction::encrypt}, key, {}, in, out);
}
Result<Ran> ecb::decrypt(Engine& engine, const Key& key, HostIn in, HostOut out) {
    return run(engine, {Mode::ecb, Direction::decrypt}, key, {}, in, out);
}

Result<Ran> ofb::crypt(Engine& engine, const Key& key, const Block& iv, HostIn in, HostOut out) {
    return run(engine, {Mode::ofb, Direction::encrypt}, key, iv, in, out);
}

Result<Ran> ctr::crypt(Engine& engine, const Key& key, const Block& counter, HostIn in, HostOut out,
                       std::uint64_t offset) {
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    if (!in.data() && !in.empty()) return Error{Code::invalid_argument, "the input is null"};
    Message message{in.data(), out.data(), in.size()};
    message.start = counter;
    DAEL_LET(moved, at_offset(message, offset));
    return engine.run(kCipher, key, moved);
}

Result<Ran> ctr::crypt(Engine& engine, const Key& key, const Block& counter, DeviceIn in,
                       DeviceOut out, Stream stream, std::uint64_t offset) {
    if (!in.data && in.size != 0) return Error{Code::invalid_argument, "the input is null"};
    DAEL_LET(message, on_device(in, out, counter));
    DAEL_LET(moved, at_offset(message, offset));
    return engine.run(kCipher, key, moved, stream);
}

Result<Ran> ctr::keystream(Engine& engine, const Key& key, const Block& counter, HostOut out,
                           std::uint64_t offset) {
    Message message{nullptr, out.data(), out.size()};
    message.start = counter;
    DAEL_LET(moved, at_offset(message, offset));
    return engine.run(kCipher, key, moved);
}

Result<Ran> ctr::keystream(Engine& engine, const Key& key, const Block& counter, DeviceOut out,
                           Stream stream, std::uint64_t offset) {
    DAEL_LET(message, on_device({nullptr, out.size}, out, counter));
    DAEL_LET(moved, at_offset(message, offset));
    return engine.run(kCipher, key, moved, stream);
}

namespace {

Cipher xts_cipher(Direction direction, const xts::Sectors& sectors) {
    return {Mode::xts, direction, 16, 0, sectors.size};
}

}  // namespace

Result<Ran> xts::encrypt(Engine& engine, const Key& key, const Sectors& sectors, HostIn in,
                         HostOut out) {
    return run(engine, xts_cipher(Direction::encrypt, sectors), key, start(sectors), in, out);
}
Result<Ran> xts::decrypt(Engine& engine, const Key& key, const Sectors& sectors, HostIn in,
                         HostOut out) {
    return run(engine, xts_cipher(Direction::decrypt, sectors), key, start(sectors), in, out);
}
Result<Ran> xts::encrypt(Engine& engine, const Key& key, const Sectors& sectors, DeviceIn in,
                         DeviceOut out, Stream stream) {
    DAEL_LET(message, on_device(in, out, start(sectors)));
    return engine.run(xts_cipher(Direction::encrypt, sectors), key, message, stream);
}
Result<Ran> xts::decrypt(Engine& engine, const Key& key, const Sectors& sectors, DeviceIn in,
                         DeviceOut out, Stream stream) {
    DAEL_LET(message, on_device(in, out, start(sectors)));
    return engine.run(xts_cipher(Direction::decrypt, sectors), key, message, stream);
}

Result<Block> gcm::start(const Key& key, std::span<const std::uint8_t> iv) {
    if (iv.empty())
        return Error{Code::iv_size, "the IV is empty; GCM takes 1 byte or more, usually 12"};
    if (!iv.data()) return Error{Code::invalid_argument, "the IV is null"};
    if (iv.size() > kMaxAad)
        return Error{Code::limit,
                     std::to_string(iv.size()) + " bytes of IV; GCM's limit is 2^61 - 1"};
    if (iv.size() == kNonceSize) return modes::pre_counter({}, iv);
    modes::Element h = modes::hash_subkey(key.schedule());
    const core::WipeAtEnd wipe(h);
    return modes::pre_counter(h, iv);
}

namespace {

Result<Ran> gcm_one(Engine& engine, const Cipher& cipher, const Key& key,
                    std::span<const std::uint8_t> iv, HostIn aad, HostIn in, HostOut out,
                    std::uint8_t* tag) {
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    DAEL_LET(start, gcm::start(key, iv));
    Message message{in.data(), out.data(), in.size(), aad.data(), aad.size(), tag};
    message.start = start;
    return engine.run(cipher, key, message);
}

Result<Cipher> with_tag(Cipher cipher, std::size_t size) {
    if (!gcm::valid_tag_size(size))
        return Error{Code::invalid_argument,
                     "a tag of " + std::to_string(size) + " bytes; GCM has 4, 8, and 12 to 16"};
    cipher.tag = static_cast<std::uint8_t>(size);
    return cipher;
}

}  // namespace

Result<Ran> gcm::seal(Engine& engine, const Key& key, std::span<const std::uint8_t> iv, HostIn aad,
                      HostIn in, HostOut out, std::span<std::uint8_t> tag) {
    DAEL_LET(cipher, with_tag(sealing(), tag.size()));
    return gcm_one(engine, cipher, key, iv, aad, in, out, tag.data());
}

Result<Ran> gcm::open(Engine& engine, const Key& key, std::span<const std::uint8_t> iv, HostIn aad,
                      HostIn in, HostOut out, std::span<const std::uint8_t> tag) {
    DAEL_LET(cipher, with_tag(opening(), tag.size()));
    // A message's tag is not const, since sealing writes it; opening does not.
    return gcm_one(engine, cipher, key, iv, aad, in, out, const_cast<std::uint8_t*>(tag.data()));
}

namespace {

// Of a mode whose start is the nonce, with zeros behind it. A message's tag is not const, since
// sealing writes it; opening does not.
Result<Ran> nonced(Engine& engine, Cipher cipher, const Key& key,
                   std::span<const std::uint8_t> nonce, std::size_t nonce_size, HostIn aad,
                   HostIn in, HostOut out, std::span<const std::uint8_t> tag) {
    if (!modes::valid_tag_size(cipher.mode, tag.size()))
        return modes::no_such_tag(cipher.mode, tag.size());
    if (nonce.size() != nonce_size)
        return Error{Code::iv_size, "the nonce is " + std::to_string(nonce.size()) + " bytes; " +
                                        std::string(name(cipher.mode)) + " takes " +
                                        std::to_string(nonce_size)};
    if (!nonce.data()) return Error{Code::invalid_argument, "the nonce is null"};
    if (in.size() != out.size()) return modes::sizes_differ(in.size(), out.size());
    cipher.tag = static_cast<std::uint8_t>(tag.size());
    Message message{in.data(),  out.data(), in.size(),
                    aad.data(), aad.size(), const_cast<std::uint8_t*>(tag.data())};
    const auto first = nonce.first(std::min(nonce.size(), kBlockSize));
    std::ranges::copy(first, message.start.begin());
    std::ranges::copy(nonce.subspan(first.size()), message.start_rest.begin());
    return engine.run(cipher, key, message);
}
Result<Ran> aegis_one(Engine& engine, const Cipher& cipher, const Key& key,
                      std::span<const std::uint8_t> nonce, HostIn aad, HostIn in, HostOut out,
                      std::span<const std::uint8_t> tag) {
    if (!is_aegis(cipher.mode))
        return Error{Code::invalid_argument,
                     std::string(name(cipher.mode)) + " is not a mode of AEGIS"};
    return nonced(engine, cipher, key, nonce, aegis::nonce_size(cipher.mode), aad, in, out, tag);
}

}  // namespace

Result<Ran> aegis::seal(Engine& engine, Mode mode, const Key& key,
                        std::span<const std::uint8_t> nonce, HostIn aad, HostIn in, HostOut out,
                        std::span<std::uint8_t> tag) {
    return aegis_one(engine, sealing(mode), key, nonce, aad, in, out, tag);
}
Result<Ran> aegis::open(Engine& engine, Mode mode, const Key& key,
                        std::span<const std::uint8_t> nonce, HostIn aad, HostIn in, HostOut out,
                        std::span<const std::uint8_t> tag) {
    return aegis_one(engine, opening(mode), key, nonce, aad, in, out, tag);
}

#define DAEL_SEAL_AND_OPEN(mode)                                                                \
    Result<Ran> mode::seal(Engine& engine, const Key& key, std::span<const std::uint8_t> nonce, \
                           HostIn aad, HostIn in, HostOut out, std::span<std::uint8_t> tag) {   \
        return nonced(engine, kSealing, key, nonce, kNonceSize, aad, in, out, tag);             \
    }                                                                                           \
    Result<Ran> mode::open(Engine& engine, const Key& key, std::span<const std::uint8_t> nonce, \
                           HostIn aad, HostIn in, HostOut out,                                  \
                           std::span<const std::uint8_t> tag) {                                 \
        return nonced(engine, kOpening, key, nonce, kNonceSize, aad, in, out, tag);             \
    }
DAEL_SEAL_AND_OPEN(xaes)
DAEL_SEAL_AND_OPEN(gcm_siv)
#undef DAEL_SEAL_AND_OPEN

}  // namespace dael
