// SPDX-License-Identifier: Apache-2.0
// Which update of ECB, CBC, CFB and CTR goes where, and the bytes that pass.
#include <algorithm>

#include "blocks.hpp"

namespace dael::provider {
namespace {

using Bytes = unsigned char;

constexpr std::size_t kShort = 1024;

int too_small() noexcept {
    return fault(PROV_R_OUTPUT_BUFFER_TOO_SMALL, "the output is too small");
}
std::size_t whole_of(std::size_t size) noexcept {
    return size / kBlock * kBlock;
}

}  // namespace

bool Blocks::fetch_iv() noexcept {
    if (here_ || kind_ == Kind::ecb) return true;
    if (position_ == 0 && iv_fresh_) {
        std::memcpy(iv_, original_, kBlock);
        return true;
    }
    OSSL_PARAM asked[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_UPDATED_IV, iv_, kBlock),
        OSSL_PARAM_construct_end()};
    return inner_.basis->get_ctx_params(inner_.context, asked) == 1;
}

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
    const bool wide = size >= settings().threshold;
    const std::size_t most = wide ? size : Worker::kSlice;
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
    wide ? Worker::did_wide(size) : worker_.did(size);
    note_worker(mode, encrypts_ ? DAEL_ENCRYPT : DAEL_DECRYPT, ran);
    return size;
}

inline void Blocks::by_vectors(const Bytes* in, Bytes* out, std::size_t size) noexcept {
    code_(wants_inverse(kind_, encrypts_) ? schedule_.decrypts : schedule_.encrypts, iv_, in, out,
          size);
    worker_.did_here(size);
}

