// SPDX-License-Identifier: Apache-2.0
#include "measure/power.hpp"

#include <dlfcn.h>

#include <array>
#include <fstream>

namespace dael::measure {

// The functions of nvml.h that are needed, by their names there. All answer 0 when they have done
// what they should.
struct GpuPower::Library {
    std::shared_ptr<void> held;
    int (*handle)(unsigned, void**) = nullptr;
    int (*driver)(char*, unsigned) = nullptr;
    int (*energy)(void*, unsigned long long*) = nullptr;  // millijoules
    int (*clock)(void*, int, unsigned*) = nullptr;
    int (*temperature)(void*, int, unsigned*) = nullptr;
    int (*reasons)(void*, unsigned long long*) = nullptr;

    static std::shared_ptr<const Library> load() {
        void* const opened = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
        if (!opened) return nullptr;
        const std::shared_ptr<void> closes(opened, [](void* library) { dlclose(library); });
        const auto init = reinterpret_cast<int (*)()>(dlsym(opened, "nvmlInit_v2"));
        const auto shutdown = reinterpret_cast<int (*)()>(dlsym(opened, "nvmlShutdown"));
        if (!init || !shutdown || init() != 0) return nullptr;
        auto library = std::make_shared<Library>();
        library->held = std::shared_ptr<void>(opened, [closes, shutdown](void*) { shutdown(); });
        const auto find = [opened](auto& function, const char* name) {
            function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(opened, name));
        };
        find(library->handle, "nvmlDeviceGetHandleByIndex_v2");
        find(library->driver, "nvmlSystemGetDriverVersion");
        find(library->energy, "nvmlDeviceGetTotalEnergyConsumption");
        find(library->clock, "nvmlDeviceGetClockInfo");
        find(library->temperature, "nvmlDeviceGetTemperature");
        find(library->reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
        return library;
    }
};

namespace {

constexpr int kSmClock = 1, kMemoryClock = 2, kGpuTemperature = 0;  // of nvml.h

Result<std::uint64_t> read_number(const std::filesystem::path& path) {
    std::uint64_t number = 0;
    if (std::ifstream(path) >> number) return number;
    return Error{Code::io, "cannot read " + path.string()};
}

}  // namespace

Result<GpuPower> GpuPower::open(unsigned gpu) {
    GpuPower power;
    power.library_ = Library::load();
    if (!power.library_)
        return Error{Code::backend_absent,
                     "libnvidia-ml.so.1, which comes with NVIDIA's driver, is not there"};
    if (!power.library_->handle || power.library_->handle(gpu, &power.device_) != 0)
        return Error{Code::backend_absent, "NVIDIA's driver has no GPU " + std::to_string(gpu)};
    return power;
}

std::string GpuPower::driver() {
    const auto library = Library::load();
    std::array<char, 80> text{};
    if (!library || !library->driver || library->driver(text.data(), text.size()) != 0) return {};
    return text.data();
}

Result<double> GpuPower::joules() const {
    unsigned long long millijoules = 0;
    if (!library_->energy || library_->energy(device_, &millijoules) != 0)
        return Error{Code::unsupported, "this GPU does not count its energy"};
    return static_cast<double>(millijoules) / 1e3;
}

unsigned GpuPower::sm_mhz() const {
    unsigned mhz = 0;
    return library_->clock && library_->clock(device_, kSmClock, &mhz) == 0 ? mhz : 0;
}

unsigned GpuPower::memory_mhz() const {
    unsigned mhz = 0;
    return library_->clock && library_->clock(device_, kMemoryClock, &mhz) == 0 ? mhz : 0;
}

unsigned GpuPower::celsius() const {
    unsigned degrees = 0;
    const bool told =
        library_->temperature && library_->temperature(device_, kGpuTemperature, &degrees) == 0;
    return told ? degrees : 0;
}

std::uint64_t GpuPower::reasons() const {
    unsigned long long reasons = 0;
    return library_->reasons && library_->reasons(device_, &reasons) == 0 ? reasons : 0;
}

std::string clock_reasons(std::uint64_t reasons) {
    // Bit 0, idle, holds nothing back that is wanted.
    constexpr std::array<std::pair<std::uint64_t, const char*>, 8> kNames{
        {{0x2, "clocks were set"},
         {0x4, "power cap"},
         {0x8, "hardware slowdown"},
         {0x10, "boosts with others"},
         {0x20, "temperature"},
         {0x40, "temperature, by hardware"},
         {0x80, "power brake"},
         {0x100, "display clocks"}}};
    std::string text;
    for (const auto& [bit, name] : kNames)
        if (reasons & bit) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
}

Result<CpuPower> CpuPower::open(const std::filesystem::path& folder) {
    // Packages, and the memory that belongs to them; cores and the like are part of a package.
    CpuPower power;
    std::error_code status;
    bool closed = false;
    for (const auto& entry : std::filesystem::directory_iterator(folder, status)) {
        std::string name;
        std::ifstream(entry.path() / "name") >> name;
        if (!name.starts_with("package") && name != "dram") continue;
        // The same counters are listed a second time where they are reached through memory.
        if (entry.path().filename().string().find("mmio") != std::string::npos) continue;
        const auto counter = entry.path() / "energy_uj";
        const auto now = read_number(counter);
        const auto most = read_number(entry.path() / "max_energy_range_uj");
        if (now && most)
            power.zones_.push_back({counter, *most, *now});
        else
            closed = true;
    }
    if (power.zones_.empty())
        return Error{Code::backend_absent,
                     closed ? "the energy counters in " + folder.string() +
                                  " may be read by the administrator alone"
                            : "no energy counters of the processor in " + folder.string()};
    return power;
}

Result<double> CpuPower::joules() {
    for (Zone& zone : zones_) {
        DAEL_LET(now, read_number(zone.counter));
        const std::uint64_t used = now >= zone.last ? now - zone.last : now + zone.most - zone.last;
        joules_ += static_cast<double>(used) / 1e6;
        zone.last = now;
    }
    return joules_;
}

}  // namespace dael::measure
