// SPDX-License-Identifier: Apache-2.0
#include "support/vectors.hpp"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace dael::test {
namespace {

int nibble(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw std::runtime_error(std::string("not a hex digit: ") + c);
}

Mode mode_of(const std::string& text) {
    if (const auto mode = mode_by_name(text)) return *mode;
    throw std::runtime_error("unknown mode " + text);
}

nlohmann::json read_json(const std::string& file) {
    const auto path = vectors_folder() / file;
    std::ifstream stream(path);
    if (!stream) throw std::runtime_error("cannot open " + path.string());
    auto json = nlohmann::json::parse(stream);
    if (json.at("source").get<std::string>().empty())
        throw std::runtime_error(path.string() + " does not say where its vectors are from");
    return json;
}

Bytes hex_of(const nlohmann::json& object, const char* field) {
    return from_hex(object.at(field).get<std::string>());
}

void trim(std::string& text) {
    const auto end = text.find_last_not_of(" \t\r");
    text.erase(end == text.npos ? 0 : end + 1);
}

// NIST's response files: [ENCRYPT] or [DECRYPT], and of each vector COUNT and then its fields,
// which `set` takes or does not know.
template <class Vector>
std::vector<Vector> read_rsp(
    const std::filesystem::path& file,
    const std::function<Vector(Direction direction, const std::string& number)>& begin,
    const std::function<bool(Vector& vector, const std::string& field, const std::string& value)>&
        set) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error("cannot open " + file.string());
    std::vector<Vector> vectors;
    std::optional<Direction> direction;
    std::string line;
    while (std::getline(stream, line)) {
        trim(line);
        if (line.empty() || line[0] == '#') continue;
        if (line == "[ENCRYPT]" || line == "[DECRYPT]") {
            direction = line == "[ENCRYPT]" ? Direction::encrypt : Direction::decrypt;
            continue;
        }
        const auto equals = line.find(" = ");
        if (equals == line.npos || !direction)
            throw std::runtime_error(file.string() + ": what is '" + line + "'?");
        const std::string field = line.substr(0, equals), value = line.substr(equals + 3);
        if (field == "COUNT") {
            vectors.push_back(begin(*direction, value));
            continue;
        }
        if (vectors.empty()) throw std::runtime_error(file.string() + ": no COUNT before " + field);
        if (!set(vectors.back(), field, value))
            throw std::runtime_error(file.string() + ": unknown field " + field);
    }
    return vectors;
}

}  // namespace

Bytes from_hex(std::string_view hex) {
    if (hex.size() % 2 != 0) throw std::runtime_error("an odd number of hex digits");
    Bytes bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<std::uint8_t>(nibble(hex[i]) << 4 | nibble(hex[i + 1])));
    return bytes;
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

Block to_block(std::span<const std::uint8_t> bytes) {
    Block block{};
    if (bytes.size() == block.size())
        std::ranges::copy(bytes, block.begin());
    else if (!bytes.empty())
        throw std::runtime_error("a block of " + std::to_string(bytes.size()) + " bytes");
    return block;
}

std::filesystem::path vectors_folder() {
    const char* folder = std::getenv("DAEL_TEST_DATA");
    return folder ? folder : DAEL_TEST_DATA;
}

std::vector<Vector> load_json(const std::string& file) {
    std::vector<Vector> vectors;
    const auto json = read_json(file);
    for (const auto& object : json.at("vectors"))
        vectors.push_back({object.at("name"), mode_of(object.at("mode")), std::nullopt,
                           hex_of(object, "key"), hex_of(object, "iv"), hex_of(object, "plaintext"),
                           hex_of(object, "ciphertext")});
    return vectors;
}

std::vector<MonteCarlo> load_monte_carlo(const std::string& file) {
    std::vector<MonteCarlo> tests;
    const auto json = read_json(file);
    for (const auto& object : json.at("tests")) {
        MonteCarlo test{
            mode_of(object.at("mode")),
            object.at("direction") == "encrypt" ? Direction::encrypt : Direction::decrypt,
            hex_of(object, "key"),
            to_block(hex_of(object, "iv")),
            to_block(hex_of(object, "input")),
            object.at("first"),
            {}};
        for (const auto& [record, output] : object.at("outputs").items())
            test.outputs[std::stoi(record)] = from_hex(output.get<std::string>());
        tests.push_back(std::move(test));
    }
    return tests;
}

std::vector<Vector> load_rsp(const std::filesystem::path& file, Mode mode) {
    return read_rsp<Vector>(
        file,
        [&](Direction direction, const std::string& number) {
            return Vector{
                file.filename().string() + " " + std::string(name(direction)) + " " + number,
                mode,
                direction,
                {},
                {},
                {},
                {}};
        },
        [](Vector& vector, const std::string& field, const std::string& value) {
            if (field == "KEY")
                vector.key = from_hex(value);
            else if (field == "IV")
                vector.iv = from_hex(value);
            else if (field == "PLAINTEXT")
                vector.plaintext = from_hex(value);
            else if (field == "CIPHERTEXT")
                vector.ciphertext = from_hex(value);
            else
                return false;
            return true;
        });
}

