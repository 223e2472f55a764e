// SPDX-License-Identifier: Apache-2.0
// One core, small messages: each backend and instruction-set level against the bare library below
// it and against OpenSSL, taking turns on one pinned thread.
#include <algorithm>
#include <cstring>

#include "bench/check.hpp"
#include "bench/host_engines.hpp"
#include "bench/libraries.hpp"
#include "bench/team.hpp"

namespace dael::bench {
namespace {

constexpr std::uint64_t kTogether = 16;  // messages of a batch, as many as AVX-512 interleaves

class OneCore {
  public:
    OneCore(Session& session, std::vector<HostEngine> engines)
        : session_(session), engines_(std::move(engines)) {}

    // All contestants on `work`, which lacks only the backend and its level.
    Result<> race(Work work, const TestKey& key) {
        DAEL_TRY(prepare(work));
        const auto messages = lay_out(work, source_, target_);
        Heat heat;
        auto evp = Evp::open(work.mode, work.direction, key);
        if (!evp) return std::move(evp).error();
        const std::size_t openssl =
            heat.enter("OpenSSL EVP called directly",
                       sampler([&evp = *evp, &messages] { return evp.run(messages); }));
        std::vector<std::unique_ptr<IpsecMb>> libraries;
        for (const HostEngine& engine : engines_) {
            work.backend = engine.backend;
            work.isa = engine.isa;
            const auto call = engine_call(engine, key, work, messages);
            DAEL_TRY(verify(work, key, call));
            std::vector<std::size_t> yardsticks{openssl};
            if (engine.backend == "cpu")
                if (auto library =
                        IpsecMb::open(engine.isa, work.mode, work.direction, key, work.size)) {
                    yardsticks.insert(yardsticks.begin(),
                                      heat.enter("libipsec-mb called directly",
                                                 sampler([library = library.get(), &messages] {
                                                     return library->run(messages);
                                                 })));
                    libraries.push_back(std::move(library));
                }
            heat.row(work, heat.enter(engine.label(), sampler(call)), std::move(yardsticks));
        }
        return heat.run(session_);
    }

    // GCM: the public call and the backend's own, on `work`, which lacks the same.
    Result<> race_gcm(Work work, const TestKey& key) {
        DAEL_TRY(prepare(work));
        tags_.assign(work.messages * kTagSize, kPoison);
        const GcmMessages messages(work, source_, target_, tags_.data());
        Heat heat;
        auto evp = EvpGcm::open(key.bytes());
        if (!evp) return std::move(evp).error();
        const std::size_t openssl = heat.enter(
            "OpenSSL EVP called directly",
            sampler([&evp = *evp, own = messages]() mutable { return evp.seal(own.renew()); }));
        for (const HostEngine& engine : engines_) {
            work.backend = engine.backend;
            work.isa = engine.isa;
            std::vector<std::size_t> yardsticks{openssl};
            if (engine.backend == "cpu")
                if (std::shared_ptr library = IpsecMbGcm::open(engine.isa, key))
                    yardsticks.insert(yardsticks.begin(),
                                      heat.enter("libipsec-mb called directly",
                                                 sampler([library, own = messages]() mutable {
                                                     return library->seal(own.renew());
                                                 })));
            for (const bool public_call : {true, false}) {
                work.measure = public_call ? "call" : "backend";
                auto call = public_call ? gcm_call(engine, key, work, messages)
                                        : backend_gcm_call(engine, key, work, messages);
                if (!call) return std::move(call).error();
                std::memset(target_, kPoison, work.size * work.messages);
                std::ranges::fill(tags_, kPoison);
                DAEL_TRY((*call)());
                DAEL_TRY(check_sealed(work, key, source_, fetch_from(target_),
                                      fetch_from(tags_.data())));
                heat.row(work, heat.enter(engine.label(), sampler(std::move(*call))), yardsticks);
            }
        }
        return heat.run(session_);
    }

  private:
    Sampler sampler(std::function<Result<>()> call) const {
        return wall_clock(std::move(call), session_.workload.sampling);
    }

    Result<> prepare(const Work& work) {
        const std::size_t size = work.size * work.messages;
        if (!in_.data() || in_.size() < size + kBlockSize) {
            auto in = HostBuffer::allocate(size + kBlockSize),
                 out = HostBuffer::allocate(size + kBlockSize);
            if (!in) return std::move(in).error();
            if (!out) return std::move(out).error();
            in_ = std::move(*in);
            out_ = std::move(*out);
            Team alone(1);
            fill_random(alone, in_.data(), in_.size(), 1);
        }
        source_ = in_.data() + (work.placement == "unaligned" ? 1 : 0);
        target_ = out_.data() + (work.placement == "unaligned" ? 3 : 0);
        if (work.placement == "in place") source_ = target_;
        return {};
    }

    Result<> verify(const Work& work, const TestKey& key, const std::function<Result<>()>& call) {
        const std::size_t size = work.size * work.messages;
        const bool in_place = source_ == target_;
        if (in_place)
            std::memcpy(target_, in_.data(), size);
        else
            std::memset(target_, kPoison, size);
        DAEL_TRY(call());
        return check_output(work, key, in_place ? in_.data() : source_, target_);
    }

    Session& session_;
    std::vector<HostEngine> engines_;
    HostBuffer in_, out_;
    std::vector<std::uint8_t> tags_;
    std::uint8_t* source_ = nullptr;
    std::uint8_t* target_ = nullptr;
};

}  // namespace

Result<> measure_one_core(Session& session) {
    const PinnedThread pinned;
    auto engines = open_host_engines(session, 1, session.workload.every_isa);
    if (engines.empty()) return {};
    OneCore one_core(session, std::move(engines));
    for (const int bits : session.workload.bits) {
        const auto key = TestKey::make(bits);
        if (!key) return key.error();
        for (const auto [mode, direction] : ways(session.options))
            for (const std::uint64_t size : session.workload.one_core) {
                Work work;
                work.mode = mode;
                work.direction = direction;
                work.bits = bits;
                work.size = size;
                work.where = "cache";
                DAEL_TRY(one_core.race(work, *key));
                if (!parallel_within_message(mode, direction)) {
                    work.messages = kTogether;
                    DAEL_TRY(one_core.race(work, *key));
                } else if (bits == 128 && (mode == Mode::ctr || mode == Mode::cbc)) {
                    for (const char* placement : {"in place", "unaligned"}) {
                        work.placement = placement;
                        DAEL_TRY(one_core.race(work, *key));
                    }
                }
            }
        if (!session.options.gcm || !wants_gcm(session, bits)) continue;
        for (const BatchShape& shape : session.workload.gcm_cache) {
            Work work = gcm_work(bits, Direction::encrypt, shape, 1);
            work.where = "cache";
            DAEL_TRY(one_core.race_gcm(work, *key));
        }
    }
    return {};
}

}  // namespace dael::bench
