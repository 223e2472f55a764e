// SPDX-License-Identifier: Apache-2.0
// Where tables, keys and state lie, and how fine the work is cut: the thirteen implementations of
// Gibadullin et al. (Kazan 2017), each a kernel, and what came later.
#include <algorithm>
#include <array>
#include <cstdio>

#include "bench/check.hpp"
#include "bench/suite.hpp"
#include "lab/field.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

using Tables = Shape::Tables;
using State = Shape::State;
using Form = Shape::Form;
using measure::DeviceClock;
using measure::Heat;

struct Implementation {
    const char* name;
    Shape shape;
    double gbit_2017 = 0;       // on a GTX 285, 256 MiB; 0: it is not one of the thirteen
    int blocks_per_thread = 1;  // 0: a grid as large as the device, whose threads go on and on
};

// The table of 2017, and then what is in no such table.
constexpr std::array kImplementations{
    Implementation{"1", {16, Tables::constant, false, State::registers, 4}, 5.0},
    Implementation{"2", {16, Tables::shared, false, State::registers, 4}, 34.4},
    Implementation{"3", {16, Tables::shared, true, State::registers, 4}, 35.2},
    Implementation{"4", {16, Tables::shared, true, State::registers, 1}, 21.54},
    Implementation{"5", {16, Tables::shared, true, State::soa, 4}, 29.9},
    Implementation{"6", {16, Tables::shared, true, State::aos, 4}, 21.7},
    Implementation{"7", {8, Tables::shared, false, State::aos, 4}, 26.9},
    Implementation{"8", {8, Tables::shared, true, State::aos, 4}, 23.9},
    Implementation{"9", {8, Tables::shared, false, State::soa, 4}, 23.4},
    Implementation{"10", {4, Tables::shared, false, State::aos, 4}, 25.3},
    Implementation{"11", {4, Tables::shared, true, State::aos, 4}, 25.0},
    Implementation{"12", {4, Tables::shared, false, State::soa, 4}, 17.1},
    Implementation{"13", {1, Tables::shared, true, State::aos, 4}, 2.9},
    Implementation{"persistent grid", {16, Tables::shared, false, State::registers, 4}, 0, 0},
    Implementation{"banks, 1 table", {16, Tables::banks, false, State::registers, 1, 1024}, 0, 0},
    Implementation{"banks, 2 tables", {16, Tables::banks, false, State::registers, 2, 1024}, 0, 0},
    Implementation{"banks, 4 tables", {16, Tables::banks, false, State::registers, 4, 1024}, 0, 0},
    Implementation{"computed S-box", {16, Tables::none, false, State::registers, 4}, 0, 1},
    Implementation{
        "bitsliced", {32, Tables::none, false, State::registers, 4, 256, Form::sliced}, 0, 1},
    Implementation{"counter mode, shared",
                   {16, Tables::shared, false, State::registers, 4, 256, Form::counters},
                   0,
                   0},
    Implementation{"counter caching, shared",
                   {16, Tables::shared, false, State::registers, 4, 256, Form::cached},
                   0,
                   0},
    Implementation{"counter mode, banks",
                   {16, Tables::banks, false, State::registers, 4, 1024, Form::counters},
                   0,
                   0},
    Implementation{"counter caching, banks",
                   {16, Tables::banks, false, State::registers, 4, 1024, Form::cached},
                   0,
                   0},
};
constexpr std::size_t kOfTheTable = 13;

Result<Benchmark> own_kernels(const Bench& bench, const std::shared_ptr<Field>& field) {
    // One heat: all of them take turns, so that their order is that of the same minute.
    return Benchmark{field->device->name(),
                     {Axis{Point{{"study_part", "own kernels"}}}},
                     {},
                     [field, &report = bench.report](const Point&) -> Result<Heat> {
                         Heat heat;
                         const std::size_t copy = field->enter_copy(heat);
                         for (const Implementation& one : kImplementations) {
                             auto entered = enter(heat, field, one.name, one.shape,
                                                  one.blocks_per_thread, {copy});
                             if (entered) {
                                 if (one.gbit_2017 > 0)
                                     heat.describe(*entered, [&one](double) {
                                         return measure::Figures{{"gbps_2017", one.gbit_2017 / 8}};
                                     });
                             } else if (entered.code() == Code::unsupported) {
                                 report.skip(field->device->name() + ", " + one.name + ": " +
                                             entered.error().message);
                             } else {
                                 return std::move(entered).error();
                             }
                         }
                         return heat;
                     }};
}

// The order of the thirteen, then and now.
void rank(measure::Report& report, const std::string& backend) {
    std::vector<measure::Row*> rows;
    for (auto& row : report.rows)
        if (row.point.text("backend") == backend && row.figures.size() == 1 &&
            row.figures[0].first == "gbps_2017")
            rows.push_back(&row);
    if (rows.size() != kOfTheTable) return;  // of fewer an order would say something else
    const auto give = [&](const char* name, auto rate) {
        std::ranges::sort(rows, [&](const auto* a, const auto* b) { return rate(*a) > rate(*b); });
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i]->figures.emplace_back(name, static_cast<double>(i + 1));
    };
    give("rank", [](const measure::Row& row) { return row.gbps.median; });
    give("rank_2017", [](const measure::Row& row) { return row.figures[0].second; });
}

// An engine with buffers of its own: what goes last stands first.
struct Library {
    bench::DeviceUnderTest subject;
    DeviceClock clock;
    measure::DeviceBuffer in, out;
    std::shared_ptr<Field> field;
};

