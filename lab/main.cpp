// SPDX-License-Identifier: Apache-2.0
// The program `daelstrom-lab`, which `daelstrom lab` starts. Exit status: 0 done, 1 it failed, 2
// the command line is wrong.
#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <unistd.h>

#include "io/signals.hpp"
#include "io/text.hpp"
#include "lab/exhibits.hpp"
#include "lab/opengl/exhibit.hpp"
#include "lab/study.hpp"

namespace dael::lab {
namespace {

struct Arguments {
    std::string action;
    std::vector<std::string> names;
    std::string folder, output;
    bool quick = false, quiet = false;
    int repeats = 0;
    std::uint64_t scale = 1;
};

Error usage(std::string message) {
    return {Code::invalid_argument, std::move(message)};
}

std::filesystem::path own_folder() {
    std::error_code status;
    return std::filesystem::read_symlink("/proc/self/exe", status).parent_path();
}

Result<> list() {
    for (const Study& study : studies()) {
        std::string line(study.name);
        line.resize(13, ' ');
        std::cout << line << study.question << " (" << study.origin << ")\n";
    }
    return {};
}

Result<> run_studies(const Arguments& arguments) {
    if (arguments.names.empty())
        return usage("lab run: which study? `daelstrom lab list` names them; `all` is all of them");
    std::vector<const Study*> chosen;
    for (const std::string& name : arguments.names) {
        if (name == "all") {
            for (const Study& study : studies()) chosen.push_back(&study);
            continue;
        }
        DAEL_LET(study, study_by_name(name));
        chosen.push_back(study);
    }
    Settings settings{arguments.quick, arguments.scale, arguments.repeats, arguments.folder, {}};
    std::error_code status;
    if (!settings.folder.empty()) {
        std::filesystem::create_directories(settings.folder, status);
        if (status || access(settings.folder.c_str(), W_OK) != 0)
            return Error{Code::io, "cannot write into " + app::in_quotes(arguments.folder) +
                                       "; give --out another folder"};
    }
    settings.program = own_folder() / "daelstrom";
    if (!std::filesystem::exists(settings.program, status)) settings.program.clear();
    const bool show = !arguments.quiet && isatty(STDERR_FILENO) == 1;
    for (const Study* study : chosen) {
        const auto report = run(*study, settings, [show](const std::string& what) {
            if (show) std::fprintf(stderr, "\r\033[K%s", what.c_str());
        });
        if (show) std::fputs("\r\033[K", stderr);
        if (!report)
            return Error{report.code(), std::string(study->name) + ": " + report.error().message};
        std::cout << measure::to_table(*report, study->columns()) << std::flush;
        if (!settings.folder.empty())
            DAEL_TRY(write_document(settings.folder / (std::string(study->name) + ".json"),
                                    measure::to_json(*report)));
    }
    return {};
}

// What Python runs: its package from the build's folder, where there is one, and never from the
// folder in which somebody happens to be.
constexpr const char* kStart = R"python(
import sys
sys.path[:] = [folder for folder in sys.argv[1:2] + sys.path if folder]
try:
    from daelstrom_lab.__main__ import main
except ModuleNotFoundError as fault:
    sys.exit(f"daelstrom: the report is made by Python, and {sys.executable} has no {fault.name!r}; "
             "build it in a clone: cmake --build --preset dev --target python_package")
sys.exit(main(sys.argv[2:]))
)python";

// The page is made by Python; comes back only where that cannot be started.
Result<> report(const Arguments& arguments) {
    if (arguments.names.size() != 1)
        return usage("lab report takes one folder, which lab run --out has written");
    if (arguments.output.empty()) return usage("lab report: into which file? give -o FILE");
    std::string python = "python3", package;
#ifdef DAEL_LAB_PYTHON
    std::error_code status;
    const std::filesystem::path built = own_folder().parent_path() / "python";
    if (std::filesystem::exists(built / "daelstrom_lab", status) &&
        access(DAEL_LAB_PYTHON, X_OK) == 0) {
        python = DAEL_LAB_PYTHON;
        package = built.string();
    }
#endif
    std::string output = "--output=" + arguments.output, folder = arguments.names.front();
    std::string start = kStart, c = "-c", word = "report", end = "--";
    const std::array argv{python.data(),  c.data(),      start.data(),
                          package.data(), word.data(),   output.data(),
                          end.data(),     folder.data(), static_cast<char*>(nullptr)};
    execvp(python.c_str(), argv.data());
    return Error{Code::io, "lab report needs Python; cannot start " + app::in_quotes(python) +
                               ": " + std::strerror(errno)};
}

Result<> act(const Arguments& arguments) {
    if (arguments.action != "run" &&
        (!arguments.folder.empty() || arguments.quick || arguments.repeats || arguments.scale != 1))
        return usage("--out, --quick, --repeats and --scale are for lab run; leave them out");
    if (arguments.action != "report" && !arguments.output.empty())
        return usage("-o is for lab report; leave it out");
    if (arguments.action == "list")
        return arguments.names.empty() ? list() : usage("lab list takes no names");
    if (arguments.action == "run") return run_studies(arguments);
    if (arguments.action == "report") return report(arguments);
    if (arguments.action != "compare")
        return usage("lab: no " + app::in_quotes(arguments.action) +
                     "; there are list, run, compare, report");
    if (arguments.names.size() != 2) return usage("lab compare takes two runs");
    DAEL_LET(text, compare(arguments.names[0], arguments.names[1]));
    std::cout << text;
    return {};
}

int complain(const std::string& message, int status) {
    std::fprintf(stderr, "daelstrom: %s\n", app::on_one_line(message).c_str());
    return status;
}

int run_words(int argc, char** argv) {
    Arguments arguments;
    CLI::App app("The studies of daelstrom's lab", "daelstrom-lab");
    app.add_option("ACTION", arguments.action, "list, run, compare or report")->required();
    app.add_option("NAME", arguments.names, "Studies to run, two runs to compare, or a folder");
    app.add_option("--out", arguments.folder, "Write documents into this folder");
    app.add_option("-o,--output", arguments.output, "Write the report into this file");
    app.add_flag("--quick", arguments.quick, "Small data, few points, few samples");
    app.add_option("--repeats", arguments.repeats, "Samples of each figure")
        ->check(CLI::Range(1, 10000));
    app.add_option("--scale", arguments.scale,
                   "Divide the largest data of sizes, files, devices and generations by this")
        ->check(CLI::Range(1, 1 << 20));
    app.add_flag("-q,--quiet", arguments.quiet, "No progress on standard error");
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& request) {
        return app.exit(request);
    } catch (const CLI::ParseError& error) {
        return complain(error.what(), 2);
    }
    const auto done = act(arguments);
    if (!done) return complain(done.error().message, done.code() == Code::invalid_argument ? 2 : 1);
    return std::cout.flush() ? 0 : complain("cannot write to standard output", 1);
}

}  // namespace
}  // namespace dael::lab

int main(int argc, char** argv) try {
    dael::opengl::enter_into_list();
    if (argc > 1 && dael::cli::is_exhibit(argv[1])) return dael::cli::run_exhibit(argc, argv);
    dael::app::install_signal_handlers();
    return dael::lab::run_words(argc, argv);
} catch (const std::exception& fault) {
    return dael::lab::complain(std::string("unexpected: ") + fault.what(), 1);
}
