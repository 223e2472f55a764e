// SPDX-License-Identifier: Apache-2.0
// One file sealed or opened: Tink's streaming AEAD, with an envelope in front that holds the key
// for recipients or a passphrase (docs/format.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "engine_options.hpp"
#include "file_keys.hpp"
#include "io/input.hpp"
#include "io/output.hpp"
#include "io/progress.hpp"

namespace dael::cli {

struct SealedJob {
    bool seals = true;
    std::string input = "-";
    OutputOptions output;
    EngineChoice engine;
    Show show = Show::automatic;
    std::vector<std::uint8_t> aad;
    std::shared_ptr<KeySource> keys;
    struct Range {
        std::uint64_t first = 0;
        std::optional<std::uint64_t> last;  // the byte itself included; none: to the end
    };
    std::optional<Range> range;  // opening: this part of the plaintext
};

Result<> run(const SealedJob& job);

// --cost, for the commands that make an envelope for a passphrase, and --max-cost, for those that
// open one.
CLI::Option* add_cost(CLI::App& command, int& work);
CLI::Option* add_max_cost(CLI::App& command, int& most);

// -r and -R, for the commands that make an envelope, and -i, for those that open one.
struct RecipientOptions {
    std::vector<std::string> recipients, files;
    bool given() const { return !recipients.empty() || !files.empty(); }
    bool from_stdin() const;
};
void add_recipients(CLI::App& command, RecipientOptions& options);
CLI::Option* add_identities(CLI::App& command, std::vector<std::string>& files);

// Another envelope for a sealed file, whose stream stays as it is.
struct RewrapJob {
    std::string input = "-";
    OutputOptions output;
    Show show = Show::automatic;
    // What opens the old envelope and what the new one is for: those that are not set are
    // passphrases.
    std::function<Result<sealed::Identities>()> identities;
    std::function<Result<sealed::Recipients>()> recipients;
    std::function<Result<Secret>()> old_passphrase, new_passphrase;
    int work = sealed::kUsualWork;       // of a new passphrase
    int most = sealed::kUsualWorkLimit;  // that the old one may take
};

Result<> run(const RewrapJob& job);

}  // namespace dael::cli
