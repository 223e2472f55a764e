// SPDX-License-Identifier: Apache-2.0
// The engines for data in host memory that this machine has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <daelstrom/engine.hpp>

#include "bench/gcm.hpp"
#include "bench/session.hpp"
#include "bench/subject.hpp"

namespace dael::bench {

struct HostEngine {
    std::string backend;  // "cpu", "openssl"
    std::string isa;      // cpu only
    std::shared_ptr<Engine> engine;

    std::string label() const { return isa.empty() ? backend : backend + " " + isa; }
};

// With this many threads, the fastest cpu level first; `every_isa`: each of its levels, else the
// one. What is asked for and absent is skipped with a line.
std::vector<HostEngine> open_host_engines(Session& session, int threads, bool every_isa);

// A call of the engine on these messages.
std::function<Result<>()> engine_call(const HostEngine& engine, const TestKey& key,
                                      const Work& work, std::vector<Message> messages);

// A call that seals these messages under new nonces each time: the library's public one, or the
// backend's own, without the engine above it.
Result<std::function<Result<>()>> gcm_call(const HostEngine& engine, const TestKey& key,
                                           const Work& work, GcmMessages messages);
Result<std::function<Result<>()>> backend_gcm_call(const HostEngine& engine, const TestKey& key,
                                                   const Work& work, GcmMessages messages);

}  // namespace dael::bench