// daelstrom's own kernels, of the same data: what came of all this, and counter mode with counter
// caching.
Result<Benchmark> library_kernels(const std::string& form, const std::shared_ptr<Field>& field) {
    const std::string kind = field->device->name().substr(0, field->device->name().find(':'));
    DAEL_LET(subject, bench::DeviceUnderTest::open(kind, form));
    DAEL_LET(clock, DeviceClock::create(subject.device));
    DAEL_LET(in, measure::DeviceBuffer::allocate(subject.device, measure::MemoryKind::device,
                                                 field->size));
    DAEL_LET(out, measure::DeviceBuffer::allocate(subject.device, measure::MemoryKind::device,
                                                  field->size));
    DAEL_TRY(clock.copy_in(in.data(), field->host.data(), field->size));
    const auto own = std::make_shared<const Library>(Library{subject, clock, in, out, field});
    const std::string shown = form.empty() ? "daelstrom" : "daelstrom, " + form;
    return Benchmark{
        subject.name + " " + form,
        {measure::axis("mode", std::array{"ecb", "ctr"})},
        {},
        [own, form, shown](const Point& point) -> Result<Heat> {
            bench::Work work = own->field->work_of({});
            work.cipher.mode = point.text("mode") == "ctr" ? Mode::ctr : Mode::ecb;
            DAEL_LET(keys, bench::make_keys(work));
            const auto message = bench::lay_out(work, own->in.data(), own->out.data()).front();
            const measure::Launch launch =
                [own, cipher = work.cipher, message,
                 key = std::make_shared<Key>(std::move(keys.front()))](Stream s) -> Result<> {
                DAEL_TRY(own->subject.engine->run(cipher, *key, message, s));
                return {};
            };
            const auto check = [=]() -> Result<> {
                DAEL_TRY(own->clock.fill(own->out.data(), bench::kPoison, work.size));
                DAEL_TRY(own->clock.run(launch));
                return bench::check_output(work, own->field->host.data(),
                                           own->clock.fetch_from(own->out.data()));
            };
            Heat heat;
            const auto copy = heat.enter("copy within device memory",
                                         own->clock.by_events(own->clock.copy_within(
                                             own->out.data(), own->in.data(), work.size)));
            heat.enter(shown, own->clock.by_events(launch), check,
                       Point{{"study_part", "the library"},
                             {"where", "library"},
                             {"backend", work.backend},
                             {"kernel", shown},
                             {"isa", form},
                             {"mode", point.text("mode")},
                             {"direction", "encrypt"},
                             {"bits", std::uint64_t{128}},
                             {"size", work.size},
                             {"measure", "kernel"}},
                       static_cast<double>(work.size), {copy});
            return heat;
        }};
}

Result<> run_placement(const Bench& bench) {
    for (const auto& device : kernel_devices(bench.report)) {
        measure::describe_device(bench.report.machine, device->access().info);
        DAEL_LET(field, Field::make(device, data_size(bench, *device)));
        DAEL_LET(own, own_kernels(bench, field));
        DAEL_TRY(bench.session.run(own));
        rank(bench.report, device->name());
        std::vector<std::string> forms{""};
        if (!bench.settings.quick)
            for (const char* form : {"tables=4", "tables=2", "tables=1", "tables=0", "tables=-1"})
                forms.emplace_back(form);
        for (const std::string& form : forms) {
            auto library = library_kernels(form, field);
            if (library) {
                DAEL_TRY(bench.session.run(*library));
            } else if (library.code() == Code::invalid_argument ||
                       library.code() == Code::unsupported) {
                bench.report.skip(device->name() + " " + form + ": " + library.error().message);
            } else {
                return std::move(library).error();
            }
        }
    }
    return {};
}

std::string heading(const measure::Machine& machine, const std::string& where) {
    if (where == "library") return "daelstrom's own kernels there";
    return machine.gpu + ", AES-128-ECB, where things lie (2017: on a GTX 285)";
}

std::string shown(const measure::Figures& figures) {
    std::string text;
    for (const auto& [name, value] : figures) {
        std::array<char, 32> number{};
        std::snprintf(number.data(), number.size(), "%.3g", value);
        text += (text.empty() ? "" : "  ") +
                std::string(name == "gbps_2017"   ? "2017: "
                            : name == "rank_2017" ? "2017: no. "
                                                  : "no. ") +
                number.data();
    }
    return text;
}

const measure::Columns& placement_columns() {
    static const auto field = [](const char* name) {
        return [name](const Point& p) { return p.text(name); };
    };
    static const measure::Columns all{
        {{"backend", false, field("backend")},
         {"kernel", false, field("kernel")},
         {"bytes/thread", true,
          [](const Point& p) {
              const auto bytes = p.number("bytes_per_thread");
              return bytes ? std::to_string(bytes) : std::string();
          }},
         {"tables", false,
          [](const Point& p) {
              const auto count = p.number("table_count");
              return (count ? std::to_string(count) + " " : std::string()) + p.text("tables");
          }},
         {"keys", false, field("keys")},
         {"state", false, field("state")},
         {"mode", false, field("mode")}},
        {"kernels", "library"},
        heading,
        shown};
    return all;
}

}  // namespace

const Study kPlacement{
    "placement",
    "Kazan 2017",
    "Where should T-tables, round keys and the state lie, and how fine should the work be cut?",
    run_placement,
    describe_fields,
    placement_columns};
}  // namespace dael::lab