std::vector<XtsVector> load_xts_json(const std::string& file) {
    std::vector<XtsVector> vectors;
    const auto json = read_json(file);
    for (const auto& object : json.at("vectors")) {
        vectors.push_back({object.at("name"), std::nullopt, hex_of(object, "key"),
                           hex_of(object, "number"), hex_of(object, "plaintext"),
                           hex_of(object, "ciphertext"), 0});
        vectors.back().bits = 8 * vectors.back().plaintext.size();
    }
    return vectors;
}

// The number comes as `i`, 16 bytes, or as DataUnitSeqNumber, a decimal.
std::vector<XtsVector> load_xts_rsp(const std::filesystem::path& file) {
    return read_rsp<XtsVector>(
        file,
        [&](Direction direction, const std::string& number) {
            return XtsVector{file.parent_path().filename().string() + "/" +
                                 file.filename().string() + " " + std::string(name(direction)) +
                                 " " + number,
                             direction,
                             {},
                             {},
                             {},
                             {},
                             0};
        },
        [](XtsVector& vector, const std::string& field, const std::string& value) {
            if (field == "DataUnitLen") {
                vector.bits = std::stoul(value);
            } else if (field == "Key") {
                vector.key = from_hex(value);
            } else if (field == "i") {
                vector.number = from_hex(value);
            } else if (field == "DataUnitSeqNumber") {
                vector.number.resize(16);
                for (std::size_t i = 0, rest = std::stoull(value); i < 8; ++i, rest >>= 8)
                    vector.number[i] = static_cast<std::uint8_t>(rest);
            } else if (field == "PT") {
                vector.plaintext = from_hex(value);
            } else if (field == "CT") {
                vector.ciphertext = from_hex(value);
            } else {
                return false;
            }
            return true;
        });
}

std::vector<GcmVector> load_gcm_json(const std::string& file) {
    std::vector<GcmVector> vectors;
    const auto json = read_json(file);
    for (const auto& object : json.at("vectors"))
        vectors.push_back({object.at("name"), hex_of(object, "key"), hex_of(object, "iv"),
                           hex_of(object, "aad"), hex_of(object, "plaintext"),
                           hex_of(object, "ciphertext"), hex_of(object, "tag"), false});
    return vectors;
}

std::vector<GcmVector> load_gcm_rsp(const std::filesystem::path& file) {
    std::ifstream stream(file);
    if (!stream) throw std::runtime_error("cannot open " + file.string());
    std::vector<GcmVector> vectors;
    std::string line;
    while (std::getline(stream, line)) {
        trim(line);
        if (line.empty() || line[0] == '#' || line[0] == '[') continue;
        if (line == "FAIL" && !vectors.empty()) {
            vectors.back().refused = true;
            continue;
        }
        const auto equals = line.find(" =");
        if (equals == line.npos)
            throw std::runtime_error(file.string() + ": what is '" + line + "'?");
        const std::string field = line.substr(0, equals);
        const std::string value = line.substr(std::min(equals + 3, line.size()));
        if (field == "Count") {
            vectors.emplace_back().name =
                file.filename().string() + ", vector " + std::to_string(vectors.size());
            continue;
        }
        if (vectors.empty()) throw std::runtime_error(file.string() + ": no Count before " + field);
        GcmVector& vector = vectors.back();
        Bytes* const place = field == "Key"   ? &vector.key
                             : field == "IV"  ? &vector.iv
                             : field == "AAD" ? &vector.aad
                             : field == "PT"  ? &vector.plaintext
                             : field == "CT"  ? &vector.ciphertext
                             : field == "Tag" ? &vector.tag
                                              : nullptr;
        if (!place) throw std::runtime_error(file.string() + ": unknown field " + field);
        *place = from_hex(value);
    }
    return vectors;
}

AeadVectors load_aead_json(const std::string& file) {
    const auto json = read_json(file);
    AeadVectors all;
    for (const auto& v : json.at("vectors"))
        all.vectors.push_back({v.at("name").get<std::string>(),
                               mode_of(v.at("mode").get<std::string>()), hex_of(v, "key"),
                               hex_of(v, "nonce"), hex_of(v, "aad"), hex_of(v, "plaintext"),
                               hex_of(v, "ciphertext"), hex_of(v, "tag128"), hex_of(v, "tag256"),
                               v.at("refused").get<bool>()});
    all.digests = json.at("digests").get<std::map<std::string, std::string>>();
    return all;
}

}  // namespace dael::test
