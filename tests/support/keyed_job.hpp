// SPDX-License-Identifier: Apache-2.0
// Batches with a key for each message, for tests: messages that own their bytes, and what OpenSSL
// makes of them.
#pragma once

#include <span>
#include <vector>

#include <daelstrom/engine.hpp>

#include "support/bytes.hpp"
#include "support/oracle.hpp"

namespace dael::test {

// Keys of all sizes in turn.
struct KeyRing {
    KeyRing(Random& random, std::size_t count) {
        for (std::size_t k = 0; k < count; ++k) {
            raw.push_back(random.bytes(16 + 8 * (k % 3)));
            keys.push_back(std::move(*Key::import(raw.back())));
        }
    }
    std::vector<Bytes> raw;
    std::vector<Key> keys;
};

// Messages of given sizes for counter mode (Mode::ctr) or CBC encryption, every one under a key
// chosen at random, with outputs of every alignment in poison.
struct KeyedJob {
    KeyedJob(Random& random, const KeyRing& ring, Mode the_mode,
             const std::vector<std::size_t>& sizes, bool in_place = false)
        : mode(the_mode), results(sizes.size(), Code::internal) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::size_t size = mode == Mode::cbc ? sizes[i] / 16 * 16 : sizes[i];
            const auto key = static_cast<std::uint32_t>(random.below(ring.keys.size()));
            Block iv = random.block();
            if (mode == Mode::ctr) std::ranges::copy(Bytes{0, 0, 0, 1}, iv.begin() + kNonceSize);
            plain.push_back(random.bytes(size));
            expected.push_back(oracle(ring.raw[key], {mode, Direction::encrypt, iv, 0}, plain[i]));
            out.push_back(in_place ? Poisoned(plain[i], i % 16) : Poisoned(size, i % 16));
            cbc.push_back({nullptr, nullptr, size, iv, key});
        }
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            cbc[i].in = in_place ? out[i].data() : plain[i].data();
            cbc[i].out = out[i].data();
            GcmMessage& m = ctr.emplace_back();
            m.in = cbc[i].in;
            m.out = cbc[i].out;
            m.size = cbc[i].size;
            m.key = cbc[i].key;
            std::copy_n(cbc[i].iv.begin(), kNonceSize, m.nonce.begin());
        }
    }
    Result<Ran> run(Engine& engine, const KeySet& keys) {
        return mode == Mode::ctr ? engine.ctr_batch(keys, ctr, results)
                                 : engine.cbc_encrypt_batch(keys, cbc, results);
    }
    // What is wrong with a message, empty if nothing is.
    std::string fault(std::size_t i) {
        if (results[i] != Code::ok) return "result " + std::string(describe(results[i]));
        if (!out[i].intact()) return "written outside";
        return difference(expected[i], out[i].bytes());
    }

    const Mode mode;
    std::vector<Bytes> plain, expected;
    std::vector<Poisoned> out;
    std::vector<KeyedMessage> cbc;
    std::vector<GcmMessage> ctr;  // the same messages
    std::vector<Code> results;
};

}  // namespace dael::test
