// SPDX-License-Identifier: Apache-2.0
#include "lab/spawn.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "io/text.hpp"

namespace dael::lab {
namespace {

double cpu_seconds(const rusage& usage) {
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

Result<Spent> run_program(const std::vector<std::string>& words, const std::filesystem::path& log) {
    std::vector<std::string> copies = words;
    std::vector<char*> argv;
    for (std::string& word : copies) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const double start = now();
    pid_t child = 0;
    const int failed = posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        return Error{Code::backend_absent, "cannot start " + app::in_quotes(words.front()) + ": " +
                                               std::strerror(failed)};
    int status = 0;
    rusage usage{};
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR) return Error{Code::io, std::string("wait4: ") + std::strerror(errno)};
    const Spent spent{now() - start, cpu_seconds(usage)};
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return spent;
    std::string said;
    std::ifstream file(log);
    std::getline(file, said);
    return Error{Code::io, app::in_quotes(words.front()) + " failed: " + app::on_one_line(said)};
}

Result<Spent> spend(const std::function<Result<>()>& work) {
    rusage before{}, after{};
    (void)getrusage(RUSAGE_SELF, &before);
    const double start = now();
    DAEL_TRY(work());
    const double seconds = now() - start;
    (void)getrusage(RUSAGE_SELF, &after);
    return Spent{seconds, cpu_seconds(after) - cpu_seconds(before)};
}

}  // namespace dael::lab
