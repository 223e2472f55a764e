// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <set>

#include <daelstrom/gcm.hpp>

#include "bench/check.hpp"
#include "bench/suite.hpp"

namespace dael::bench {
namespace {

using measure::Heat;
using measure::HostBuffer;

constexpr std::uint64_t kTogether = 16;  // messages of a batch, as many as AVX-512 interleaves

// Messages of a mode that authenticates, sealed for others to open.
struct SealedOnes {
    HostBuffer data;
    std::vector<std::uint8_t> tags;
};

struct OneCore {
    measure::PinnedThread pinned;
    measure::Sampling sampling;
    std::vector<HostEngine> engines;
    HostBuffer in, out;
    std::vector<std::uint8_t> tags;
    SealedOnes sealed, sealed_by_gcm;
    std::set<std::string> lacking{};  // what an engine said it has not, once
    Report* report = nullptr;

    // Poisons the output, calls once, and compares.
    Result<> check(const Work& work, const std::uint8_t* source, std::uint8_t* target,
                   const std::function<Result<>()>& call) {
        if (source == target)
            std::memcpy(target, in.data(), work.bytes());
        else
            std::memset(target, kPoison, work.bytes());
        std::ranges::fill(tags, kPoison);
        DAEL_TRY(call());
        if (work.opens()) return check_opened(work, in.data(), measure::fetch_from(target));
        return check_output(work, source == target ? in.data() : source,
                            measure::fetch_from(target),
                            work.tagged() ? measure::fetch_from(tags.data()) : Fetch{});
    }

    // The engine's call. What it opens it has sealed before.
    Result<HostCall> call_of(const HostEngine& engine, const Work& work, SealedOnes& by_it) {
        if (!work.opens())
            return host_call(engine, work, lay_out(work, in.data(), out.data(), tags.data()));
        Work sealing = work;
        sealing.cipher.direction = Direction::encrypt;
        DAEL_LET(seals, host_call(engine, sealing,
                                  lay_out(work, in.data(), by_it.data.data(), by_it.tags.data())));
        DAEL_TRY(seals.call());
        return host_call(engine, work,
                         lay_out(work, by_it.data.data(), out.data(), by_it.tags.data()));
    }

    // AEGIS, XAES-256-GCM and GCM-SIV: against the same engine's GCM under one key, of as many
    // bits.
    Result<Heat> prepare_beside_gcm(Work work) {
        Heat heat;
        for (const HostEngine& engine : engines) {
            const std::string what = engine.label() + " " + std::string(name(work.cipher.mode));
            if (lacking.contains(what)) continue;
            work.backend = engine.backend;
            work.form = engine.form;
            Work gcm = work;
            gcm.cipher.mode = Mode::gcm;
            DAEL_LET(beside, call_of(engine, gcm, sealed_by_gcm));
            auto made = call_of(engine, work, sealed);
            const auto once = made ? made->call() : made.error();
            if (once.code() == Code::unsupported) {
                lacking.insert(what);
                report->skip(what + ": " + once.error().message);
                continue;
            }
            DAEL_TRY(once);
            const auto check = [=, this]() -> Result<> {
                DAEL_LET(anew, call_of(engine, work, sealed));  // from the first nonces on
                return this->check(work, in.data(), out.data(), anew.call);
            };
            const auto ceiling = heat.enter(cipher_name(gcm) + ", the same engine",
                                            measure::wall_clock(beside.call, sampling));
            heat.enter(engine.label(), measure::wall_clock(made->call, sampling), check,
                       work.point(), static_cast<double>(work.bytes()), {ceiling});
        }
        return heat;
    }

