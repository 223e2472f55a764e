// SPDX-License-Identifier: Apache-2.0
// `calibrate`: measures this machine, so that `auto` chooses by its figures instead of built-in
// ones.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include <daelstrom/plan.hpp>

#include "commands.hpp"
#include "io/signals.hpp"
#include "io/warnings.hpp"

namespace dael::cli {
namespace {

void show_progress(std::string_view what, double done) {
    std::fprintf(stderr, "\r%3.0f%%  %.*s\x1b[K", 100 * done, static_cast<int>(what.size()),
                 what.data());
}

Result<> run_calibration(bool quiet) {
    const bool show = !quiet && ::isatty(STDERR_FILENO);
    auto calibration = calibrate(show ? CalibrationProgress(show_progress) : CalibrationProgress());
    if (show) std::fputs("\r\x1b[K", stderr);
    if (!calibration) return std::move(calibration).error();
    for (const std::string& device : calibration->left_out)
        if (!quiet) warn("left out " + device);
    DoomedFile whole;
    whole.enter();  // signals wait: the library's hidden name is not known here
    auto path = store(*calibration);
    whole.leave();
    if (!path) return std::move(path).error();
    if (!quiet)
        std::cout << "Measured " << calibration->machine << ", stored in " << *path
                  << "\n`daelstrom explain --size 64M` shows what follows from it.\n";
    return {};
}

}  // namespace

void add_calibrate(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "calibrate");
    const auto quiet = std::make_shared<bool>(false);
    command->add_flag("-q,--quiet", *quiet, "Say nothing unless it fails");
    command->callback(
        [&context, quiet] { context.action = [quiet] { return run_calibration(*quiet); }; });
}

}  // namespace dael::cli
