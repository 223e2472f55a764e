// SPDX-License-Identifier: Apache-2.0
// Options that the commands which work on files share: where secrets come from, what is
// overwritten, what is shown.
#pragma once

#include <string>

#include "commands.hpp"
#include "io/output.hpp"
#include "io/progress.hpp"

namespace dael::cli {

// --WHAT-file FILE and --WHAT-fd N.
void add_secret(CLI::App& command, const std::string& what, const std::string& file_help,
                SecretSource& source);

struct ShowOptions {
    bool quiet = false, progress = false, no_progress = false, json = false;
    Show show() const {
        if (quiet || no_progress) return Show::never;
        if (!progress) return Show::automatic;
        return json ? Show::json : Show::always;
    }
};
// --force, --sync, --quiet, --progress, --no-progress.
void add_file_options(CLI::App& command, OutputOptions& output, ShowOptions& show);
void add_json(CLI::App& command, ShowOptions& show);  // --json

}  // namespace dael::cli
