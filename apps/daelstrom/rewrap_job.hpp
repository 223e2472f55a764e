// SPDX-License-Identifier: Apache-2.0
// Another passphrase for a sealed file, whose payload stays as it is.
#pragma once

#include <functional>
#include <string>

#include <daelstrom/sealed.hpp>

#include "engine_options.hpp"
#include "io/output.hpp"
#include "io/progress.hpp"

namespace dael::cli {

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
