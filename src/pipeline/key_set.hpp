// SPDX-License-Identifier: Apache-2.0
// What is behind a KeySet: its keys as the engine's backends want them.
#pragma once

#include <map>
#include <mutex>

#include "pipeline/engine_state.hpp"

namespace dael {

struct KeySet::State {
    const Engine::State* engine = nullptr;  // whose keys they are
    std::size_t count = 0;

    pipeline::HostKeys host;  // null where a device is forced

    // The keys as a device wants them, made at the first need. Errors: as Device::prepare_keys.
    Result<const core::PreparedKeys*> on(pipeline::Lane& lane);

    // The device that holds this memory, and the keys on it. Errors: as lane_of() and on().
    struct There {
        pipeline::Lane* lane;
        const core::PreparedKeys* prepared;
    };
    Result<There> where(Engine::State& its_engine, const void* device_memory);

    // For devices, and for modes other than GCM. None in a set for one GCM message.
    std::vector<Key> keys;

  private:
    std::mutex mutex_;
    std::map<pipeline::Lane*, std::unique_ptr<core::PreparedKeys>> on_devices_;
};

}  // namespace dael
