// SPDX-License-Identifier: Apache-2.0
// Passphrases of sealed data, for C.
#include <daelstrom/daelstrom_sealed_lock.h>
#include <daelstrom/sealed_lock.hpp>

#include "capi/sealed.hpp"

using dael::Result;
using dael::sealed::Cost;
using dael::sealed::Lock;
using namespace dael::capi;

static_assert(DAEL_LOCK_SIZE == dael::sealed::kLockSize);

namespace {

Cost cost_or(const dael_cost* cost, Cost otherwise) noexcept {
    return cost ? Cost{cost->log2_n, cost->r, cost->p} : otherwise;
}
Lock lock_of(const std::uint8_t* bytes) noexcept {
    Lock lock;
    std::copy_n(bytes, lock.size(), lock.begin());
    return lock;
}

}  // namespace

extern "C" {

int dael_sealed_is_lock(const void* start, size_t size) {
    return start && dael::sealed::is_lock(bytes(start, size));
}
dael_status dael_sealed_lock_cost(const uint8_t lock[DAEL_LOCK_SIZE], dael_cost* cost) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{lock, "lock"}, {cost, "cost"}}));
        const Cost says = dael::sealed::cost_of(lock_of(lock));
        *cost = {says.log2_n, says.r, says.p};
        return {};
    });
}

dael_status dael_sealed_lock(dael_engine* engine, const void* passphrase, size_t size,
                             uint32_t segment, const dael_cost* cost, uint8_t lock[DAEL_LOCK_SIZE],
                             dael_sealed_keys** keys) {
    return hand_out(keys, "keys", [&]() -> Result<dael_sealed_keys*> {
        DAEL_TRY(given({{engine, "engine"}, {lock, "lock"}}));
        DAEL_TRY(readable(passphrase, size, "passphrase"));
        DAEL_LET(made, dael::sealed::make_lock(engine->engine, bytes(passphrase, size),
                                               segment_or_large(segment), cost_or(cost, {})));
        DAEL_LET(handle, make_keys(std::move(made.keys)));
        std::copy(made.lock.begin(), made.lock.end(), lock);
        return handle;
    });
}
dael_status dael_sealed_unlock(dael_engine* engine, const void* passphrase, size_t size,
                               const uint8_t lock[DAEL_LOCK_SIZE], const dael_cost* most,
                               dael_sealed_keys** keys) {
    return hand_out(keys, "keys", [&]() -> Result<dael_sealed_keys*> {
        DAEL_TRY(given({{engine, "engine"}, {lock, "lock"}}));
        DAEL_TRY(readable(passphrase, size, "passphrase"));
        return make_keys(dael::sealed::unlock(engine->engine, bytes(passphrase, size),
                                              lock_of(lock),
                                              cost_or(most, dael::sealed::kUsualLimit)));
    });
}
dael_status dael_sealed_relock(dael_engine* engine, const void* old_passphrase, size_t old_size,
                               const void* new_passphrase, size_t new_size,
                               const uint8_t lock[DAEL_LOCK_SIZE], const dael_cost* cost,
                               const dael_cost* most, uint8_t fresh[DAEL_LOCK_SIZE]) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {lock, "lock"}, {fresh, "fresh"}}));
        DAEL_TRY(readable(old_passphrase, old_size, "old_passphrase"));
        DAEL_TRY(readable(new_passphrase, new_size, "new_passphrase"));
        DAEL_LET(made,
                 dael::sealed::relock(engine->engine, bytes(old_passphrase, old_size),
                                      bytes(new_passphrase, new_size), lock_of(lock),
                                      cost_or(cost, {}), cost_or(most, dael::sealed::kUsualLimit)));
        std::copy(made.begin(), made.end(), fresh);
        return {};
    });
}

}  // extern "C"
