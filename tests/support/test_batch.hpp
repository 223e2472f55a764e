// SPDX-License-Identifier: Apache-2.0
// Batches of any mode for tests: messages that own their bytes, under keys of all sizes, and what
// OpenSSL makes of them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <daelstrom/engine.hpp>

#include "support/bytes.hpp"
#include "support/oracle.hpp"

namespace dael::test {

inline constexpr Direction kDirections[] = {Direction::encrypt, Direction::decrypt};
inline constexpr std::size_t kKeySizes[] = {16, 24, 32};

// What keys are for: XTS or any of the modes of SP 800-38, or a mode.
struct KeysFor {
    KeysFor(bool is_xts = false) : xts(is_xts), sizes(size_list(is_xts ? Mode::xts : Mode::gcm)) {}
    KeysFor(Mode mode) : xts(mode == Mode::xts), sizes(size_list(mode)) {}
    KeysFor(const Cipher& cipher) : KeysFor(cipher.mode) {}
    bool xts;
    std::vector<std::size_t> sizes;  // that the mode takes

  private:
    static std::vector<std::size_t> size_list(Mode mode);
};
// The bytes of a key that the mode takes: pattern(32) or, where it takes no such, less of it.
Bytes pattern_key(Mode mode);

// Keys of all sizes in turn.
struct KeyRing {
    KeyRing(Random& random, std::size_t count, const KeysFor& whom = {});
    explicit KeyRing(std::vector<Bytes> raw_keys, const KeysFor& whom = {});
    std::vector<Bytes> raw;
    std::vector<Key> keys;
};

// The largest size up to `size` that a mode takes.
std::size_t fitting(const Cipher& cipher, std::size_t size);
// A start at random that a message of `size` bytes may have: in GCM one in four is of no nonce.
Block fitting_start(const Cipher& cipher, Random& random);
// What goes on behind it, in modes that read that.
Block fitting_rest(const Cipher& cipher, Random& random);

// What a message is like. What is left out is chosen at random, where the mode leaves a choice.
struct Shape {
    std::size_t size = 0;
    std::size_t in_at = 0, out_at = 0;  // distances from a 64-byte boundary
    bool in_place = false;
    bool keystream = false;  // without input
    std::size_t aad_size = 0;
    std::optional<Block> start = {}, start_rest = {};
    std::optional<std::uint8_t> skip = {};
    std::optional<std::uint32_t> key = {};
};
// One with everything but its size at random.
Shape any_shape(const Cipher& cipher, std::size_t size, Random& random);

class TestBatch {
  public:
    TestBatch(Random& random, const KeyRing& ring, const Cipher& the_cipher)
        : cipher(the_cipher), random_(random), ring_(ring) {}

    TestBatch& add(const Shape& shape);
    TestBatch& add_sizes(const std::vector<std::size_t>& sizes);  // any_shape() of each

    // As they were before a run, poison and all, for another one.
    void again();
    // Changes one bit of a message that is decrypted in a mode that authenticates, of its tag,
    // ciphertext or AAD.
    void forge(std::size_t index);
    // That the message will not be touched, and why.
    void expect(std::size_t index, Code code) { items_[index].code = code; }

    // Calls run(cipher, keys, messages, codes), and tells what is wrong with the outcome: empty if
    // nothing is.
    template <class Run>
    std::string fault_of(Run run) {
        codes.assign(messages.size(), Code::ok);
        if (const auto done = run(cipher, std::span<const Key>(ring_.keys),
                                  std::span<const Message>(messages), std::span<Code>(codes));
            !done)
            return what() + ": " + done.error().message;
        return fault();
    }
    std::string fault() const;
    std::string fault(std::size_t index) const;
    std::string what() const;
    std::string what(std::size_t index) const;
    std::size_t size() const { return messages.size(); }

    const Cipher cipher;
    std::vector<Message> messages;  // may be changed, to see what becomes of it
    std::vector<Code> codes;

  private:
    struct Item {
        Shape shape;
        Bytes in, aad;
        Answer answer;  // the tag cut to the cipher's size
        Poisoned source, apart, held_aad, tag;
        Code code = Code::ok;
        Poisoned& target() { return shape.in_place ? source : apart; }
        const Poisoned& target() const { return shape.in_place ? source : apart; }
    };
    bool seals() const { return cipher.direction == Direction::encrypt; }
    Message fill(Item& item);

    Random& random_;
    const KeyRing& ring_;
    std::vector<Item> items_;
};

// Whether 8 bytes of `plain` in a row stand anywhere in `out`.
bool leaks(std::span<const std::uint8_t> plain, std::span<const std::uint8_t> out);

}  // namespace dael::test
