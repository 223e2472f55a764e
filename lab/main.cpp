// SPDX-License-Identifier: Apache-2.0
// The program `daelstrom-lab`, which `daelstrom lab` starts. Exit status: 0 done, 1 it failed, 2
// the command line is wrong.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>

#include <unistd.h>

#include "io/text.hpp"
#include "lab/study.hpp"

namespace dael::lab {
namespace {

struct Arguments {
    std::string action;
    std::vector<std::string> names;
    std::string folder;
    bool quick = false, quiet = false;
    int repeats = 0;
    std::uint64_t scale = 1;
};

Error usage(std::string message) {
    return {Code::invalid_argument, std::move(message)};
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
    settings.program =
        std::filesystem::read_symlink("/proc/self/exe", status).parent_path() / "daelstrom";
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

Result<> act(const Arguments& arguments) {
    if (arguments.action != "run" &&
        (!arguments.folder.empty() || arguments.quick || arguments.repeats || arguments.scale != 1))
        return usage("--out, --quick, --repeats and --scale are for lab run; leave them out");
    if (arguments.action == "list")
        return arguments.names.empty() ? list() : usage("lab list takes no names");
    if (arguments.action == "run") return run_studies(arguments);
    if (arguments.action != "compare")
        return usage("lab: no " + app::in_quotes(arguments.action) +
                     "; there are list, run, compare");
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
    app.add_option("ACTION", arguments.action, "list, run or compare")->required();
    app.add_option("NAME", arguments.names, "Studies to run, or two runs to compare");
    app.add_option("--out", arguments.folder, "Write documents into this folder");
    app.add_flag("--quick", arguments.quick, "Small data, few points, few samples");
    app.add_option("--repeats", arguments.repeats, "Samples of each figure")
        ->check(CLI::Range(1, 10000));
    app.add_option("--scale", arguments.scale, "Divide the largest data of sizes and files by this")
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
    return dael::lab::run_words(argc, argv);
} catch (const std::exception& fault) {
    return dael::lab::complain(std::string("unexpected: ") + fault.what(), 1);
}
