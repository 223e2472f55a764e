// SPDX-License-Identifier: Apache-2.0
#include "bench/workload.hpp"

#include <algorithm>

#include <daelstrom/aegis.hpp>
#include <daelstrom/xaes.hpp>

namespace dael::bench {
namespace {

constexpr std::uint64_t KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30;
// The largest messages that are measured in the cache of one core, where 16 of them lie side by
// side, with as much for what comes out.
constexpr std::uint64_t kCached = 64 * KiB;

std::uint64_t scaled(std::uint64_t size, std::uint64_t scale) {
    return size <= 64 * KiB ? size : std::max(64 * KiB, size / scale / kBlockSize * kBlockSize);
}

void scale_sizes(std::vector<std::uint64_t>& sizes, std::uint64_t scale) {
    for (auto& size : sizes) size = scaled(size, scale);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
}

std::vector<std::uint64_t> powers(std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> sizes;
    for (auto size = first; size < last; size *= 4) sizes.push_back(size);
    sizes.push_back(last);
    return sizes;
}

// Where a mode is at its best on a GPU, and where its roads end; `all`: up to 1 GiB.
std::vector<ModeShape> tagged_batches(bool all) {
    std::vector<ModeShape> list;
    for (const Mode mode : {Mode::aegis128l, Mode::xaes256gcm, Mode::gcm_siv}) {
        list.push_back({mode, {KiB, 65'536}});
        if (mode != Mode::gcm_siv) list.push_back({mode, {KiB, 65'536}, 65'536});
        if (all) list.push_back({mode, {MiB, 1024}});
    }
    if (!all) return list;
    for (const Mode mode : {Mode::aegis256, Mode::aegis128x2, Mode::aegis128x4})
        list.insert(list.end(), {{mode, {KiB, 65'536}}, {mode, {16 * KiB, 65'536}}});
    for (const Mode mode : {Mode::aegis128l, Mode::aegis128x2, Mode::aegis128x4})
        list.push_back({mode, {64 * KiB, 4096}});
    for (const Shape shape : {Shape{KiB, 1'048'576}, {4 * KiB, 262'144}, {16 * KiB, 65'536}})
        list.push_back({Mode::aegis128l, shape});
    list.push_back({Mode::aegis128x4, {MiB, 1024}});
    return list;
}

std::uint64_t largest(const std::vector<std::uint64_t>& sizes) {
    return sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
}

Workload quick() {
    Workload workload;
    workload.bits = {128, 256};
    workload.one_core = {16 * KiB};
    workload.all_cores = {64 * MiB};
    workload.sweep = {64 * KiB, MiB, 64 * MiB};
    workload.device = 256 * MiB;
    workload.device_sweep = {4 * KiB, MiB};
    workload.through = 256 * MiB;
    workload.parallel = {{4 * KiB, 65'536}};
    workload.sequential = {{4 * KiB, 65'536}};
    workload.host_sequential = {16 * KiB, 1024};
    workload.gcm_device = {{KiB, 65'536}, {64 * KiB, 4096}};
    workload.gcm_host = {MiB, 64};
    workload.sampling.sample_seconds = 0.0005;
    workload.sampling.budget_seconds = 0.4;
    return workload;
}

Workload full(std::uint64_t largest) {
    Workload workload;
    workload.bits = {128, 192, 256};
    workload.every_form = true;
    workload.one_core = {64, 256, KiB, 16 * KiB};
    workload.all_cores = {64 * MiB, GiB};
    workload.sweep = powers(16 * KiB, largest);
    workload.device = GiB;
    workload.device_sweep = powers(4 * KiB, GiB);
    workload.through = GiB;
    workload.parallel = {{4 * KiB, 65'536}, {4 * KiB, 262'144}, {MiB, 1024}};
    workload.sequential = {{4 * KiB, 65'536}, {16 * KiB, 16'384}};
    workload.host_sequential = {16 * KiB, 16'384};
    workload.gcm_device = {{KiB, 65'536}, {64 * KiB, 4096}, {MiB, 1024}};
    workload.gcm_host = {MiB, 1024};
    workload.sealed_file = GiB;
    workload.gcm_short = {{64, 65'536}, {256, 65'536}};
    return workload;
}

}  // namespace

Workload make_workload(const Options& options) {
    Workload workload =
        options.suite == "quick" ? quick() : full(options.suite == "h200" ? 4 * GiB : GiB);
    workload.launched = {workload.device_sweep.front()};
    workload.tagged_device = tagged_batches(options.suite == "h200");
    if (options.suite == "h200") {
        workload.gcm_many = {{256, 1'048'576}, {KiB, 1'048'576}, {16 * KiB, 16'384}};
        workload.gcm_listed = {{KiB, 65'536}};
        workload.gcm_imix = 262'144;
        workload.key_sets = {1, 4096};
        workload.every_placement = true;
        workload.launched.push_back(64 * KiB);
    }
    workload.gcm_cache = {{16 * KiB, 1}, {KiB, 256}};
    if (options.suite != "quick")
        workload.gcm_cache.insert(workload.gcm_cache.end(), {{16, 1}, {KiB, 1}});
    workload.devices = {256 * MiB, GiB};
    workload.beside = 4 * GiB;
    if (options.suite == "devices") workload.sampling.budget_seconds = 10;  // many take turns
    workload.sampling.repeats = options.repeats;
    if (!options.bits.empty()) workload.bits = options.bits;
    if (!options.sizes.empty()) {
        workload.one_core = workload.all_cores = workload.sweep = workload.device_sweep =
            workload.launched = workload.devices = options.sizes;
        std::erase_if(workload.one_core, [](std::uint64_t size) { return size > kCached; });
        workload.device = workload.through = workload.beside =
            *std::max_element(options.sizes.begin(), options.sizes.end());
    }
    scale_sizes(workload.one_core, options.scale);
    scale_sizes(workload.all_cores, options.scale);
    scale_sizes(workload.sweep, options.scale);
    scale_sizes(workload.device_sweep, options.scale);
    scale_sizes(workload.devices, options.scale);
    workload.device = scaled(workload.device, options.scale);
    workload.through = scaled(workload.through, options.scale);
    workload.beside = scaled(workload.beside, options.scale);
    workload.sealed_file = scaled(workload.sealed_file, options.scale);
    for (auto* shapes : {&workload.parallel, &workload.sequential, &workload.gcm_device,
                         &workload.gcm_many, &workload.gcm_listed, &workload.gcm_short})
        for (auto& shape : *shapes)
            shape.count = std::max<std::uint64_t>(2, shape.count / options.scale);
    for (ModeShape& one : workload.tagged_device) {
        one.shape.count = std::max<std::uint64_t>(2, one.shape.count / options.scale);
        if (one.keys != 1) one.keys = one.shape.count;
    }
    workload.gcm_imix /= options.scale;
    for (auto* shape : {&workload.host_sequential, &workload.gcm_host})
        shape->count = std::max<std::uint64_t>(2, shape->count / options.scale);
    return workload;
}

std::uint64_t Workload::largest_host() const {
    return std::max({largest(all_cores), largest(sweep),
                     host_sequential.size * host_sequential.count, gcm_host.size * gcm_host.count});
}

std::uint64_t Workload::largest_device() const {
    std::uint64_t bytes = std::max(device, largest(device_sweep));
    for (const auto* shapes : {&parallel, &sequential, &gcm_device, &gcm_many, &gcm_listed})
        for (const auto& [size, count] : *shapes) bytes = std::max(bytes, size * count);
    for (const auto& [mode, shape, keys] : tagged_device)
        bytes = std::max(bytes, shape.size * shape.count);
    bytes = std::max(bytes, gcm_imix * Work::kSlot);
    return bytes;
}

std::uint64_t Workload::largest_through() const {
    return std::max(through, largest(sweep));
}

measure::Axis ways(const Options& options) {
    measure::Axis all;
    const auto add = [&](const std::string& mode, Direction direction, std::uint64_t sector = 0) {
        if (options.modes.empty() || std::ranges::find(options.modes, mode) != options.modes.end())
            all.push_back(
                {{"mode", mode}, {"direction", std::string(name(direction))}, {"sector", sector}});
    };
    const auto both_ways = [&](const std::string& mode, std::uint64_t sector = 0) {
        add(mode, Direction::encrypt, sector);
        add(mode, Direction::decrypt, sector);
    };
    add("ctr", Direction::encrypt);
    for (const char* mode : {"ecb", "cbc", "cfb"}) both_ways(mode);
    add("ofb", Direction::encrypt);
    for (const std::uint64_t sector : {512, 4096}) both_ways("xts", sector);
    add("gmac", Direction::encrypt);
    both_ways("gcm");
    for (const Mode mode : kModes)
        if (authenticates(mode) && mode != Mode::gcm) both_ways(std::string(name(mode)));
    return all;
}

std::vector<std::string> mode_names() {
    std::vector<std::string> names;
    for (const Point& way : ways({}))
        if (std::ranges::find(names, way.text("mode")) == names.end())
            names.push_back(way.text("mode"));
    return names;
}

Point shape(std::uint64_t size, std::uint64_t messages, std::uint64_t keys) {
    return {{"size", size}, {"messages", messages}, {"keys", keys}};
}

bool has_bits(const Options& options, const Work& work) {
    if (is_aegis(work.cipher.mode)) return work.bits == 8 * int(aegis::key_size(work.cipher.mode));
    if (work.is(Mode::xaes256gcm)) return work.bits == 8 * int(xaes::kKeySize);
    if (work.is(Mode::gcm_siv)) return work.bits != 192;
    if (work.bits != 192) return true;
    return !work.is(Mode::xts) && (!work.is(Mode::gcm) || !options.bits.empty());
}

std::vector<std::string> backend_names() {
    std::vector<std::string> names(kHostBackends.begin(), kHostBackends.end());
    names.insert(names.end(), kDeviceBackends.begin(), kDeviceBackends.end());
    return names;
}

bool wants_backend(const Options& options, const std::string& name) {
    return options.backends.empty() || std::find(options.backends.begin(), options.backends.end(),
                                                 name) != options.backends.end();
}

}  // namespace dael::bench
