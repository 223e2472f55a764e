// SPDX-License-Identifier: Apache-2.0
// What a file looks like: sealed data, age files, what openssl enc makes, Tink's keysets. For
// `info`, for `decrypt`, which must not take one for the other, and for what `open` says of what it
// cannot open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/memory.hpp>
#include <daelstrom/sealed_keys.hpp>

#include "commands.hpp"
#include "io/input.hpp"

namespace dael::cli {

// The head of an age file (age-encryption.org/v1), by its form alone: nothing of it is verified.
struct AgeHead {
    std::vector<std::string> stanzas;  // their types, in order: "X25519", "scrypt"
    std::optional<int> work_factor;    // log2 of scrypt's N
    std::uint64_t size = 0;            // bytes up to the payload
};
// Nothing where `start` is no such head, or does not hold all of one.
std::optional<AgeHead> parse_age_head(HostIn start);

struct Looks {
    enum class As {
        nothing_known,
        empty,
        stream,        // a sealed stream under a key
        sealed,        // an age file with a stream's key, and the stream
        age,           // an age file that is all there is
        armored_age,   // one in letters
        age_identity,  // a secret key of age's
        openssl,       // openssl enc with a password
        keyset,        // Tink's
        encrypted_keyset,
    };
    // A size of segments that a stream of this length may have.
    struct Fit {
        std::uint32_t segment;
        std::uint64_t segments, plain;
    };

    As as = As::nothing_known;
    std::optional<std::uint64_t> size;   // bytes in all, where that can be known
    std::optional<AgeHead> age;          // of `sealed` and `age`
    std::optional<std::uint64_t> plain;  // bytes that an age file holds
    std::uint64_t stream_at = 0;         // where the stream begins
    int key_bits = 0;                    // of the stream's derived key
    std::vector<Fit> fits;               // of the stream, where its size is known
    std::optional<sealed::Keyset> keyset;
};

// By the first bytes alone, of which kTelling are enough; a `stream` is one by its first byte only,
// as one file of random bytes in 128 is. `sealed` is not told from `age`, nor is a keyset seen.
inline constexpr std::size_t kTelling = 64;
Looks::As looks_by(HostIn start);

// All of it. A keyset is read into memory of its own, and is gone from the input then. Errors: io.
Result<Looks> recognise(Input& input);

// What it is, in a few words that fit behind "it looks like"; empty where nothing is known.
std::string in_words(const Looks& looks);
// What `open` says of data that does not begin as it should, with what it looks like instead; any
// other error as it is. Call it before anything was taken out of the input.
Error with_looks(Input& input, Error error);
// The word for programs: "sealed", "age", "unknown".
std::string_view word_for(Looks::As as);

}  // namespace dael::cli
