// SPDX-License-Identifier: Apache-2.0
// The calibration as a file: where it lies, what it is keyed by, who may have written it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <thread>

#include <daelstrom/files.hpp>
#include <daelstrom/plan.hpp>

#include "core/cache_folder.hpp"
#include "core/guard.hpp"
#include "pipeline/calibration_json.hpp"

namespace dael {
namespace {

std::string first_line_with(const char* path, std::string_view start) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(start)) return line;
    return {};
}

Error io_error(const std::string& what, const std::string& path) {
    return {Code::io, "cannot " + what + " '" + path + "': " + std::strerror(errno)};
}

}  // namespace

std::string describe_machine() {
    std::string cpu = first_line_with("/proc/cpuinfo", "model name");
    if (const auto colon = cpu.find(": "); colon != cpu.npos) cpu = cpu.substr(colon + 2);
    if (cpu.empty()) cpu = "unknown CPU";
    std::string machine =
        cpu + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores";
    // The driver's version without starting the driver. What devices there are is each device's own
    // key.
    const std::string driver = first_line_with("/proc/driver/nvidia/version", "NVRM version");
    if (const auto module = driver.find("Module"); module != driver.npos) {
        const auto begin = driver.find_first_of("0123456789", driver.find("  ", module));
        if (begin != driver.npos)
            machine += ", NVIDIA driver " + driver.substr(begin, driver.find(' ', begin) - begin);
    }
    return machine;
}

std::string calibration_path() {
    const std::string folder = core::cache_folder();
    return folder.empty() ? "" : folder + "/calibration.json";
}

namespace {

Result<std::string> write_file(const Calibration& calibration) {
    const std::string path = calibration_path();
    if (path.empty())
        return Error{Code::io, "no place for the calibration: set XDG_CACHE_HOME or HOME"};
    const auto json = pipeline::to_json(calibration);
    if (!json) return json.error();
    const std::string& text = *json;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code fault;
    std::filesystem::create_directories(folder, fault);
    if (fault)
        return Error{Code::io, "cannot create '" + folder.string() + "': " + fault.message()};
    DAEL_LET(
        file,
        files::NewFile::begin(
            AT_FDCWD, path,
            {.existing = files::Existing::whatever, .sync = true, .follow = false, .mode = 0600}));
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t put = ::write(file.fd(), text.data() + at, text.size() - at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return io_error("write", path);
        at += static_cast<std::size_t>(put);
    }
    DAEL_TRY(file.commit());
    return path;
}

}  // namespace

Result<std::string> store(const Calibration& calibration) {
    return core::guarded([&] { return write_file(calibration); });
}

namespace {

// Larger files are not ours.
constexpr off_t kMaxFile = off_t{4} << 20;

// The file's text, if it is a file of this user's, which nobody else may write, and no link: what
// it says decides how and where this process works with keys.
std::optional<std::string> read_file(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return std::nullopt;
    struct Closing {
        int file;
        ~Closing() { close(file); }
    } closing{file};
    struct stat status {};
    const bool trusted = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                         (status.st_uid == geteuid() || status.st_uid == 0) &&
                         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && status.st_size <= kMaxFile;
    std::string text(trusted ? static_cast<std::size_t>(status.st_size) : 0, '\0');
    std::size_t read = 0;
    while (read < text.size()) {
        const ssize_t count = ::read(file, text.data() + read, text.size() - read);
        if (count <= 0) break;
        read += static_cast<std::size_t>(count);
    }
    if (!trusted || read != text.size()) return std::nullopt;
    return text;
}

}  // namespace

std::optional<Calibration> load_calibration() try {
    const std::string path = calibration_path();
    if (path.empty()) return std::nullopt;
    const auto text = read_file(path);
    if (!text) return std::nullopt;
    auto calibration = pipeline::calibration_of(*text);
    if (!calibration || calibration->machine != describe_machine()) return std::nullopt;
    return calibration;
} catch (const std::bad_alloc&) {
    return std::nullopt;  // what is not known is estimated
}

}  // namespace dael
