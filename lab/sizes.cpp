// SPDX-License-Identifier: Apache-2.0
// From 16 KiB to 1 GiB, by mode, key size, backend and threads, as Potesil's tables have it (Brno
// 2011): bench's own benchmarks over more sizes; and the size from which on a way beats OpenSSL on
// one core.
#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "bench/suite.hpp"
#include "lab/figures.hpp"
#include "lab/kernel_device.hpp"
#include "lab/study.hpp"
#include "measure/machine.hpp"
#include "measure/team.hpp"

namespace dael::lab {
namespace {

constexpr std::uint64_t GiB = 1 << 30;
// On the host's cores: in one core's cache, in that of all, and in memory.
constexpr std::array<std::uint64_t, 3> kForEveryKey{16 * KiB, MiB, 64 * MiB};

bench::Options options_of(const Settings& settings) {
    bench::Options options;
    options.modes = {"ecb", "cbc", "ctr"};
    options.bits = settings.quick ? std::vector{128} : std::vector{128, 192, 256};
    options.sizes = settings.quick
                        ? std::vector<std::uint64_t>{16 * KiB, 256 * KiB, 4 * MiB}
                        : std::vector<std::uint64_t>{16 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB,
                                                     16 * MiB, 64 * MiB, 256 * MiB, GiB};
    std::erase_if(options.sizes,
                  [&](std::uint64_t size) { return size > std::max(MiB, GiB / settings.scale); });
    return options;
}

// A workload with these sizes and no batches but the least that a benchmark of modes that are
// sequential asks for.
bench::Workload workload_of(const bench::Options& options, const measure::Sampling& sampling) {
    bench::Workload workload = bench::make_workload(options);
    workload.sampling = sampling;
    workload.parallel.clear();
    workload.sequential = {{4 * KiB, 64}};
    workload.host_sequential = {4 * KiB, 64};
    workload.gcm_device.clear();
    workload.gcm_cache.clear();
    workload.gcm_host = {4 * KiB, 2};
    return workload;
}

// A point is measured once, whichever numbers of threads it comes up with.
void drop_repeated(std::vector<measure::Row>& rows) {
    std::vector<measure::Row> once;
    for (auto& row : rows)
        if (std::ranges::none_of(once, [&](const auto& o) { return o.point == row.point; }))
            once.push_back(std::move(row));
    rows = std::move(once);
}

// Without ECB decryption, which is as fast as encryption; CBC has a decryption of its own.
void narrow(Benchmark& benchmark, std::function<bool(const Point&)> keep) {
    benchmark.has = [has = std::move(benchmark.has), keep = std::move(keep)](const Point& point) {
        if (point.text("mode") == "ecb" && point.text("direction") == "decrypt") return false;
        return keep(point) && (!has || has(point));
    };
}

// One core, from its own cache: by each of the processor's instructions for AES that the backend
// `cpu` has, which larger data would hide behind the memory.
Result<> run_forms(const Bench& lab, const bench::Options& options) {
    bench::Workload workload = workload_of(options, lab.session.sampling);
    workload.every_form = true;
    const bench::Suite suite{options, workload, lab.session};
    DAEL_LET(benchmark, bench::one_core(suite));
    narrow(benchmark, [](const Point& point) {
        return point.text("placement") == "apart" && point.number("keys") == 0;
    });
    return lab.session.run(benchmark);
}

Result<> run_host(const Bench& lab, bench::Options options) {
    const int all = measure::thread_count(0);
    const std::vector<int> bits = options.bits;
    for (int threads = 1;; threads = std::min(2 * threads, all)) {
        options.threads = threads;
        // How a key's size tells is seen at both ends; in between the first does.
        options.bits = threads == 1 || threads == all ? bits : std::vector{bits.front()};
        const auto workload = workload_of(options, lab.session.sampling);
        const bench::Suite suite{options, workload, lab.session};
        DAEL_LET(benchmark, bench::all_cores(suite));
        narrow(benchmark, [=,
                           first = static_cast<std::uint64_t>(bits.front())](const Point& point) {
            const bool every_size = point.number("bits") == first || point.number("messages") > 1;
            return (threads == 1 || point.number("threads") != 1) &&  // one has had its turn
                   (every_size || std::ranges::count(kForEveryKey, point.number("size")) != 0);
        });
        DAEL_TRY(lab.session.run(benchmark));
        if (threads == all) break;
    }
    drop_repeated(lab.report.rows);
    return {};
}

Result<> run_device(const Bench& lab, const std::string& name, bench::Options options) {
    auto subject = bench::DeviceUnderTest::open(name);
    if (!subject) {
        lab.report.skip(name + ": " + subject.error().message);
        return {};
    }
    measure::describe_device(lab.report.machine, subject->device.info);
    if (name.starts_with("opencl")) {
        DAEL_LET(kernels, open_opencl_kernels());
        const std::uint64_t most = lab.settings.quick ? 16 * KiB : MiB;
        if (kernels->is_cpu()) {
            std::erase_if(options.sizes, [most](std::uint64_t size) { return size > most; });
            lab.report.skip(name + ": a processor that plays a device; what is larger than " +
                            std::to_string(most >> 10) + " KiB would take minutes");
        }
    }
    for (const auto make : {bench::resident, bench::through}) {
        // The way through memory is the same for every key; one device shows it.
        if (make == bench::through && name.starts_with("opencl")) options.bits.resize(1);
        const auto workload = workload_of(options, lab.session.sampling);
        const bench::Suite suite{options, workload, lab.session};
        auto benchmark = make(suite, *subject);
        if (benchmark) {
            narrow(*benchmark, [](const Point&) { return true; });
            DAEL_TRY(lab.session.run(*benchmark));
        } else if (benchmark.code() == Code::out_of_memory) {
            lab.report.skip(name + ": " + benchmark.error().message);
        } else {
            return std::move(benchmark).error();
        }
    }
    return {};
}

bool from_host_memory(const measure::Row& row) {
    const std::string& where = row.point.text("where");
    return row.point.number("messages") <= 1 &&
           (where == "host" ||
            ((where == "pinned" || where == "pageable") && row.point.text("measure") == "async"));
}

}  // namespace

void mark_crossovers(std::vector<measure::Row>& rows) {
    const auto without = [](Point point, std::initializer_list<const char*> fields) {
        for (const char* field : fields) point.set(field, std::string());
        return point;
    };
    // The work alone, whoever does it, and OpenSSL's rate at it.
    const auto work_of = [&](const measure::Row& row) {
        return describe_fields(
            without(row.point, {"backend", "isa", "threads", "where", "measure"}));
    };
    std::map<std::string, double> openssl;
    for (const auto& row : rows)
        if (row.point.text("backend") == "openssl" && row.point.number("threads") == 1 &&
            from_host_memory(row))
            openssl[work_of(row)] = row.gbps.median;
    // Of each way the rows by size, the largest first: as long as they are faster, it pays.
    std::map<std::string, std::vector<measure::Row*>> ways;
    for (auto& row : rows)
        if (from_host_memory(row) && openssl.contains(work_of(row)))
            ways[describe_fields(without(row.point, {"size"}))].push_back(&row);
    for (auto& [name, sizes] : ways) {
        std::ranges::sort(sizes, [](const auto* a, const auto* b) {
            return a->point.number("size") > b->point.number("size");
        });
        measure::Row* crossover = nullptr;
        for (measure::Row* row : sizes) {
            if (row->gbps.median <= openssl[work_of(*row)]) break;
            crossover = row;
        }
        if (crossover) crossover->figures.emplace_back("crossover", 1);
    }
}

namespace {

Result<> run_sizes(const Bench& lab) {
    const bench::Options options = options_of(lab.settings);
    DAEL_TRY(run_host(lab, options));
    DAEL_TRY(run_forms(lab, options));
    for (const char* device : {"cuda:0", "opencl:0"}) DAEL_TRY(run_device(lab, device, options));
    mark_crossovers(lab.report.rows);
    return {};
}

const measure::Columns& sizes_columns() {
    static const measure::Columns all = [] {
        measure::Columns columns = bench::columns("quick");
        columns.figures = [](const measure::Figures& figures) {
            return std::string(figures.empty() ? ""
                                               : "from here on faster than OpenSSL on one core");
        };
        return columns;
    }();
    return all;
}

}  // namespace

const Study kSizes{"sizes",
                   "Brno 2011",
                   "How fast is each way from 16 KiB to 1 GiB, and from where on does it pay?",
                   run_sizes,
                   [](const Point& point) { return bench::describe(bench::Work(point)); },
                   sizes_columns};

}  // namespace dael::lab
