// SPDX-License-Identifier: Apache-2.0
#include "lab/field.hpp"

#include <algorithm>
#include <array>

#include "bench/check.hpp"
#include "measure/team.hpp"

namespace dael::lab {
namespace {

constexpr std::uint64_t kThreadsResident = 2048, kSharedMemory = 224 << 10;  // of a processor

Point point_of(const bench::Work& work, const char* name, const Shape& shape, std::uint32_t grid,
               int blocks_per_thread) {
    return {{"study_part", "own kernels"},
            {"where", "kernels"},
            {"backend", work.backend},
            {"kernel", name},
            {"mode", work.is(Mode::ctr) ? "ctr" : "ecb"},
            {"direction", "encrypt"},
            {"bits", std::uint64_t{128}},
            {"size", work.size},
            {"measure", "kernel"},
            {"bytes_per_thread", static_cast<std::uint64_t>(shape.bytes)},
            {"tables", word(shape.tables)},
            {"table_count", shape.tables == Shape::Tables::none
                                ? std::uint64_t{0}
                                : static_cast<std::uint64_t>(shape.count)},
            {"keys", shape.keys_shared ? "shared" : "constant"},
            {"state", word(shape.state)},
            {"threads", static_cast<std::uint64_t>(shape.threads)},
            {"blocks", std::uint64_t{grid}},
            {"blocks_per_thread", static_cast<std::uint64_t>(blocks_per_thread)}};
}

}  // namespace

const char* word(Shape::Tables tables) {
    constexpr std::array kWords{"constant", "shared", "banks", "none"};
    return kWords[static_cast<std::size_t>(tables)];
}
const char* word(Shape::State state) {
    constexpr std::array kWords{"registers", "aos", "soa"};
    return kWords[static_cast<std::size_t>(state)];
}

std::uint64_t data_size(const Bench& bench, const KernelDevice& device) {
    const bool quick = bench.settings.quick;
    const std::uint64_t wanted =
        device.is_cpu() ? (quick ? 256 << 10 : 4 << 20) : (quick ? 16 << 20 : 256 << 20);
    return measure::fitting(bench.report, wanted, 4);
}

Result<std::shared_ptr<Field>> Field::make(std::shared_ptr<KernelDevice> device,
                                           std::uint64_t size) {
    DAEL_LET(clock, measure::DeviceClock::create(device->access()));
    DAEL_LET(host, measure::HostBuffer::allocate(size));
    DAEL_LET(in, device->allocate(size));
    DAEL_LET(out, device->allocate(size));
    measure::Team team(measure::thread_count(0));
    measure::fill_random(team, host.data(), size, 6);
    DAEL_TRY(clock.copy_in(in.data, host.data(), size));
    return std::make_shared<Field>(Field{std::move(device), clock, size, std::move(host), in, out});
}

std::uint32_t Field::grid_of(const Shape& shape, int blocks_per_thread) const {
    const auto at_once = static_cast<std::uint32_t>(shape.blocks());
    const std::uint32_t all = (blocks() + at_once - 1) / at_once;
    const auto each = static_cast<std::uint32_t>(std::max(1, blocks_per_thread));
    if (blocks_per_thread != 0) return (all + each - 1) / each;
    const std::uint64_t by_memory =
        kSharedMemory / std::max<std::uint64_t>(1, shape.local_memory());
    const std::uint64_t resident =
        std::clamp<std::uint64_t>(kThreadsResident / static_cast<std::uint64_t>(shape.threads), 1,
                                  std::max<std::uint64_t>(1, by_memory));
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(all, resident * static_cast<std::uint64_t>(device->processors())));
}

bench::Work Field::work_of(const Shape& shape) const {
    const bool counts = shape.form == Shape::Form::counters || shape.form == Shape::Form::cached;
    bench::Work work(Point{
        {"mode", counts ? "ctr" : "ecb"}, {"direction", "encrypt"}, {"bits", std::uint64_t{128}}});
    work.backend = device->name();
    work.size = size;
    work.where = "device";
    work.measure = "kernel";
    return work;
}

Result<measure::Launch> Field::prepare(const Shape& shape, std::uint32_t grid) const {
    const bench::Work work = work_of(shape);
    const Block start = bench::lay_out(work, nullptr, nullptr).front().start;
    return device->prepare(shape, constants_of(bench::key_bytes(work), start), in, out, blocks(),
                           grid);
}

Result<> Field::check(const Shape& shape, const measure::Launch& launch) const {
    DAEL_TRY(clock.fill(out.data, bench::kPoison, size));
    DAEL_TRY(clock.run(launch));
    return bench::check_output(work_of(shape), host.data(), clock.fetch_from(out.data));
}

std::size_t Field::enter_copy(measure::Heat& heat) const {
    return heat.enter("copy within device memory",
                      clock.by_events(clock.copy_within(out.data, in.data, size)));
}

Result<std::size_t> enter(measure::Heat& heat, const std::shared_ptr<Field>& field,
                          const char* name, const Shape& shape, int blocks_per_thread,
                          std::vector<std::size_t> against) {
    const std::uint32_t grid = field->grid_of(shape, blocks_per_thread);
    DAEL_LET(launch, field->prepare(shape, grid));
    return heat.enter(
        name, field->clock.by_events(launch),
        [field, shape, launch] { return field->check(shape, launch); },
        point_of(field->work_of(shape), name, shape, grid, blocks_per_thread),
        static_cast<double>(field->size), std::move(against));
}

}  // namespace dael::lab
