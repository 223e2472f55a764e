// SPDX-License-Identifier: Apache-2.0
#include "bench/host_engines.hpp"

#include <algorithm>
#include <array>

#include "core/registry.hpp"

namespace dael::bench {
namespace {

bool open_into(std::vector<HostEngine>& engines, Session& session, const std::string& backend,
               const std::string& isa, int threads) {
    EngineOptions options;
    options.backend = backend;
    options.isa = isa;
    options.threads = threads;
    auto engine = Engine::open(options);
    if (!engine) {
        session.skip((isa.empty() ? backend : backend + " " + isa) + ": " + engine.error().message);
        return false;
    }
    engines.push_back({backend, isa, std::make_shared<Engine>(std::move(*engine))});
    return true;
}

}  // namespace

std::vector<HostEngine> open_host_engines(Session& session, int threads, bool every_isa) {
    std::vector<HostEngine> engines;
    if (wants_backend(session.options, "cpu")) {
        if (!session.options.isa.empty()) {
            open_into(engines, session, "cpu", session.options.isa, threads);
        } else {
            for (const char* isa : {"avx512", "avx2", "sse"})
                if (open_into(engines, session, "cpu", isa, threads) && !every_isa) break;
        }
    }
    if (wants_backend(session.options, "openssl"))
        open_into(engines, session, "openssl", "", threads);
    return engines;
}

std::function<Result<>()> engine_call(const HostEngine& engine, const TestKey& key,
                                      const Work& work, std::vector<Message> messages) {
    const auto drop = [](Result<Ran> ran) -> Result<> {
        DAEL_TRY(std::move(ran));
        return {};
    };
    if (work.sector != 0)
        return [=, engine = engine.engine, &key, direction = work.direction,
                sectors = XtsSectors{kFirstSector, work.sector}, message = messages.front()] {
            const HostIn in(message.in, message.size);
            const HostOut out(message.out, message.size);
            return drop(direction == Direction::encrypt
                            ? engine->xts_encrypt(*key.xts, sectors, in, out)
                            : engine->xts_decrypt(*key.xts, sectors, in, out));
        };
    if (messages.size() == 1)  // the call that a program with one message would make
        return [=, engine = engine.engine, &key, message = messages.front(),
                cipher = Cipher{work.mode, work.direction, messages.front().iv, 0}] {
            return drop(engine->run(key.key, cipher, HostIn(message.in, message.size),
                                    HostOut(message.out, message.size)));
        };
    return [=, engine = engine.engine, &key, mode = work.mode, direction = work.direction,
            messages = std::move(messages)] {
        return drop(engine->run(key.key, mode, direction, messages));
    };
}

Result<std::function<Result<>()>> gcm_call(const HostEngine& engine, const TestKey& key,
                                           const Work& work, GcmMessages messages) {
    struct Sealing {  // what goes last stands first
        std::shared_ptr<Engine> engine;
        KeySet keys;
        Work work;
        GcmMessages messages;
        std::vector<Code> results;
    };
    const auto keys = gcm_keys(key, work.keys);
    if (!keys) return keys.error();
    auto prepared = engine.engine->prepare_keys(*keys);
    if (!prepared) return std::move(prepared).error();
    auto sealing = std::make_shared<Sealing>(
        Sealing{engine.engine, std::move(*prepared), work, std::move(messages),
                std::vector<Code>(work.messages, Code::internal)});
    return std::function<Result<>()>([sealing]() -> Result<> {
        Sealing& s = *sealing;
        DAEL_TRY(s.engine->seal_batch(s.keys, s.messages.renew(), s.results));
        return check_results(s.work, s.results);
    });
}

Result<std::function<Result<>()>> backend_gcm_call(const HostEngine& engine, const TestKey& key,
                                                   const Work& work, GcmMessages messages) {
    struct Sealing {
        std::unique_ptr<core::Backend> backend;
        std::unique_ptr<core::PreparedKeys> keys;
        Work work;
        GcmMessages messages;
        std::vector<core::GcmSegment> segments;
        std::vector<Code> results;
    };
    const auto keys = gcm_keys(key, work.keys);
    if (!keys) return keys.error();
    auto backend = core::open_backend(engine.backend, {engine.isa, 0});
    if (!backend) return std::move(backend).error();
    auto prepared = (*backend)->prepare_keys(*keys);
    if (!prepared) return std::move(prepared).error();
    auto sealing =
        std::make_shared<Sealing>(Sealing{std::move(*backend),
                                          std::move(*prepared),
                                          work,
                                          std::move(messages),
                                          {},
                                          std::vector<Code>(work.messages, Code::internal)});
    sealing->segments = sealing->messages.segments();
    return std::function<Result<>()>([sealing]() -> Result<> {
        Sealing& s = *sealing;
        s.messages.renew();
        DAEL_TRY(s.backend->gcm(Direction::encrypt, *s.keys, s.segments, s.results));
        return check_results(s.work, s.results);
    });
}

}  // namespace dael::bench
