// SPDX-License-Identifier: Apache-2.0
#include "parallel_gcm.hpp"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "process.hpp"
#include "settings.hpp"

namespace dael::provider {
namespace {

constexpr std::size_t kUnit = 16;
constexpr std::size_t kMaxChunks = 64;
constexpr std::uint64_t kMaxData = (std::uint64_t{1} << 36) - 32;  // SP 800-38D 5.2.1.1

std::uint64_t load(const unsigned char* at) noexcept {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | at[i];
    return value;
}
void save(std::uint64_t value, unsigned char* at) noexcept {
    for (int i = 7; i >= 0; --i, value >>= 8) at[i] = static_cast<unsigned char>(value);
}
Element element(const unsigned char* block) noexcept {
    return {load(block), load(block + 8)};
}
Element add(Element a, Element b) noexcept {
    return {a.high ^ b.high, a.low ^ b.low};
}
Element lengths(std::uint64_t aad, std::uint64_t data) noexcept {
    return {aad * 8, data * 8};
}

// J0 moved on by so many blocks: its last 32 bits count and carry nothing on (SP 800-38D 6.2).
void start_at(const unsigned char j0[16], std::uint64_t blocks, unsigned char start[16]) noexcept {
    std::memcpy(start, j0, 16);
    std::uint32_t count = 0;
    for (int i = 12; i < 16; ++i) count = count << 8 | j0[i];
    count += static_cast<std::uint32_t>(blocks);
    for (int i = 15; i >= 12; --i, count >>= 8) start[i] = static_cast<unsigned char>(count);
}

}  // namespace

// SP 800-38D 6.3, with masks where it has branches.
Element multiply(Element a, Element b) noexcept {
    Element z;
    for (int half = 0; half < 2; ++half) {
        const std::uint64_t bits = half == 0 ? a.high : a.low;
        for (int i = 63; i >= 0; --i) {
            const std::uint64_t take = 0 - (bits >> i & 1), reduce = 0 - (b.low & 1);
            z.high ^= b.high & take;
            z.low ^= b.low & take;
            b.low = b.low >> 1 | b.high << 63;
            b.high = b.high >> 1 ^ (reduce & 0xe100000000000000u);
        }
    }
    return z;
}

Element power(Element a, std::uint64_t exponent) noexcept {
    Element z{std::uint64_t{1} << 63, 0};  // one
    for (; exponent != 0; exponent >>= 1, a = multiply(a, a))
        if (exponent & 1) z = multiply(z, a);
    return z;
}

// a^(2^128 - 2), by Fermat; of zero it is zero.
Element inverse(Element a) noexcept {
    Element z{std::uint64_t{1} << 63, 0};
    for (int bit = 1; bit < 128; ++bit) {
        a = multiply(a, a);
        z = multiply(z, a);
    }
    return z;
}

ParallelGcm::~ParallelGcm() {
    OPENSSL_cleanse(this, sizeof *this);
}

bool ParallelGcm::begin(dael_engine* engine, const dael_key* key, bool encrypts,
                        const unsigned char* nonce) noexcept {
    engine_ = engine;
    key_ = key;
    encrypts_ = encrypts;
    if (dael_gcm_start(nonce, j0_) != DAEL_OK) return false;
    unsigned char blocks[2 * kUnit] = {};
    std::memcpy(blocks + kUnit, j0_, kUnit);
    const dael_cipher ecb{DAEL_ECB, DAEL_ENCRYPT, 0, 0, 0};
    dael_message message{};
    message.in = message.out = blocks;
    message.size = sizeof blocks;
    const bool ok = dael_run(engine, &ecb, key, &message, nullptr) == DAEL_OK;
    h_ = element(blocks);
    mask_ = element(blocks + kUnit);
    y_ = {};
    aad_size_ = size_ = 0;
    OPENSSL_cleanse(blocks, sizeof blocks);
    return ok;
}

// A block, padded with zeros: X' = (X + B) * H.
void ParallelGcm::absorb(const unsigned char* block, std::size_t size) noexcept {
    unsigned char padded[kUnit] = {};
    std::memcpy(padded, block, size);
    y_ = multiply(add(y_, multiply(element(padded), h_)), h_);
}

void ParallelGcm::aad(const unsigned char* bytes, std::size_t size) noexcept {
    aad_size_ = size;
    for (std::size_t at = 0; at < size; at += kUnit) absorb(bytes + at, std::min(kUnit, size - at));
}

// From the block on that is next or begun.
bool ParallelGcm::cipher(const unsigned char* in, unsigned char* out, std::size_t size,
                         unsigned skip) noexcept {
    const dael_cipher ctr{DAEL_GCM_CTR, DAEL_ENCRYPT, 0, 0, 0};
    dael_message message{};
    message.in = in;
    message.out = out;
    message.size = size;
    message.skip = static_cast<std::uint8_t>(skip);
    start_at(j0_, 1 + size_ / kUnit, message.start);
    dael_ran ran{};
    if (dael_run(engine_, &ctr, key_, &message, &ran) != DAEL_OK) return false;
    note_replaced(ran);
    return true;
}

// Whole blocks, from a whole block on.
bool ParallelGcm::chunks(const unsigned char* in, unsigned char* out, std::size_t size) noexcept {
    // Two for each thread, of a size that makes up for what a start that is no nonce's costs:
    // libipsec-mb asks for the IV that leads to it, which takes an inversion.
    const std::size_t parts =
        std::clamp<std::size_t>(2 * static_cast<std::size_t>(threads()), 1, kMaxChunks);
    const std::size_t even = (size / parts + kUnit) / kUnit * kUnit;
    const std::size_t chunk = std::max(even, settings().threshold * 4 / kUnit * kUnit);
    const std::size_t count = (size + chunk - 1) / chunk;
    dael_message messages[kMaxChunks] = {};
    unsigned char tags[kMaxChunks][kUnit], masks[kMaxChunks][kUnit];
    std::int32_t codes[kMaxChunks];
    // Decryption hashes the chunks as additional data, before it goes over them: the engine's own
    // would want tags to compare.
    for (std::size_t i = 0; i < count; ++i) {
        dael_message& m = messages[i];
        const std::size_t bytes = std::min(chunk, size - i * chunk);
        (encrypts_ ? m.in : m.aad) = in + i * chunk;
        (encrypts_ ? m.size : m.aad_size) = bytes;
        m.out = encrypts_ ? out + i * chunk : nullptr;
        m.tag = tags[i];
        if (encrypts_) {
            start_at(j0_, (size_ + i * chunk) / kUnit, m.start);
        } else {  // any that differ: what they mask never leaves
            m.start[0] = static_cast<std::uint8_t>(i);
            m.start[kUnit - 1] = 1;
        }
        std::memcpy(masks[i], m.start, kUnit);
    }
    const dael_cipher gcm{DAEL_GCM, DAEL_ENCRYPT, kUnit, 0, 0};
    const dael_cipher ecb{DAEL_ECB, DAEL_ENCRYPT, 0, 0, 0};
    dael_message starts{};
    starts.in = starts.out = masks[0];
    starts.size = count * kUnit;
    dael_key_set* set = nullptr;
    dael_ran ran{};
    bool ok = dael_run(engine_, &ecb, key_, &starts, nullptr) == DAEL_OK &&
              dael_key_set_make(engine_, &key_, 1, &set) == DAEL_OK &&
              dael_run_batch(engine_, &gcm, set, messages, count, codes, &ran) == DAEL_OK;
    if (ok) note_replaced(ran);
    for (std::size_t i = 0; ok && i < count; ++i) ok = codes[i] == DAEL_OK;
    dael_key_set_free(set);
    Element y = y_, factor;
    std::size_t of = 0;  // the blocks that `factor` is for
    for (std::size_t i = 0; ok && i < count; ++i) {
        const std::size_t bytes = std::min(chunk, size - i * chunk);
        if (of != bytes / kUnit) factor = power(h_, of = bytes / kUnit);
        const Element length = encrypts_ ? lengths(0, bytes) : lengths(bytes, 0);
        const Element part = add(add(element(tags[i]), element(masks[i])), multiply(length, h_));
        y = add(multiply(y, factor), part);
    }
    if (ok && !encrypts_) ok = cipher(in, out, size, 0);
    OPENSSL_cleanse(masks, sizeof masks);
    OPENSSL_cleanse(tags, sizeof tags);
    OPENSSL_cleanse(&factor, sizeof factor);
    if (!ok) return false;
    y_ = y;
    size_ += size;
    return true;
}

bool ParallelGcm::update(const unsigned char* in, unsigned char* out, std::size_t size) noexcept {
    if (size > kMaxData - size_) return false;
    // The rest of a block that was begun, whole blocks, and the beginning of one more.
    for (int part = 0; part < 3 && size != 0; ++part) {
        const unsigned begun = size_ % kUnit;
        std::size_t count = 0;
        if (part == 1) {
            if (begun != 0) continue;
            count = size / kUnit * kUnit;
            if (count != 0 && !chunks(in, out, count)) return false;
        } else {
            if (part == 0 && begun == 0) continue;
            count = std::min(size, kUnit - begun);
            if (!encrypts_) std::memcpy(begun_ + begun, in, count);
            if (!cipher(in, out, count, begun)) return false;
            if (encrypts_) std::memcpy(begun_ + begun, out, count);
            size_ += count;
            if (size_ % kUnit == 0) absorb(begun_, kUnit);
        }
        in += count;
        out += count;
        size -= count;
    }
    return true;
}

bool ParallelGcm::tag(unsigned char tag[16]) noexcept {
    if (size_ % kUnit != 0) absorb(begun_, size_ % kUnit);
    const Element t = add(add(y_, multiply(lengths(aad_size_, size_), h_)), mask_);
    save(t.high, tag);
    save(t.low, tag + 8);
    return true;
}

// What the tag has more than Y is taken away again: the lengths, and the block that was not full.
void ParallelGcm::adopt(std::uint64_t aad_size, std::uint64_t size, const unsigned char* begun,
                        const unsigned char tag[16]) noexcept {
    aad_size_ = aad_size;
    size_ = size;
    y_ = add(add(element(tag), mask_), multiply(lengths(aad_size, size), h_));
    if (size % kUnit == 0) return;
    unsigned char padded[kUnit] = {};
    std::memcpy(padded, begun, size % kUnit);
    std::memcpy(begun_, begun, size % kUnit);
    y_ = add(multiply(y_, inverse(h_)), multiply(element(padded), h_));
}

ParallelGcm ParallelGcm::copy_for(dael_engine* engine, const dael_key* key) const noexcept {
    ParallelGcm copy(*this);
    copy.engine_ = engine;
    copy.key_ = key;
    return copy;
}

}  // namespace dael::provider
