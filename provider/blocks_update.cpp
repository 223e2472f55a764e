// SPDX-License-Identifier: Apache-2.0
// Which update of ECB, CBC, CFB and CTR goes where, and the bytes that pass.
#include <algorithm>

#include "blocks.hpp"

namespace dael::provider {
namespace {

using Bytes = unsigned char;

constexpr std::size_t kShort = 1024;
constexpr std::size_t kLeast = 256;  // of an update that the engine may do
// Decryption that holds a block back costs more to take over from the basis.
constexpr std::size_t kPaddedFrom = 4096;

int too_small() noexcept {
    return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
}
std::size_t whole_of(std::size_t size) noexcept {
    return size / kBlock * kBlock;
}

}  // namespace

// The chain after `size` bytes that end with `last_block` of ciphertext; in CTR after as many.
void Blocks::advance(const Bytes* last_block, std::size_t size) noexcept {
    if (kind_ == Kind::ctr)
        count_on(iv_, size / kBlock);
    else if (kind_ != Kind::ecb)
        std::memcpy(iv_, last_block, kBlock);
}

// Whole blocks by the engine, from iv_ on; not of CBC's and CFB's encryption. Returns how many
// bytes were done before it failed.
std::size_t Blocks::run(const dael_key* key, const Bytes* in, Bytes* out,
                        std::size_t size) noexcept {
    const int mode = mode_of(kind_);
    const int direction = encrypts_ || kind_ == Kind::ctr ? DAEL_ENCRYPT : DAEL_DECRYPT;
    const dael_cipher cipher{static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(direction),
                             0, 0, 0};
    const bool parallel = size >= settings().threshold;
    const std::size_t most = parallel ? size : EngineKey::kSlice;
    dael_message message{};
    dael_ran ran;
    for (std::size_t done = 0; done < size;) {
        const std::size_t count = std::min(most, size - done);
        message.in = in + done;
        message.out = out + done;
        message.size = count;
        std::memcpy(message.start, iv_, kBlock);
        Bytes last[kBlock];  // of the ciphertext, before it is overwritten
        std::memcpy(last, in + done + count - kBlock, kBlock);
        const dael_status status = dael_run(opened_engine(), &cipher, key, &message, &ran);
        if (status != DAEL_OK) {
            engine_failed("an update", status);
            return done;
        }
        note_replaced(ran);
        advance(last, count);
        done += count;
    }
    parallel ? EngineKey::did_parallel(size) : engine_key_.did(size);
    note_worker(mode, encrypts_ ? DAEL_ENCRYPT : DAEL_DECRYPT, ran);
    return size;
}

inline void Blocks::by_vectors(const Bytes* in, Bytes* out, std::size_t size) noexcept {
    code_(schedule_.keys, iv_, in, out, size);
    engine_key_.did_here(size);
}

int Blocks::engine_lost() noexcept {
    begun_.none();
    place_ = Place::lost;
    return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
}

// Whole blocks of a message that is here, by whoever is quickest.
bool Blocks::whole_blocks(const Bytes* in, Bytes* out, std::size_t size) noexcept {
    std::size_t done = 0;
    if (size >= settings().threshold &&
        from_bytes(mode_of(kind_), encrypts_ ? DAEL_ENCRYPT : DAEL_DECRYPT) <= size) {
        if (const dael_key* const key = engine_key_.ready(size)) {
            done = run(key, in, out, size);
            // In place what failed may have gone over its own input: nothing can make that good.
            if (done != size && in == out) return engine_lost();
        }
    }
    if (done != size) by_vectors(in + done, out + done, size - done);
    return true;
}

// CTR and CFB, here.
int Blocks::stream(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                   std::size_t size) noexcept {
    *written = 0;
    if (size == 0) return 1;
    if (room < size) return too_small();
    *written = size;
    if (begun_.size() != 0) {
        const Bytes* const mask = begun_.mask(schedule_, iv_);
        for (; begun_.size() < kBlock && size != 0; --size, ++in, ++out, begun_.grow(1)) {
            const Bytes before = *in;
            *out = static_cast<Bytes>(before ^ mask[begun_.size()]);
            begun_.bytes[begun_.size()] = encrypts_ ? *out : before;
        }
        if (begun_.size() < kBlock) return 1;
        begun_.none();
        advance(begun_.bytes, kBlock);
        if (size == 0) return 1;
    }
    if (size >= settings().threshold) {
        const std::size_t whole = whole_of(size);
        if (!whole_blocks(in, out, whole)) {
            *written = 0;
            return 0;
        }
        in += whole;
        out += whole;
        size -= whole;
    }
    const std::size_t rest = size % kBlock, whole = size - rest;
    begun_.start(rest);
    if (kind_ == Kind::cfb && !encrypts_) std::memcpy(begun_.bytes, in + whole, rest);
    if (size != 0) by_vectors(in, out, size);
    if (kind_ == Kind::cfb && encrypts_) std::memcpy(begun_.bytes, out + whole, rest);
    return 1;
}

// ECB and CBC, here. Decryption that expects padding holds the last whole block back.
int Blocks::blocks(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                   std::size_t size) noexcept {
    // What is most often asked, with the fewest questions.
    if (size < kShort && size % kBlock == 0 && size != 0 && begun_.size() == 0 && room >= size &&
        (encrypts_ || !padded_)) {
        by_vectors(in, out, size);
        *written = size;
        return 1;
    }
    *written = 0;
    std::size_t total = 0;
    if (begun_.size() != 0 && begun_.size() < kBlock) {
        const std::size_t some = std::min(size, kBlock - begun_.size());
        if (some != 0) std::memcpy(begun_.bytes + begun_.size(), in, some);
        begun_.grow(some);
        in += some;
        size -= some;
    }
    if (begun_.size() == kBlock && (encrypts_ || size != 0 || !padded_)) {
        if (room < kBlock) return too_small();
        by_vectors(begun_.bytes, out, kBlock);
        begun_.none();
        out += kBlock;
        total = kBlock;
    }
    std::size_t whole = whole_of(size);
    if (!encrypts_ && padded_ && whole == size && whole != 0) whole -= kBlock;
    if (whole != 0) {
        if (room < total + whole) return too_small();
        if (!whole_blocks(in, out, whole)) return 0;
        total += whole;
    }
    if (size != whole) {
        begun_.start(size - whole);
        std::memcpy(begun_.bytes, in + whole, size - whole);
    }
    *written = total;
    return 1;
}

// As OpenSSL has it, also after an end that failed: the last block is decrypted where it stands.
int Blocks::finish(Bytes* out, std::size_t* written, std::size_t room) noexcept {
    *written = 0;
    std::size_t size = begun_.size();
    Bytes* const last = begun_.bytes;
    if (!buffers() || (size == 0 && !padded_)) return 1;
    if (encrypts_ && padded_) {  // RFC 5652 6.3
        const auto missing = static_cast<Bytes>(kBlock - size);
        std::memset(last + size, missing, missing);
    } else if (size != kBlock) {
        return fault(PROV_R_WRONG_FINAL_BLOCK_LENGTH, "the last block is not full");
    }
    if (encrypts_) {
        if (room < kBlock) return too_small();
        by_vectors(last, out, kBlock);
        begun_.none();
        *written = kBlock;
        return 1;
    }
    by_vectors(last, last, kBlock);
    if (padded_) {
        const unsigned padding = last[kBlock - 1];
        unsigned wrong = (padding - 1u) >> 4;  // not from 1 to 16
        for (unsigned i = 0; i < kBlock; ++i) {
            const unsigned counts = 0u - ((15u - i - padding) >> 31);  // it is padding
            wrong |= counts & (last[i] ^ padding);
        }
        if (wrong != 0) return fault(PROV_R_BAD_DECRYPT, "the padding is wrong");
        size = kBlock - padding;
        begun_.start(size);
    }
    if (room < size) return too_small();
    std::memcpy(out, last, size);
    OPENSSL_cleanse(last, kBlock);
    begun_.none();
    *written = size;
    return 1;
}

// An update that the basis does whole.
int Blocks::small(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                  std::size_t size) noexcept {
    return hand_down() ? below_.update(out, written, room, in, size) : 0;
}

// Bytes of an update of a message below from which the engine may do it.
inline std::size_t Blocks::engine_from() const noexcept {
    if (!keyed() || tls_ || turned() || (has_iv() && !iv_set_)) return SIZE_MAX;
    if (place_ == Place::below && below_.told()) return SIZE_MAX;
    const std::size_t from = from_bytes(mode_of(kind_), encrypts_ ? DAEL_ENCRYPT : DAEL_DECRYPT);
    return buffers() && !encrypts_ && padded_ ? std::max(from, kPaddedFrom) : from;
}
// The key's handle, if the engine is to do an update of so many bytes, else null.
const dael_key* Blocks::engine_wins(std::size_t size) noexcept {
    const bool parallel = size >= settings().threshold;
    // What has been measured makes no key ready for nothing.
    if (!parallel && opened_engine() && size < won_from(below_.basis(), encrypts_)) return nullptr;
    const dael_key* const key = engine_key_.ready(size);
    return key && (parallel || size >= won_from(below_.basis(), encrypts_)) ? key : nullptr;
}

// Where a message stands that the vector units do not have: iv_ is its chain then. `begun`: in CTR
// and CFB bytes of a block, in ECB and CBC input that waits, where decryption also keeps the last
// whole block from what may be padding. The basis's word counts; false: it does not say.
bool Blocks::where(std::size_t& begun) noexcept {
    begun = 0;
    if (place_ == Place::here) return true;
    std::size_t used = 0;
    if (has_iv() && !below_.stands(iv_, used)) return false;
    begun = used;
    return !buffers() || below_.waiting(begun);
}

// An update of a message that the basis has; apart, so that small ones keep to few registers.
[[gnu::noinline]] int Blocks::large(Bytes* out, std::size_t* written, std::size_t room,
                                    const Bytes* in, std::size_t size) noexcept {
    const bool keeps = buffers() && !encrypts_ && padded_;
    if (room < size || entangled(in, out, size, buffers() ? kBlock : 0))
        return small(out, written, room, in, size);
    const dael_key* const key = engine_wins(size);
    std::size_t begun = 0;
    // With something begun, the output lies a part of a block behind the input.
    if (!key || !where(begun) || (buffers() && begun != 0 && in == out) ||
        (begun == kBlock && !keeps))
        return small(out, written, room, in, size);

    std::size_t total = 0;
    const auto pass = [&](std::size_t count) {
        std::size_t made = 0;
        if (below_.update(out, &made, room, in, count) != 1) return false;
        out += made;
        total += made;
        room -= made;
        in += count;
        size -= count;
        return true;
    };
    *written = 0;
    if (begun % kBlock != 0 && !pass(kBlock - begun % kBlock)) return engine_lost();
    if (keeps && begun != 0) {
        // One block more gives out the one that is held; it is then held itself, forgotten with
        // the next IV, and decrypted again as our first.
        if (!pass(kBlock)) return engine_lost();
        in -= kBlock;
        size += kBlock;
    }
    if (begun != 0 && !where(begun)) return engine_lost();
    std::size_t whole = whole_of(size);
    if (keeps && whole == size) whole -= kBlock;
    const std::size_t done = run(key, in, out, whole);
    // In place what failed may have gone over its own input: nothing can make that good.
    if (done != whole && in == out) return engine_lost();
    come_here(iv_);
    in += done;
    out += done;
    total += done;
    room -= done;
    size -= done;
    if ((size != 0 || keeps) && (!hand_down() || !pass(size))) return engine_lost();
    *written = total;
    return 1;
}

int Blocks::update(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                   std::size_t size) noexcept {
    if (runs_here()) {
        // Output that overlaps its input is as there, and so is what lags behind it.
        if (!entangled(in, out, size, buffers() ? kBlock : 0) &&
            !(begun_.size() != 0 && in == out && buffers()))
            return buffers() ? blocks(out, written, room, in, size)
                             : stream(out, written, room, in, size);
        return small(out, written, room, in, size);
    }
    if (size >= kLeast && place_ != Place::lost && size >= engine_from())
        return large(out, written, room, in, size);
    return small(out, written, room, in, size);
}

int Blocks::final(Bytes* out, std::size_t* written, std::size_t room) noexcept {
    if (runs_here()) return finish(out, written, room);
    return hand_down() ? below_.final(out, written, room) : 0;
}

int Blocks::cipher(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                   std::size_t size) noexcept {
    return hand_down() ? below_.cipher(out, written, room, in, size) : 0;
}

}  // namespace dael::provider
