// SPDX-License-Identifier: Apache-2.0
// Test vectors from files: our JSON ones (tests/vectors) and NIST's response files.
// Readers throw std::runtime_error with the file's name when a file is missing or is not what it
// should be: a test without its vectors fails.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/message.hpp>

#include "support/bytes.hpp"

namespace dael::test {

Bytes from_hex(std::string_view hex);
std::string to_hex(std::span<const std::uint8_t> bytes);
Block to_block(std::span<const std::uint8_t> bytes);

// One known answer. Without a direction it holds both ways.
struct Vector {
    std::string name;
    Mode mode = Mode::ecb;
    std::optional<Direction> direction;
    Bytes key, iv, plaintext, ciphertext;
};

// One Monte Carlo test: the seed of record `first`, and the outputs of some records (AESAVS 6.4).
struct MonteCarlo {
    Mode mode = Mode::ecb;
    Direction direction = Direction::encrypt;
    Bytes key;
    Block iv{}, input{};
    int first = 0;
    std::map<int, Bytes> outputs;  // by record number
};

// One XTS known answer: key1 and key2 as one, the sector's number as 16 bytes, little-endian.
struct XtsVector {
    std::string name;
    std::optional<Direction> direction;  // without one it holds both ways
    Bytes key, number, plaintext, ciphertext;
    std::size_t bits = 0;  // of data; CAVP also has lengths that are no multiple of 8
};

// One GCM known answer; the tag is as long as the vector has it.
struct GcmVector {
    std::string name;
    Bytes key, iv, aad, plaintext, ciphertext, tag;
    bool refused = false;  // opening must fail, and there is no plaintext
};

// One known answer of AEGIS with both its tags, or of XAES-256-GCM or GCM-SIV with one; and digests
// of many, by mode and bits of AEGIS's tag, or bytes of the others' key.
struct AeadVector {
    std::string name;
    Mode mode = Mode::aegis128l;
    Bytes key, nonce, aad, plaintext, ciphertext, tag128, tag256;
    bool refused = false;  // opening must fail, and there is no plaintext
};
struct AeadVectors {
    std::vector<AeadVector> vectors;
    std::map<std::string, std::string> digests;  // "aegis128l 256"
};

// The folder of our vectors: DAEL_TEST_DATA of the environment, else where the source tree lies.
std::filesystem::path vectors_folder();
std::vector<Vector> load_json(const std::string& file);
std::vector<MonteCarlo> load_monte_carlo(const std::string& file);

// A response file of NIST's CAVP, or one in the same form.
std::vector<Vector> load_rsp(const std::filesystem::path& file, Mode mode);

std::vector<XtsVector> load_xts_json(const std::string& file);
std::vector<XtsVector> load_xts_rsp(const std::filesystem::path& file);

std::vector<GcmVector> load_gcm_json(const std::string& file);
std::vector<GcmVector> load_gcm_rsp(const std::filesystem::path& file);

AeadVectors load_aead_json(const std::string& file);

}  // namespace dael::test
