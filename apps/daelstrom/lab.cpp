// SPDX-License-Identifier: Apache-2.0
// `daelstrom lab`: starts daelstrom-lab, which lies beside this program, with the same words. The
// lab's kernels are none of this program's business (lab/README.md).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

struct LabArguments {
    std::string action, folder, output;
    std::vector<std::string> names;
    int repeats = 0;
    std::uint64_t scale = 1;
    bool quick = false, quiet = false;
};

// Where the lab's program is, or how to come by it.
Result<std::string> lab_program() {
    std::error_code status;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", status);
    if (status || !self.is_absolute())  // never one of the folder that somebody stands in
        return Error{Code::io,
                     "cannot find daelstrom-lab, which lies beside this program: "
                     "/proc/self/exe is not there; mount /proc"};
    std::string program = (self.parent_path() / "daelstrom-lab").string();
    if (access(program.c_str(), X_OK) == 0) return program;
    return Error{Code::unsupported,
                 in_quotes(program) +
                     " is not there; build it: cmake --build --preset dev --target daelstrom_lab"};
}

Error start(const std::string& program, std::vector<char*> argv) {
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    return {Code::io, "cannot start " + in_quotes(program) + ": " + std::strerror(errno)};
}

Result<> start(const LabArguments& arguments) {
    DAEL_LET(program, lab_program());
    std::vector<std::string> words{program};
    if (!arguments.folder.empty()) words.push_back("--out=" + arguments.folder);
    if (!arguments.output.empty()) words.push_back("--output=" + arguments.output);
    if (arguments.repeats) words.push_back("--repeats=" + std::to_string(arguments.repeats));
    if (arguments.scale != 1) words.push_back("--scale=" + std::to_string(arguments.scale));
    if (arguments.quick) words.emplace_back("--quick");
    if (arguments.quiet) words.emplace_back("--quiet");
    words.emplace_back("--");
    words.push_back(arguments.action);
    words.insert(words.end(), arguments.names.begin(), arguments.names.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return start(program, std::move(argv));
}

constexpr std::string_view kExhibits[] = {"encrypt", "decrypt", "devices", "aes"};

// Where an exhibit's name is: the first word that is neither an option nor the value of one of
// those that the lab itself has. 0: nowhere.
int exhibit_at(int argc, char** argv) {
    if (argc > 1 && argv[1] == std::string_view("aes")) return 1;
    if (argc < 2 || argv[1] != std::string_view("lab")) return 0;
    constexpr std::string_view kWithValue[] = {"--out", "-o", "--output", "--repeats", "--scale"};
    for (int i = 2; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (std::ranges::find(kWithValue, word) != std::end(kWithValue))
            ++i;
        else if (!word.starts_with('-'))
            return is_exhibit(word) ? i : 0;
    }
    return 0;
}

}  // namespace

bool is_exhibit(std::string_view word) {
    return std::ranges::find(kExhibits, word) != std::end(kExhibits);
}

bool are_the_labs(int argc, char** argv) {
    return exhibit_at(argc, argv) != 0;
}

Error start_lab(int argc, char** argv) {
    auto program = lab_program();
    if (!program) return std::move(program).error();
    const int at = exhibit_at(argc, argv);
    std::vector<char*> words{argv[0], argv[at]};  // the first is by which the messages go
    if (at > 2) words.insert(words.end(), argv + 2, argv + at);
    words.insert(words.end(), argv + at + 1, argv + argc);
    return start(*program, std::move(words));
}

void add_lab(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "lab");
    const auto arguments = std::make_shared<LabArguments>();
    std::vector<std::string> actions{"list", "run", "compare", "report"};
    std::string about = "list, run, compare or report; or an exhibit";
    for (const auto exhibit : kExhibits) {
        about += (exhibit == kExhibits[0] ? ": " : ", ") + std::string(exhibit);
        actions.emplace_back(exhibit);
    }
    auto* action = command->add_option("ACTION", arguments->action, about)->type_name("");
    action->required();
    context.choices[action] = std::move(actions);
    command
        ->add_option(
            "NAME", arguments->names,
            "run: studies, or all; compare: two runs, as files or folders; report: a folder")
        ->type_name("");
    command->add_option("--out", arguments->folder, "run: write documents into this folder")
        ->type_name("DIR");
    command->add_option("-o,--output", arguments->output, "report: the page, a file of HTML")
        ->type_name("FILE");
    command->add_flag("--quick", arguments->quick, "run: small data, few points, few samples");
    command
        ->add_option("--repeats", arguments->repeats,
                     "run: samples of each figure (default: 15, with --quick 3)")
        ->type_name("N")
        ->check(CLI::Range(1, 10000));
    command
        ->add_option(
            "--scale", arguments->scale,
            "run: divide the largest data of sizes, files and generations by this, for small "
            "machines")
        ->type_name("N")
        ->check(CLI::Range(1, 1 << 20));
    command->add_flag("-q,--quiet", arguments->quiet, "No progress on standard error");
    command->callback(
        [arguments, &context] { context.action = [arguments] { return start(*arguments); }; });
}

}  // namespace dael::cli
