// SPDX-License-Identifier: Apache-2.0
// Many files in one call: small ones side by side, a thread each, large ones one after another with
// all threads. What fails does not keep the others from being done.
#pragma once

#include <functional>
#include <string>

#include "file_plan.hpp"
#include "io/buffers.hpp"
#include "io/progress.hpp"
#include "sealed_file.hpp"

namespace dael::cli {

struct ManyOptions {
    std::string command, verb;  // "seal", "sealed"
    Show show = Show::automatic;
    bool json = false;  // tells of each file that was done, on standard output
    unsigned threads = 1;
    bool whole_sizes = true;  // the size of a file says how much there is to do
};

// Does one file; called from several threads at once.
using FileWork = std::function<Result<FileDone>(const PlannedFile&, Buffers&, Progress&)>;

// Does all that was planned, and tells of each file that failed, on standard error. Errors: that of
// a single file; of several, how many failed.
Result<> do_files(const FilePlan& plan, const ManyOptions& options, const FileWork& work);

}  // namespace dael::cli