    Result<Heat> prepare(Work work) {
        if (work.tagged() && !work.is(Mode::gcm)) return prepare_beside_gcm(std::move(work));
        const bool shifted = work.placement == "unaligned";
        std::uint8_t* const target = out.data() + (shifted ? 3 : 0);
        const std::uint8_t* const source =
            work.placement == "in place" ? target : in.data() + (shifted ? 1 : 0);
        const auto messages = lay_out(work, source, target, tags.data());
        // Every contestant's messages get new nonces, as a program's would.
        const auto library = [&](Call call) {
            return measure::wall_clock(
                [call = std::move(call), own = messages, next = std::uint64_t{0},
                 renews = work.is(Mode::gcm)]() mutable {
                    if (renews) renew(Mode::gcm, own, next);
                    return call(own);
                },
                sampling);
        };
        Heat heat;
        DAEL_LET(opened, Evp::open(work.cipher, key_bytes(work)));
        const auto evp = std::make_shared<Evp>(std::move(opened));
        const auto openssl =
            heat.enter("OpenSSL EVP called directly",
                       library([evp](std::span<const Message> m) { return evp->run(m); }));
        for (const HostEngine& engine : engines) {
            work.backend = engine.backend;
            work.form = engine.form;
            std::vector<std::size_t> against{openssl};
            if (engine.backend == "cpu")
                if (Call call = ipsec_mb(engine.form, work))
                    against.insert(against.begin(), heat.enter("libipsec-mb called directly",
                                                               library(std::move(call))));
            DAEL_LET(made, host_call(engine, work, messages));
            heat.enter(
                engine.label(), measure::wall_clock(made.call, sampling),
                [=, this, call = made.call] { return check(work, source, target, call); },
                work.point(), static_cast<double>(work.bytes()), std::move(against));
        }
        return heat;
    }
};

}  // namespace

Result<Benchmark> one_core(const Suite& suite) {
    const auto state = std::make_shared<OneCore>();
    const Workload& workload = suite.workload;
    state->sampling = workload.sampling;
    state->report = &suite.session.report;
    state->engines = open_host_engines(suite, 1, workload.every_form);
    measure::Axis shapes;
    std::uint64_t largest = 0, most = 1;
    for (const std::uint64_t size : workload.one_core)
        for (const std::uint64_t count : {std::uint64_t{1}, kTogether}) {
            shapes.push_back(shape(size, count));
            largest = std::max(largest, size * count);
        }
    for (const auto& [size, count] : workload.gcm_cache) {
        shapes.push_back(shape(size, count, 1));
        largest = std::max(largest, size * count);
        most = std::max(most, count);
    }
    for (HostBuffer* buffer :
         {&state->in, &state->out, &state->sealed.data, &state->sealed_by_gcm.data}) {
        DAEL_LET(memory, HostBuffer::allocate(largest + kBlockSize));
        *buffer = std::move(memory);
    }
    for (auto* tags : {&state->tags, &state->sealed.tags, &state->sealed_by_gcm.tags})
        tags->resize(most * gcm::kTagSize);
    measure::Team alone(1);
    measure::fill_random(alone, state->in.data(), state->in.size(), 1);

    Benchmark benchmark{
        "one core",
        {measure::Axis{Point{{"where", "cache"}, {"threads", std::uint64_t{1}}}},
         measure::axis("bits", workload.bits), ways(suite.options), std::move(shapes),
         measure::axis("placement", std::vector<const char*>{"apart", "in place", "unaligned"})},
        [options = suite.options](const Point& point) {
            const Work work(point);
            const bool apart = work.placement == "apart";
            if (!has_bits(options, work) || work.is(Mode::xts) || work.mac_only) return false;
            if (work.tagged() && !work.is(Mode::gcm))
                return apart && work.keys == 1 && (!work.opens() || work.bytes() >= 16 << 10);
            if (work.is(Mode::gcm))
                return apart && work.keys == 1 && work.cipher.direction == Direction::encrypt;
            if (work.keys != 0 || (work.messages != 1 && work.parallel())) return false;
            return apart || (work.parallel() && work.bits == 128 &&
                             (work.is(Mode::ctr) || work.is(Mode::cbc)));
        },
        [state](const Point& point) { return state->prepare(Work(point)); }};
    if (state->engines.empty()) benchmark.axes = {measure::Axis{}};
    return benchmark;
}

}  // namespace dael::bench
