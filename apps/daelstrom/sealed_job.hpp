// SPDX-License-Identifier: Apache-2.0
// One file sealed or opened: Tink's streaming AEAD, with a lock in front where a passphrase takes
// the key's place (docs/format.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "engine_options.hpp"
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
    // The keys or, where that is not set, the passphrase. Called after everything else that can be
    // refused has been checked, so that nobody types a passphrase in vain.
    std::function<Result<sealed::Keys>()> keys;
    std::function<Result<Secret>()> passphrase;
    std::uint32_t segment = sealed::kLargeSegment;  // sealing with a passphrase
    sealed::Cost cost;                              // the same
    sealed::Cost most = sealed::kUsualLimit;        // opening with one
    struct Range {
        std::uint64_t first = 0;
        std::optional<std::uint64_t> last;  // the byte itself included; none: to the end
    };
    std::optional<Range> range;  // opening: this part of the plaintext
};

Result<> run(const SealedJob& job);

// --cost, for the commands that make a lock, and --max-cost, for those that open one.
CLI::Option* add_cost(CLI::App& command, sealed::Cost& cost);
CLI::Option* add_max_cost(CLI::App& command, sealed::Cost& most);

// Another passphrase for a sealed file, whose payload stays as it is.
struct RewrapJob {
    std::string input = "-";
    OutputOptions output;
    EngineChoice engine;
    Show show = Show::automatic;
    std::function<Result<Secret>()> old_passphrase, new_passphrase;
    sealed::Cost cost;                        // of the new lock
    sealed::Cost most = sealed::kUsualLimit;  // that the old one may take
};

Result<> run(const RewrapJob& job);

}  // namespace dael::cli
