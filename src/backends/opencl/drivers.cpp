// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/drivers.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>

namespace dael::opencl {
namespace {

namespace fs = std::filesystem;

std::atomic<bool> forked = false;
std::atomic<int> drivers_in_use = 0;  // or just being loaded

void notice_forks() {
    static std::once_flag watching;
    std::call_once(watching, [] {
        pthread_atfork(nullptr, nullptr, [] {
            if (drivers_in_use != 0) forked = true;
        });
    });
}

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
        // A child that is forked meanwhile would wait for the thread that is at it.
        watch_for_forks();
        // For good: drivers have threads, and what they made may be in use to the end. Lazily, as
        // loaders do it: some drivers have functions that nothing they need is installed for.
        void* const library = dlopen(driver.library.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (!library) {
            --drivers_in_use;
            continue;
        }
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

}  // namespace

bool after_fork() noexcept {
    return forked;
}

void watch_for_forks() {
    notice_forks();
    ++drivers_in_use;
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
    // Never destroyed: static destructors may still open engines.
    if (kind == DriverKind::gpu) {
        static const auto& gpus = *new std::vector<cl::Platform>(load(DriverKind::gpu));
        return gpus;
    }
    static const auto& cpus = *new std::vector<cl::Platform>(load(DriverKind::cpu));
    return cpus;
}

}  // namespace dael::opencl
