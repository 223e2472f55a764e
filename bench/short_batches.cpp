// SPDX-License-Identifier: Apache-2.0
// Batches of short messages on one core, on two, four and so on: a call on many cores is as fast as
// the part of it that one core does alone lets it be.
#include <algorithm>
#include <cstring>
#include <map>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/suite.hpp"

namespace dael::bench {
namespace {

using measure::Heat;
using measure::HostBuffer;
using measure::Team;

struct ShortBatches {
    measure::Sampling sampling;
    std::map<int, std::vector<HostEngine>> engines;  // by threads
    std::map<int, std::unique_ptr<Team>> teams;
    HostBuffer in, out;
    std::vector<std::uint8_t> tags;

    // What is timed is the library's call, with nonces that are there, the same each time: what is
    // sealed is thrown away.
    Result<std::function<Result<>()>> call(const HostEngine& engine, const Work& work,
                                           std::vector<Message> messages, int* took_part) {
        struct HostBatch {
            std::shared_ptr<Engine> engine;
            KeySet keys;
            std::vector<Message> messages;
            std::vector<Code> codes;
        };
        DAEL_LET(keys, make_keys(work));
        DAEL_LET(set, engine.engine->keys(keys));
        const auto batch = std::make_shared<HostBatch>(
            HostBatch{engine.engine, std::move(set), std::move(messages),
                      std::vector<Code>(work.messages, Code::internal)});
        std::uint64_t next = 0;
        renew(work.cipher.mode, batch->messages, next);
        return std::function<Result<>()>([batch, cipher = work.cipher, took_part]() -> Result<> {
            HostBatch& b = *batch;
            DAEL_LET(ran, b.engine->run(cipher, b.keys, b.messages, b.codes));
            *took_part = ran.threads;
            return {};
        });
    }

    Result<Heat> prepare(Work work) {
        Heat heat;
        const auto ceiling = enter_memcpy(heat, *teams.at(work.threads), out.data(), in.data(),
                                          work.bytes(), sampling);
        const auto messages = lay_out(work, in.data(), out.data(), tags.data());
        const int threads = work.threads;
        for (const HostEngine& engine : engines.at(threads)) {
            work.backend = engine.backend;
            work.form = engine.form;
            const auto took_part = std::make_shared<int>(0);
            DAEL_LET(made, call(engine, work, messages, took_part.get()));
            const auto check = [this, work, made, took_part]() -> Result<> {
                std::memset(out.data(), kPoison, work.bytes());
                std::ranges::fill(tags, kPoison);
                DAEL_TRY(made());
                return check_output(work, in.data(), measure::fetch_from(out.data()),
                                    measure::fetch_from(tags.data()));
            };
            heat.keep(took_part);
            heat.enter(engine.label(), measure::wall_clock(made, sampling), check, work.point(),
                       static_cast<double>(work.bytes()), {ceiling});
        }
        return heat;
    }
};

}  // namespace

Result<Benchmark> short_batches(const Suite& suite) {
    const auto state = std::make_shared<ShortBatches>();
    state->sampling = suite.workload.sampling;
    const int most = measure::thread_count(suite.options.threads);
    std::vector<int> counts;
    for (int threads = 1; threads < most; threads *= 2) counts.push_back(threads);
    counts.push_back(most);
    for (const int threads : counts) {
        state->engines[threads] = open_host_engines(suite, threads, false);
        state->teams[threads] = std::make_unique<Team>(threads);
    }
    std::uint64_t largest = 0, messages = 0;
    measure::Axis shapes;
    for (const auto& [size, count] : suite.workload.gcm_short) {
        shapes.push_back(shape(size, count, 1));
        largest = std::max(largest, size * count);
        messages = std::max(messages, count);
    }
    for (HostBuffer* buffer : {&state->in, &state->out}) {
        DAEL_LET(memory, HostBuffer::allocate(largest));
        *buffer = std::move(memory);
    }
    measure::fill_random(*state->teams.at(most), state->in.data(), largest, 2);
    state->tags.resize(messages * gcm::kTagSize);
    return Benchmark{
        "short messages on many cores",
        {measure::Axis{Point{{"where", "host"}}}, measure::axis("bits", std::vector<int>{128}),
         ways(suite.options), std::move(shapes), measure::axis("threads", counts)},
        [options = suite.options](const Point& point) {
            const Work work(point);
            return work.is(Mode::gcm) && !work.mac_only && has_bits(options, work) &&
                   work.cipher.direction == Direction::encrypt;
        },
        [state](const Point& point) { return state->prepare(Work(point)); }};
}

}  // namespace dael::bench
