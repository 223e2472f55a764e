// SPDX-License-Identifier: Apache-2.0
// Files that come from elsewhere: `Salted__` ones and those with the IV in front. Whatever is in
// them, decryption succeeds or refuses with an error of the input's kind, and what it makes of a
// file encrypts back to that file.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cipher_job.hpp"
#include "fuzz/fuzz.hpp"
#include "recognise.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;
namespace fs = std::filesystem;

const fs::path& folder() {
    static const fs::path path = [] {
        const fs::path made =
            fs::temp_directory_path() / ("fuzz_container." + std::to_string(getpid()));
        fs::create_directories(made);
        std::atexit([] {
            fs::remove_all(fs::temp_directory_path() /
                           ("fuzz_container." + std::to_string(getpid())));
        });
        return made;
    }();
    return path;
}

Bytes contents(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

Result<app::Secret> password() {
    auto secret = value(app::Secret::create(), "a secret");
    for (const char c : std::string("maelstrom")) secret.append(static_cast<std::uint8_t>(c));
    return secret;
}

cli::CipherJob job(FuzzedDataProvider& data) {
    cli::CipherJob made;
    made.direction = Direction::decrypt;
    // What the program offers for files with a header.
    made.mode = data.PickValueInArray({Mode::ecb, Mode::cbc, Mode::cfb, Mode::ofb, Mode::ctr});
    made.padding = data.ConsumeBool();
    made.input = folder() / "in";
    made.output = {.path = folder() / "out", .overwrite = true};
    made.engine.backend = "openssl";
    made.show = app::Show::never;
    made.key = []() -> Result<app::Secret> {
        auto key = value(app::Secret::create(16), "a secret");
        std::ranges::fill(key.fill(), std::uint8_t{0x2a});
        return key;
    };
    if (data.ConsumeBool())
        made.salted = cli::CipherJob::Salted{password, 1, 64 * data.ConsumeIntegralInRange(2, 4)};
    return made;
}

// What a file looks like is told without looking beyond it.
void check_looks(const Bytes& file) {
    (void)cli::looks_by(file);
    const auto head = cli::parse_age_head(file);
    if (!head) return;
    require(head->size <= file.size() && file[head->size - 1] == '\n', "a head lies in its file");
    require(!head->stanzas.empty(), "somebody can open it");
    require(!cli::parse_age_head(HostIn(file).first(head->size - 1)), "less of it is none");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    cli::CipherJob decrypt = job(data);
    Bytes file = data.ConsumeRemainingBytes<std::uint8_t>();
    check_looks(file);
    if (decrypt.salted && !file.empty() && file[0] % 4 != 0) {  // most of them get past the magic
        const std::string magic = "Salted__";
        file.insert(file.begin(), magic.begin(), magic.end());
    }
    std::ofstream(decrypt.input, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
    fs::remove(*decrypt.output.path);

    const auto done = cli::run(decrypt);
    if (!done) {
        require(done.code() == Code::bad_format || done.code() == Code::bad_padding ||
                    done.code() == Code::ragged_length,
                "refused for what the input is: " + done.error().message);
        require(!fs::exists(*decrypt.output.path), "a failure leaves nothing behind");
        return 0;
    }
    if (decrypt.salted || takes_iv(decrypt.mode))
        require(file.size() >= kBlockSize, "there was a header");
    if (decrypt.salted) return 0;  // a new salt each time

    // The same IV, given by hand: the same ciphertext without the part in front.
    cli::CipherJob encrypt = decrypt;
    encrypt.direction = Direction::encrypt;
    std::swap(encrypt.input, *encrypt.output.path);
    const std::size_t front = takes_iv(decrypt.mode) ? kBlockSize : 0;
    if (front) {
        encrypt.iv.emplace();
        std::copy_n(file.begin(), kBlockSize, encrypt.iv->begin());
    }
    value(cli::run(encrypt), "encrypting what was decrypted");
    require(contents(*encrypt.output.path) ==
                Bytes(file.begin() + static_cast<std::ptrdiff_t>(front), file.end()),
            "what was decrypted encrypts back");
    return 0;
}
