// SPDX-License-Identifier: Apache-2.0
#include "support/test_batch.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "modes/traits.hpp"

namespace dael::test {

std::vector<std::size_t> KeysFor::size_list(Mode mode) {
    const modes::KeyKinds kinds = modes::key_kinds(mode);
    if (kinds == modes::kXts) return {32, 64};
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < 3; ++i)
        if (kinds >> i & 1) list.push_back(kKeySizes[i]);
    return list;
}

Bytes pattern_key(Mode mode) {
    return pattern(std::min<std::size_t>(KeysFor(mode).sizes.back(), 32));
}

KeyRing::KeyRing(Random& random, std::size_t count, const KeysFor& whom) {
    for (std::size_t k = 0; k < count; ++k)
        raw.push_back(random.bytes(whom.sizes[k % whom.sizes.size()]));
    *this = KeyRing(std::move(raw), whom);
}

KeyRing::KeyRing(std::vector<Bytes> raw_keys, const KeysFor& whom) : raw(std::move(raw_keys)) {
    for (const Bytes& bytes : raw) {
        auto key = whom.xts ? Key::import_xts(bytes) : Key::import(bytes);
        if (!key) throw std::runtime_error(key.error().message);
        keys.push_back(std::move(*key));
    }
}

std::size_t fitting(const Cipher& cipher, std::size_t size) {
    if (whole_blocks_only(cipher.mode)) return size / kBlockSize * kBlockSize;
    if (cipher.mode == Mode::xts && size % cipher.sector < xts::kLeast)
        return size / cipher.sector * cipher.sector;
    return size;
}

Block fitting_start(const Cipher& cipher, Random& random) {
    Block start = random.block();
    const bool counter_from_1 =
        cipher.mode == Mode::gcm_ctr || (cipher.mode == Mode::gcm && random.below(4) != 0);
    if (counter_from_1) std::ranges::copy(Bytes{0, 0, 0, 1}, start.begin() + gcm::kNonceSize);
    if (cipher.mode == Mode::gcm_siv) std::fill(start.begin() + 12, start.end(), std::uint8_t{0});
    if (cipher.mode == Mode::xts) start.back() &= 0x7f;  // far from the last number
    return start;
}

Block fitting_rest(const Cipher& cipher, Random& random) {
    Block rest = has_start_rest(cipher.mode) ? random.block() : Block{};
    if (cipher.mode == Mode::xaes256gcm) std::fill(rest.begin() + 8, rest.end(), std::uint8_t{0});
    return rest;
}

Shape any_shape(const Cipher& cipher, std::size_t size, Random& random) {
    Shape shape{fitting(cipher, size), random.below(16), random.below(16), random.below(3) == 0};
    shape.keystream = makes_keystream(cipher.mode) && random.below(5) == 0;
    shape.in_place = shape.in_place && !shape.keystream;
    if (authenticates(cipher.mode)) shape.aad_size = random.below(3) * random.below(30);
    return shape;
}

TestBatch& TestBatch::add(const Shape& given) {
    Shape shape = given;
    if (!shape.start) shape.start = fitting_start(cipher, random_);
    if (!shape.start_rest) shape.start_rest = fitting_rest(cipher, random_);
    if (!shape.skip)
        shape.skip = static_cast<std::uint8_t>(
            makes_keystream(cipher.mode) ? random_.below(2) * random_.below(16) : 0);
    if (!shape.key) shape.key = static_cast<std::uint32_t>(random_.below(ring_.keys.size()));
    Bytes in = pattern(shape.size, random_.below(251));
    Bytes aad = pattern(shape.aad_size, random_.below(251));
    Message message;
    message.in = shape.keystream ? nullptr : in.data();
    message.size = shape.size;
    message.aad = aad.data();
    message.aad_size = aad.size();
    message.start = *shape.start;
    message.start_rest = *shape.start_rest;
    message.skip = *shape.skip;
    Answer answer = oracle(ring_.raw.at(*shape.key), cipher, message, in);
    if (authenticates(cipher.mode)) answer.tag.resize(cipher.tag);
    const std::size_t at = items_.size() % 16, size = shape.size, aad_size = shape.aad_size;
    items_.push_back({shape, std::move(in), std::move(aad), std::move(answer),
                      Poisoned(size, shape.in_at), Poisoned(size, shape.out_at),
                      Poisoned(aad_size, at), Poisoned(cipher.tag, at)});
    messages.push_back(fill(items_.back()));
    return *this;
}

TestBatch& TestBatch::add_sizes(const std::vector<std::size_t>& sizes) {
    for (const std::size_t size : sizes) add(any_shape(cipher, size, random_));
    return *this;
}

