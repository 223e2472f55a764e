// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/drivers.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "core/process.hpp"

namespace dael::opencl {
namespace {

namespace fs = std::filesystem;

// In the lower half how many drivers are in use or looked for, in the upper one the process that
// began to; a child of fork() has both from its parent. One number, so that nobody ever sees one of
// the two without the other, and there from the beginning.
constinit std::atomic<std::uint64_t> in_use{0};

void begin_use() noexcept {
    const std::uint64_t mine = std::uint64_t{core::this_process()} << 32;
    std::uint64_t before = in_use;
    while (!in_use.compare_exchange_weak(
        before, static_cast<std::uint32_t>(before) == 0 ? mine + 1 : before + 1)) {
    }
}

// While drivers are looked for: a child that is forked meanwhile would wait for the thread that is
// at it, in the loader or here.
struct Looking {
    Looking() noexcept { begin_use(); }
    Looking(const Looking&) = delete;
    ~Looking() { --in_use; }
};

std::string variable(const char* name) {
    const char* const value = secure_getenv(name);
    return value ? value : "";
}

// The first line of an *.icd file is the library's name.
void add_file(const fs::path& file, std::vector<Driver>& drivers) {
    std::ifstream stream(file);
    std::string library;
    stream >> std::ws;
    std::getline(stream, library);
    library.resize(library.find_last_not_of(" \t\r") + 1);
    if (!library.empty()) drivers.push_back({library, kind_of(library, file.filename())});
}

void add_folder(const fs::path& folder, std::vector<Driver>& drivers) {
    std::error_code fault;
    std::vector<fs::path> files;
    for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end;
         entry.increment(fault))
        if (entry->path().extension() == ".icd") files.push_back(entry->path());
    std::ranges::sort(files);
    for (const fs::path& file : files) add_file(file, drivers);
}

using GetPlatforms = cl_int(CL_API_CALL*)(cl_uint, cl_platform_id*, cl_uint*);

// What a driver has for loaders, in place of clGetPlatformIDs.
GetPlatforms get_platforms_of(void* library) {
    constexpr const char* kName = "clIcdGetPlatformIDsKHR";
    using AddressOf = void*(CL_API_CALL*)(const char*);
    void* found = nullptr;
    if (const auto address_of =
            reinterpret_cast<AddressOf>(dlsym(library, "clGetExtensionFunctionAddress")))
        found = address_of(kName);
    return reinterpret_cast<GetPlatforms>(found ? found : dlsym(library, kName));
}

std::vector<cl::Platform> load(DriverKind kind) {
    std::vector<cl::Platform> found;
    for (const Driver& driver : registered_drivers()) {
        if (driver.kind != kind) continue;
        // For good: drivers have threads, and what they made may be in use to the end. Lazily, as
        // loaders do it: some drivers have functions that nothing they need is installed for.
        void* const library = dlopen(driver.library.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (!library) continue;
        watch_for_forks();
        const GetPlatforms get = get_platforms_of(library);
        cl_uint count = 0;
        if (!get || get(0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
        std::vector<cl_platform_id> platforms(count);
        if (get(count, platforms.data(), nullptr) != CL_SUCCESS) continue;
        for (const cl_platform_id platform : platforms)
            // Registered twice, a driver is one all the same.
            if (std::ranges::none_of(found, [&](const auto& known) { return known() == platform; }))
                found.emplace_back(platform);
    }
    return found;
}

// The platforms of one kind, once they are known. Never destroyed: static destructors may still
// open engines.
struct Platforms {
    std::mutex mutex;  // held while they are looked for
    std::atomic<const std::vector<cl::Platform>*> known{nullptr};
};
constinit Platforms gpus, cpus;

}  // namespace

bool after_fork() noexcept {
    const std::uint64_t now = in_use;
    return static_cast<std::uint32_t>(now) != 0 && now >> 32 != core::this_process();
}

void watch_for_forks() noexcept {
    begin_use();
}

DriverKind kind_of(const std::string& library, const std::string& registration) {
    // PoCL; Intel's run-time for CPUs; a simulator for the search of errors.
    for (const char* name : {"pocl", "intelocl", "oclgrind"})
        if (fs::path(library).filename().string().find(name) != std::string::npos ||
            registration.find(name) != std::string::npos)
            return DriverKind::cpu;
    return DriverKind::gpu;
}

std::vector<Driver> registered_drivers() {
    std::vector<Driver> drivers;
    std::string place = variable("OCL_ICD_VENDORS");
    if (place.empty()) place = "/etc/OpenCL/vendors";
    std::error_code fault;
    if (fs::is_directory(place, fault))
        add_folder(place, drivers);
    else if (fs::path(place).extension() == ".icd")
        add_file(place, drivers);
    else if (place.find(".so") != std::string::npos)
        drivers.push_back({place, kind_of(place, {})});
    std::string more = variable("OCL_ICD_FILENAMES");
    while (!more.empty()) {
        const std::string library = more.substr(0, more.find(':'));
        more.erase(0, library.size() + 1);
        if (!library.empty()) drivers.push_back({library, kind_of(library, {})});
    }
    return drivers;
}

std::span<const cl::Platform> platforms(DriverKind kind) {
    const Looking looking;  // before any lock
    if (after_fork()) return {};
    Platforms& its = kind == DriverKind::gpu ? gpus : cpus;
    if (const auto* const known = its.known.load()) return *known;
    const std::lock_guard lock(its.mutex);
    if (const auto* const known = its.known.load()) return *known;
    const auto* const found = new std::vector<cl::Platform>(load(kind));
    its.known = found;
    return *found;
}

}  // namespace dael::opencl