// Whole blocks of a message that is here, by whoever is quickest.
bool Blocks::whole_blocks(const Bytes* in, Bytes* out, std::size_t size) noexcept {
    std::size_t done = 0;
    if (size >= settings().threshold &&
        from_bytes(mode_of(kind_), encrypts_ ? DAEL_ENCRYPT : DAEL_DECRYPT) <= size) {
        if (const dael_key* const key = worker_.ready(size)) {
            done = run(key, in, out, size);
            // In place what failed may have gone over its own input: nothing can make that good.
            if (done != size && in == out) {
                here_ = false;
                broken_ = true;
                return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
            }
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
    if (held_size_ != 0) {
        make_mask();
        for (; held_size_ < kBlock && size != 0; --size, ++in, ++out, ++held_size_) {
            const Bytes before = *in;
            *out = static_cast<Bytes>(before ^ mask_[held_size_]);
            held_[held_size_] = encrypts_ ? *out : before;
        }
        if (held_size_ < kBlock) return 1;
        held_size_ = 0;
        mask_known_ = false;
        advance(held_, kBlock);
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
    held_size_ = size % kBlock;
    const std::size_t whole = size - held_size_;
    if (kind_ == Kind::cfb && !encrypts_) std::memcpy(held_, in + whole, held_size_);
    if (size != 0) by_vectors(in, out, size);
    if (kind_ == Kind::cfb && encrypts_) std::memcpy(held_, out + whole, held_size_);
    return 1;
}

// ECB and CBC, here. Decryption that expects padding holds the last whole block back.
int Blocks::blocks(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                   std::size_t size) noexcept {
    // What is most often asked, with the fewest questions.
    if (size < kShort && size % kBlock == 0 && size != 0 && held_size_ == 0 && room >= size &&
        (encrypts_ || !padded_)) {
        by_vectors(in, out, size);
        *written = size;
        return 1;
    }
    *written = 0;
    std::size_t total = 0;
    if (held_size_ != 0 && held_size_ < kBlock) {
        const std::size_t some = std::min(size, kBlock - held_size_);
        std::memcpy(held_ + held_size_, in, some);
        held_size_ += static_cast<unsigned>(some);
        in += some;
        size -= some;
    }
    if (held_size_ == kBlock && (encrypts_ || size != 0 || !padded_)) {
        if (room < kBlock) return too_small();
        by_vectors(held_, out, kBlock);
        held_size_ = 0;
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
        held_size_ = static_cast<unsigned>(size - whole);
        std::memcpy(held_, in + whole, held_size_);
    }
    *written = total;
    return 1;
}

int Blocks::finish(Bytes* out, std::size_t* written, std::size_t room) noexcept {
    *written = 0;
    if (!buffers() || (held_size_ == 0 && !padded_)) return 1;
    if (encrypts_ && padded_) {  // RFC 5652 6.3
        const auto missing = static_cast<Bytes>(kBlock - held_size_);
        std::memset(held_ + held_size_, missing, missing);
        held_size_ = kBlock;
    }
    if (held_size_ != kBlock)
        return fault(PROV_R_WRONG_FINAL_BLOCK_LENGTH, "the last block is not full");
    if (encrypts_ && room < kBlock) return too_small();
    Bytes last[kBlock];
    by_vectors(held_, last, kBlock);
    std::size_t size = kBlock;
    unsigned wrong = 0;
    if (!encrypts_ && padded_) {
        const unsigned padding = last[kBlock - 1];
        wrong = (padding - 1u) >> 4;  // not from 1 to 16
        for (unsigned i = 0; i < kBlock; ++i) {
            const unsigned counts = 0u - ((15u - i - padding) >> 31);  // it is padding
            wrong |= counts & (last[i] ^ padding);
        }
        size = kBlock - padding;
    }
    if (wrong == 0 && room >= size) {
        std::memcpy(out, last, size);
        *written = size;
        held_size_ = 0;
    }
    OPENSSL_cleanse(last, sizeof last);
    if (wrong != 0) return fault(PROV_R_BAD_DECRYPT, "the padding is wrong");
    return room < size ? too_small() : 1;
}

bool Blocks::by_basis(Bytes*& out, std::size_t& written, std::size_t& room, const Bytes*& in,
                      std::size_t& size, std::size_t count) noexcept {
    if (count == 0) return true;
    std::size_t made = 0;
    if (inner_.basis->update(inner_.context, out, &made, room, in, count) != 1) return false;
    out += made;
    written += made;
    room -= made;
    in += count;
    size -= count;
    position_ += count;
    return true;
}

// An update that the basis does whole.
int Blocks::small(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                  std::size_t size) noexcept {
    if (!hand_down()) return 0;
    if (inner_.basis->update(inner_.context, out, written, room, in, size) != 1) {
        from_ = SIZE_MAX;  // who knows what it has taken
        return 0;
    }
    position_ += size;
    return 1;
}

// An update of a message that the basis has; apart, so that small ones keep to few registers.
[[gnu::noinline]] int Blocks::large(Bytes* out, std::size_t* written, std::size_t room,
                                    const Bytes* in, std::size_t size) noexcept {
    const bool keeps = buffers() && !encrypts_ && padded_;  // the last whole block
    const std::size_t begun = position_ % kBlock;
    const bool holds = begun != 0 || (keeps && position_ != 0);
    // With something held, the output lies a part of a block behind the input.
    if (room < size || entangled(in, out, size, buffers() ? kBlock : 0) ||
        (buffers() && holds && in == out))
        return small(out, written, room, in, size);
    const dael_key* const key = worker_.ready(size);
    if (!key) return small(out, written, room, in, size);
    if (size < settings().threshold) {
        const std::size_t won = won_from(*inner_.basis, encrypts_);
        if (size < won) {
            from_ = std::max(from_, std::min(won, settings().threshold));
            return small(out, written, room, in, size);
        }
    }

    std::size_t total = 0;
    const auto failed = [&] {
        from_ = SIZE_MAX;
        here_ = false;
        broken_ = true;
        return fault(PROV_R_CIPHER_OPERATION_FAILED, dael_last_error());
    };
    *written = 0;
    if (!by_basis(out, total, room, in, size, (kBlock - begun) % kBlock)) return failed();
    if (keeps && holds) {
        // One block more gives out the one that is held; it is then held itself, forgotten with
        // the next IV, and decrypted again as our first.
        const Bytes* const block = in;
        const std::size_t left = size;
        if (!by_basis(out, total, room, in, size, kBlock)) return failed();
        in = block;
        size = left;
        position_ -= kBlock;
    }
    std::size_t whole = whole_of(size);
    if (keeps && whole == size) whole -= kBlock;
    if (!fetch_iv()) return failed();
    const std::size_t done = run(key, in, out, whole);
    // In place what failed may have gone over its own input: nothing can make that good.
    if (done != whole && in == out) return failed();
    here_ = behind_ = true;
    held_size_ = 0;
    position_ += done;
    in += done;
    out += done;
    total += done;
    room -= done;
    size -= done;
    if (size != 0 || keeps) {
        const std::size_t position = position_;
        if (!hand_down()) return failed();
        position_ = position;
        if (!by_basis(out, total, room, in, size, size)) return failed();
    }
    *written = total;
    return 1;
}

int Blocks::update(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                   std::size_t size) noexcept {
    if (here_ && ready_) {
        // Output that overlaps its input is as there, and so is what lags behind it.
        if (!entangled(in, out, size, buffers() ? kBlock : 0) &&
            !(held_size_ != 0 && in == out && buffers()))
            return buffers() ? blocks(out, written, room, in, size)
                             : stream(out, written, room, in, size);
        return small(out, written, room, in, size);
    }
    if (behind_ && !here_ && !hand_down()) return 0;
    if (size >= from_ && !broken_) return large(out, written, room, in, size);
    return small(out, written, room, in, size);
}

int Blocks::final(Bytes* out, std::size_t* written, std::size_t room) noexcept {
    if (here_ && ready_) return finish(out, written, room);
    return hand_down() ? inner_.basis->final(inner_.context, out, written, room) : 0;
}

int Blocks::cipher(Bytes* out, std::size_t* written, std::size_t room, const Bytes* in,
                   std::size_t size) noexcept {
    if (!hand_down()) return 0;
    position_ += size;
    return inner_.basis->cipher(inner_.context, out, written, room, in, size);
}

}  // namespace dael::provider
