// SPDX-License-Identifier: Apache-2.0
// Another envelope for a sealed file, whose stream stays as it is.
#pragma once

#include <functional>
#include <string>

#include <daelstrom/sealed.hpp>

#include "commands.hpp"
#include "io/output.hpp"
#include "io/progress.hpp"

namespace dael::cli {

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
