// SPDX-License-Identifier: Apache-2.0
// AES-GCM of packets with keystream made ahead of time (Hagenberg 2011): bench's suite of that
// name.
#include "bench/packets.hpp"
#include "lab/study.hpp"

namespace dael::lab {
namespace {

Result<> run_packets(const Bench& lab) {
    bench::Options options;
    options.suite = "packets";
    if (lab.settings.quick) {
        options.bits = {128};
        options.sizes = {1024};
        options.scale = 256;
    }
    bench::Workload workload = bench::make_workload(options);
    workload.sampling = lab.session.sampling;
    const bench::Suite suite{options, workload, lab.session};
    DAEL_LET(benchmarks, bench::packet_suite(suite));
    for (const Benchmark& benchmark : benchmarks) DAEL_TRY(lab.session.run(benchmark));
    return {};
}

}  // namespace

const Study kPackets{"packets",
                     "Hagenberg 2011",
                     "What is keystream made ahead of time worth to packets of IPsec?",
                     run_packets,
                     bench::describe_packets,
                     []() -> const measure::Columns& { return bench::columns("packets"); }};

}  // namespace dael::lab
