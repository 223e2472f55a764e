// SPDX-License-Identifier: Apache-2.0
// The calibration as a file: where it lies, what it is keyed by, JSON to and fro.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include <daelstrom/calibration.hpp>

#include "core/cache_folder.hpp"
#include "core/guard.hpp"

namespace dael {
namespace {

using nlohmann::json;
constexpr int kVersion = 4;

std::string first_line_with(const char* path, std::string_view start) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(start)) return line;
    return {};
}

json to_json(const HostRate& rate) {
    return {{"backend", rate.backend},           {"mode", name(rate.mode)},
            {"direction", name(rate.direction)}, {"key_bits", rate.key_bits},
            {"one_core", rate.one_core},         {"all_cores", rate.all_cores},
            {"batch_core", rate.batch_core},     {"batch_all", rate.batch_all}};
}

json to_json(const KernelRate& rate) {
    return {{"mode", name(rate.mode)},
            {"direction", name(rate.direction)},
            {"key_bits", rate.key_bits},
            {"rate", rate.rate}};
}

json to_json(const DeviceRates& rates) {
    json kernels = json::array();
    for (const KernelRate& rate : rates.kernels) kernels.push_back(to_json(rate));
    return {{"backend", rates.backend},
            {"device", rates.device},
            {"start_seconds", rates.start_seconds},
            {"setup_seconds", rates.setup_seconds},
            {"copy_in", rates.copy_in},
            {"copy_out", rates.copy_out},
            {"duplex", rates.duplex},
            {"pageable", rates.pageable},
            {"chunk", rates.chunk},
            {"form", rates.form},
            {"kernels", kernels}};
}

// Of which there are up to sixteen at once.
constexpr std::size_t kMostChunk = std::size_t{64} << 20;

// These throw nlohmann's exceptions, or Damaged, on anything that is not as to_json() writes it.
struct Damaged {};

double rate_at(const json& object, const char* field) {
    const double value = object.at(field).get<double>();
    if (!(value > 0 && value < 1e6)) throw Damaged{};
    return value;
}

double limit_at(const json& object, const char* field) {  // 0: none
    return object.at(field) == 0 ? 0 : rate_at(object, field);
}

Mode mode_at(const json& object) {
    const auto mode = mode_by_name(object.at("mode").get<std::string>());
    if (!mode) throw Damaged{};
    return *mode;
}

Direction direction_at(const json& object) {
    const auto text = object.at("direction").get<std::string>();
    if (text == name(Direction::encrypt)) return Direction::encrypt;
    if (text == name(Direction::decrypt)) return Direction::decrypt;
    throw Damaged{};
}

HostRate host_from(const json& object) {
    return {object.at("backend").get<std::string>(),
            mode_at(object),
            direction_at(object),
            object.at("key_bits").get<int>(),
            rate_at(object, "one_core"),
            rate_at(object, "all_cores"),
            rate_at(object, "batch_core"),
            rate_at(object, "batch_all")};
}

DeviceRates device_from(const json& object) {
    DeviceRates rates{object.at("backend").get<std::string>(),
                      object.at("device").get<std::string>(),
                      rate_at(object, "start_seconds"),
                      rate_at(object, "setup_seconds"),
                      rate_at(object, "copy_in"),
                      rate_at(object, "copy_out"),
                      rate_at(object, "duplex"),
                      rate_at(object, "pageable"),
                      object.at("chunk").get<std::size_t>(),
                      {},
                      object.at("form").get<std::string>()};
    if (rates.chunk == 0 || rates.chunk % 4096 != 0 || rates.chunk > kMostChunk) throw Damaged{};
    for (const json& kernel : object.at("kernels"))
        rates.kernels.push_back({mode_at(kernel), direction_at(kernel),
                                 kernel.at("key_bits").get<int>(), rate_at(kernel, "rate")});
    return rates;
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
    json hosts = json::array(), devices = json::array();
    for (const auto& rate : calibration.hosts) hosts.push_back(to_json(rate));
    for (const auto& rates : calibration.devices) devices.push_back(to_json(rates));
    const std::string text = json{{"version", kVersion},
                                  {"machine", calibration.machine},
                                  {"made", calibration.made},
                                  {"hosts", hosts},
                                  {"devices", devices},
                                  {"memory_core", calibration.memory_core},
                                  {"memory_all", calibration.memory_all}}
                                 .dump(1) +
                             "\n";
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code fault;
    std::filesystem::create_directories(folder, fault);
    if (fault)
        return Error{Code::io, "cannot create '" + folder.string() + "': " + fault.message()};
    std::string temporary = path + ".XXXXXX";
    const int file = mkstemp(temporary.data());
    if (file < 0) return io_error("write", temporary);
    const bool written =
        ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
        fsync(file) == 0;
    const bool closed = close(file) == 0;
    if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return path;
    Error error = io_error("write", path);
    unlink(temporary.c_str());
    return error;
}

}  // namespace

Result<std::string> store(const Calibration& calibration) {
    return core::guarded([&] { return write_file(calibration); });
}

namespace {

// Larger files are not ours.
constexpr off_t kMostFile = off_t{4} << 20;

// The file's text, if it is a file of this user's, which nobody else may write, and no link: what
// it says decides how and where this process works with keys.
std::optional<std::string> read_file(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) return std::nullopt;
    struct stat status {};
    const bool trusted = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                         (status.st_uid == geteuid() || status.st_uid == 0) &&
                         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && status.st_size <= kMostFile;
    std::string text(trusted ? static_cast<std::size_t>(status.st_size) : 0, '\0');
    std::size_t read = 0;
    while (read < text.size()) {
        const ssize_t count = ::read(file, text.data() + read, text.size() - read);
        if (count <= 0) break;
        read += static_cast<std::size_t>(count);
    }
    close(file);
    if (!trusted || read != text.size()) return std::nullopt;
    return text;
}

}  // namespace

std::optional<Calibration> load_calibration() {
    const std::string path = calibration_path();
    if (path.empty()) return std::nullopt;
    const auto text = read_file(path);
    if (!text) return std::nullopt;
    try {
        const json document = json::parse(*text);
        if (document.at("version").get<int>() != kVersion) return std::nullopt;
        Calibration calibration{document.at("machine").get<std::string>(),
                                document.at("made").get<std::string>(),
                                {},
                                {}};
        if (calibration.machine != describe_machine()) return std::nullopt;
        for (const json& rate : document.at("hosts")) calibration.hosts.push_back(host_from(rate));
        for (const json& rates : document.at("devices"))
            calibration.devices.push_back(device_from(rates));
        calibration.memory_core = limit_at(document, "memory_core");
        calibration.memory_all = limit_at(document, "memory_all");
        return calibration;
    } catch (const json::exception&) {
    } catch (const Damaged&) {
    }
    return std::nullopt;
}

}  // namespace dael
