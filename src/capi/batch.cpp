// SPDX-License-Identifier: Apache-2.0
// Data in device memory, for C: one message, prepared batches, and a few messages without one.
#include <new>
#include <vector>

#include "capi/shared.hpp"

struct dael_batch {
    dael::Batch batch;
};

using dael::Code;
using dael::Error;
using dael::Result;
using namespace dael::capi;

extern "C" {

dael_status dael_run_device(dael_engine* engine, const dael_cipher* what, const dael_key* key,
                            const dael_message* to, void* stream, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {what, "cipher"}, {key, "key"}, {to, "message"}}));
        return report(
            engine->engine.run(cipher(what), key->key, *message(to), dael::Stream{stream}), ran);
    });
}

dael_status dael_prepare(dael_engine* engine, const dael_cipher* what, const dael_key_set* keys,
                         const dael_message* messages, uint32_t count,
                         const dael_prepare_options* options, dael_batch** batch) {
    return hand_out(batch, "batch", [&]() -> Result<dael_batch*> {
        DAEL_TRY(given({{engine, "engine"}, {what, "cipher"}, {keys, "keys"}}));
        DAEL_TRY(readable(messages, count, "messages"));
        DAEL_LET(chosen, sized(options, "dael_prepare_options"));
        DAEL_TRY(spare({chosen.unused}, "dael_prepare_options"));
        if (chosen.place != DAEL_PLACE_HOST && chosen.place != DAEL_PLACE_DEVICE)
            return Error{Code::invalid_argument, "no place " + std::to_string(chosen.place) +
                                                     "; 0 is the host, 1 the device"};
        DAEL_LET(prepared, engine->engine.prepare(
                               cipher(what), keys->keys,
                               {.list = message(messages),
                                .count = count,
                                .place = static_cast<dael::Place>(chosen.place),
                                .number = chosen.number,
                                .nonces = reinterpret_cast<dael::DeviceNonces*>(chosen.nonces),
                                .longest = chosen.longest}));
        return new dael_batch{std::move(prepared)};
    });
}

dael_status dael_launch(dael_engine* engine, dael_batch* batch, void* stream, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {batch, "batch"}}));
        return report(engine->engine.launch(batch->batch, dael::Stream{stream}), ran);
    });
}

const uint32_t* dael_batch_codes(const dael_batch* batch) {
    return batch ? batch->batch.codes() : nullptr;
}
dael_status dael_results(const dael_batch* batch, void* stream, int32_t* codes, size_t count) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{batch, "batch"}}));
        DAEL_TRY(readable(codes, count, "codes"));
        DAEL_LET(results, batch->batch.results(dael::Stream{stream}));
        if (count < results.size())
            return Error{Code::invalid_argument, "room for " + std::to_string(count) +
                                                     " codes; the batch has " +
                                                     std::to_string(results.size()) + " messages"};
        std::transform(results.begin(), results.end(), codes,
                       [](Code code) { return static_cast<int32_t>(code); });
        return {};
    });
}
void dael_batch_free(dael_batch* batch) {
    release(batch);
}

dael_status dael_launch_messages(dael_engine* engine, const dael_cipher* what,
                                 const dael_key_set* keys, const dael_message* messages,
                                 uint32_t count, void* stream, const dael_launch_options* options,
                                 dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {what, "cipher"}, {keys, "keys"}}));
        DAEL_TRY(readable(messages, count, "messages"));
        DAEL_LET(chosen, sized(options, "dael_launch_options"));
        DAEL_TRY(spare({chosen.unused}, "dael_launch_options"));
        return report(
            engine->engine.launch(cipher(what), keys->keys, {message(messages), count},
                                  dael::Stream{stream},
                                  {.codes = chosen.codes, .host_aad = chosen.host_aad != 0}),
            ran);
    });
}

}  // extern "C"