Message TestBatch::fill(Item& item) {
    std::ranges::copy(item.in, item.source.data());
    std::fill_n(item.apart.data(), item.apart.size(),
                Poisoned::kPoison);  // memset(), unlike fill()
    std::ranges::copy(item.aad, item.held_aad.data());
    if (authenticates(cipher.mode) && !seals())
        std::ranges::copy(item.answer.tag, item.tag.data());
    else
        std::ranges::fill(item.tag.span(), Poisoned::kPoison);
    Message message;
    message.in = item.shape.keystream ? nullptr : item.source.data();
    message.out = item.target().data();
    message.size = item.shape.size;
    if (authenticates(cipher.mode)) {
        message.aad = item.held_aad.data();
        message.aad_size = item.aad.size();
        message.tag = item.tag.data();
    }
    message.start = *item.shape.start;
    message.start_rest = *item.shape.start_rest;
    message.skip = *item.shape.skip;
    message.key = *item.shape.key;
    item.code = Code::ok;
    return message;
}

void TestBatch::again() {
    for (std::size_t i = 0; i < items_.size(); ++i) messages[i] = fill(items_[i]);
}

void TestBatch::forge(std::size_t index) {
    Item& item = items_[index];
    std::span<std::uint8_t> victims[] = {item.tag.span(), item.source.span(), item.held_aad.span()};
    auto& victim = victims[random_.below(3)];
    if (victim.empty()) victim = victims[0];
    victim[random_.below(victim.size())] ^= static_cast<std::uint8_t>(1 << random_.below(8));
    // What is there now is what must be left of it.
    item.in = item.source.bytes();
    item.aad = item.held_aad.bytes();
    item.code = Code::authentication;
}

std::string TestBatch::what() const {
    return std::string(name(cipher.mode)) + " " + std::string(name(cipher.direction)) + ", " +
           std::to_string(size()) + " messages";
}

std::string TestBatch::what(std::size_t index) const {
    const Shape& shape = items_[index].shape;
    std::string text = what() + ", message " + std::to_string(index) + " of " +
                       std::to_string(shape.size) + " bytes under " +
                       std::to_string(8 * ring_.raw[*shape.key].size()) + " bits, in at " +
                       std::to_string(shape.in_at) +
                       (shape.in_place ? ", in place" : ", out at " + std::to_string(shape.out_at));
    if (shape.keystream) text += ", keystream";
    if (*shape.skip != 0) text += ", skip " + std::to_string(*shape.skip);
    if (cipher.mode == Mode::xts) text += ", sectors of " + std::to_string(cipher.sector);
    if (authenticates(cipher.mode))
        text +=
            ", AAD of " + std::to_string(shape.aad_size) + ", tag of " + std::to_string(cipher.tag);
    return text;
}

std::string TestBatch::fault() const {
    for (std::size_t i = 0; i < items_.size(); ++i)
        if (auto found = fault(i); !found.empty()) return found;
    return {};
}

std::string TestBatch::fault(std::size_t index) const {
    const Item& item = items_[index];
    const auto say = [&](const std::string& fault) { return what(index) + ": " + fault; };
    if (codes[index] != item.code)
        return say("the code is '" + std::string(describe(codes[index])) + "', should be '" +
                   std::string(describe(item.code)) + "'");
    if (!item.source.intact() || !item.apart.intact() || !item.tag.intact() ||
        !item.held_aad.intact())
        return say("wrote outside of the output");
    if (item.held_aad.bytes() != item.aad) return say("wrote to the AAD");
    if (!item.shape.in_place && item.source.bytes() != item.in) return say("wrote to the input");
    const auto out = item.target().span();
    if (item.code == Code::authentication) {
        if (leaks(item.answer.out, out)) return say("plaintext was left");
        if (item.shape.in_place && !std::ranges::equal(item.in, out))
            return say("the ciphertext is gone");
        if (!item.shape.in_place && !all_are(out, 0) && !all_are(out, Poisoned::kPoison))
            return say("the output is neither wiped nor as it was");
        return {};
    }
    if (item.code != Code::ok) {
        const bool untouched = item.shape.in_place ? std::ranges::equal(item.in, out)
                                                   : all_are(out, Poisoned::kPoison);
        return untouched ? "" : say("it was refused, but its output is not as it was");
    }
    if (const auto wrong = difference(item.answer.out, out); !wrong.empty()) return say(wrong);
    if (!authenticates(cipher.mode)) return {};
    const auto wrong = difference(item.answer.tag, item.tag.span());
    return wrong.empty() ? "" : say("its tag: " + wrong);
}

bool leaks(std::span<const std::uint8_t> plain, std::span<const std::uint8_t> out) {
    constexpr std::size_t kRun = 8;
    if (plain.size() < kRun) return false;
    for (std::size_t at = 0; at + kRun <= plain.size(); at += kRun) {
        const auto run = plain.subspan(at, kRun);
        if (memmem(out.data(), out.size(), run.data(), run.size())) return true;
    }
    return false;
}

}  // namespace dael::test
