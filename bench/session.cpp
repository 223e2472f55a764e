// SPDX-License-Identifier: Apache-2.0
#include "bench/session.hpp"

#include "bench/check.hpp"
#include "bench/machine.hpp"
#include "io/text.hpp"

namespace dael::bench {

std::vector<Work> xts_works(const Session& session, int bits) {
    std::vector<Work> works;
    if (!session.options.xts || bits == 192) return works;
    for (const std::uint64_t sector : session.workload.sectors)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            Work work;
            work.mode = Mode::ecb;  // whose blocks are as independent as sectors are
            work.direction = direction;
            work.sector = sector;
            work.bits = bits;
            works.push_back(work);
        }
    return works;
}

Work gcm_work(int bits, Direction direction, const BatchShape& shape, std::uint64_t keys) {
    Work work;
    work.direction = direction;
    work.keys = keys;
    work.bits = bits;
    work.size = shape.size;
    work.messages = shape.count;
    return work;
}

bool wants_gcm(const Session& session, int bits) {
    return bits != 192 || !session.options.bits.empty();
}

std::size_t Heat::enter(std::string name, Sampler sample) {
    contestants_.push_back({std::move(name), std::move(sample)});
    return contestants_.size() - 1;
}

void Heat::row(Work work, std::size_t contestant, std::vector<std::size_t> yardsticks) {
    rows_.push_back({std::move(work), contestant, std::move(yardsticks)});
}

Result<> Heat::run(Session& session) const {
    if (rows_.empty()) return {};
    session.progress(describe(rows_.front().work));
    const auto series = compare(contestants_, session.workload.sampling);
    if (!series) return series.error();
    for (const auto& [work, contestant, others] : rows_) {
        std::vector<Yardstick> yardsticks;
        for (const std::size_t other : others)
            yardsticks.push_back({contestants_[other].name, &(*series)[other]});
        session.report.rows.push_back(make_row(work, (*series)[contestant], yardsticks));
    }
    return {};
}

std::uint64_t fitting(Session& session, std::uint64_t wanted, int buffers) {
    const std::uint64_t most = available_memory() / 4 * 3 / static_cast<unsigned>(buffers);
    if (wanted <= most) return wanted;
    session.skip("host memory: messages of more than " +
                 app::format_size(static_cast<double>(most)) +
                 ", for which too little memory is available");
    return most / kBlockSize * kBlockSize;
}

Result<Report> measure(const Options& options, std::function<void(const std::string&)> progress) {
    Report report;
    const Workload workload = make_workload(options);
    describe_build(report);
    report.suite = options.suite;
    report.machine = describe_host();
    Session session{options, workload, report, std::move(progress)};
    if (options.suite == "generations") {
        DAEL_TRY(measure_generations(session));
        return report;
    }
    DAEL_TRY(measure_one_core(session));
    DAEL_TRY(measure_all_cores(session));
    DAEL_TRY(measure_devices(session));
    return report;
}

}  // namespace dael::bench
