// SPDX-License-Identifier: Apache-2.0
// How many threads in a block, how many blocks of AES for each, how large a grid: kernel 2 of
// placement, cut in every way (Brno 2011, Sao Jose do Rio Preto 2013).
#include "lab/field.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

// Threads of a block, blocks of AES for each, and grids.
Result<> run_granularity(const Bench& bench) {
    for (const auto& device : kernel_devices(bench.report)) {
        measure::describe_device(bench.report.machine, device->access().info);
        DAEL_LET(field, Field::make(device, data_size(bench, *device)));
        const std::vector<int> threads =
            bench.settings.quick ? std::vector{64, 256} : std::vector{64, 128, 256, 512, 1024};
        const std::vector<int> each =
            bench.settings.quick ? std::vector{1, 8} : std::vector{1, 2, 4, 8, 0};
        const Benchmark benchmark{
            device->name(),
            {measure::axis("threads", threads)},
            {},
            [field, each](const Point& point) -> Result<measure::Heat> {
                measure::Heat heat;
                const std::size_t copy = field->enter_copy(heat);
                std::vector<std::size_t> against{copy};
                for (const int blocks_per_thread : each) {
                    Shape shape;
                    shape.threads = static_cast<int>(point.number("threads"));
                    DAEL_TRY(enter(heat, field, "2", shape, blocks_per_thread, against));
                }
                return heat;
            }};
        DAEL_TRY(bench.session.run(benchmark));
    }
    return {};
}

const measure::Columns& granularity_columns() {
    static const auto number = [](const char* name) {
        return [name](const Point& p) {
            return p.number(name) ? std::to_string(p.number(name)) : std::string("go on");
        };
    };
    static const measure::Columns all{
        {{"backend", false, [](const Point& p) { return p.text("backend"); }},
         {"threads of a block", true, number("threads")},
         {"AES blocks a thread", true, number("blocks_per_thread")},
         {"blocks of the grid", true, number("blocks")}},
        {"kernels"},
        [](const measure::Machine& machine, const std::string&) {
            return machine.gpu + ", AES-128-ECB, kernel 2 of `placement`";
        }};
    return all;
}

}  // namespace

const Study kGranularity{"granularity",
                         "Brno 2011, Sao Jose do Rio Preto 2013",
                         "How many threads in a block, and how many blocks of AES for each?",
                         run_granularity,
                         describe_fields,
                         granularity_columns};

}  // namespace dael::lab
