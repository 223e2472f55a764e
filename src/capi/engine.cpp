// SPDX-License-Identifier: Apache-2.0
// Engines, keys, key sets and messages in host memory, for C.
#include <new>
#include <vector>

#include "capi/shared.hpp"

namespace dael::capi {

Result<EngineOptions> engine_options(const dael_engine_options* options) {
    DAEL_LET(given, sized(options, "dael_engine_options"));
    return EngineOptions{.backend = given.backend ? given.backend : "",
                         .form = given.form ? given.form : "",
                         .threads = given.threads,
                         .chunk = given.chunk,
                         .calibrated = given.uncalibrated == 0,
                         .patience = given.patience == 0  ? EngineOptions{}.patience
                                     : given.patience < 0 ? 0
                                                          : given.patience,
                         .cpu_share = given.cpu_share == 0 ? 1 : given.cpu_share,
                         .device_memory = given.device_memory,
                         .copy_rate = given.copy_rate,
                         .thread_started = given.thread_started,
                         .thread_context = given.thread_context};
}

namespace {

Result<dael_key*> make_key(Result<Key> key) {
    if (!key) return std::move(key).error();
    return new dael_key{*std::move(key)};
}

}  // namespace
}  // namespace dael::capi

using dael::Result;
using namespace dael::capi;

extern "C" {

dael_status dael_engine_open(const dael_engine_options* options, dael_engine** engine) {
    return hand_out(engine, "engine", [&]() -> Result<dael_engine*> {
        DAEL_LET(chosen, engine_options(options));
        DAEL_LET(opened, dael::Engine::open(std::move(chosen)));
        return new dael_engine{std::move(opened)};
    });
}
void dael_engine_close(dael_engine* engine) {
    release(engine);
}
void dael_engine_trim(dael_engine* engine) {
    if (!engine) return;
    const dael::core::Uncancelled whole;
    engine->engine.trim();
}

dael_status dael_key_import(const void* data, size_t size, dael_key** key) {
    return hand_out(key, "key", [&]() -> Result<dael_key*> {
        DAEL_TRY(given({{data, "the key's bytes"}}));
        return make_key(dael::Key::import(bytes(data, size)));
    });
}
dael_status dael_key_import_xts(const void* data, size_t size, dael_key** key) {
    return hand_out(key, "key", [&]() -> Result<dael_key*> {
        DAEL_TRY(given({{data, "the key's bytes"}}));
        return make_key(dael::Key::import_xts(bytes(data, size)));
    });
}
dael_status dael_key_duplicate(const dael_key* key, dael_key** copy) {
    return hand_out(copy, "copy", [&]() -> Result<dael_key*> {
        DAEL_TRY(given({{key, "key"}}));
        return make_key(key->key.duplicate());
    });
}
int dael_key_bits(const dael_key* key) {
    return key ? key->key.bits() : 0;
}
int dael_key_is_xts(const dael_key* key) {
    return key && key->key.is_xts();
}
void dael_key_free(dael_key* key) {
    release(key);
}

dael_status dael_run(dael_engine* engine, const dael_cipher* what, const dael_key* key,
                     const dael_message* to, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {what, "cipher"}, {key, "key"}, {to, "message"}}));
        return report(engine->engine.run(cipher(what), key->key, *message(to)), ran);
    });
}

dael_status dael_key_set_make(dael_engine* engine, const dael_key* const* keys, size_t count,
                              dael_key_set** set) {
    return hand_out(set, "set", [&]() -> Result<dael_key_set*> {
        DAEL_TRY(given({{engine, "engine"}, {keys, "keys"}}));
        std::vector<dael::Key> copies;
        copies.reserve(count);
        for (size_t i = 0; i < count; ++i) {
            if (!keys[i]) return null(("key " + std::to_string(i)).c_str());
            DAEL_LET(copy, keys[i]->key.duplicate());
            copies.push_back(std::move(copy));
        }
        DAEL_LET(made, engine->engine.keys(copies));
        return new dael_key_set{std::move(made)};
    });
}
size_t dael_key_set_size(const dael_key_set* set) {
    return set ? set->keys.size() : 0;
}
int dael_key_set_bits(const dael_key_set* set, uint32_t index) {
    return set && index < set->keys.size() ? set->keys.bits(index) : 0;
}
dael_status dael_key_set_replace(dael_key_set* set, uint32_t index, const dael_key* key,
                                 void* stream) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{set, "set"}, {key, "key"}}));
        return set->keys.replace(index, key->key, dael::Stream{stream});
    });
}
void dael_key_set_free(dael_key_set* set) {
    release(set);
}

dael_status dael_run_batch(dael_engine* engine, const dael_cipher* what, const dael_key_set* keys,
                           const dael_message* messages, size_t count, int32_t* codes,
                           dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {what, "cipher"}, {keys, "keys"}}));
        DAEL_TRY(readable(messages, count, "messages"));
        DAEL_TRY(readable(codes, count, "codes"));
        return report(engine->engine.run(cipher(what), keys->keys, {message(messages), count},
                                         {reinterpret_cast<dael::Code*>(codes), count}),
                      ran);
    });
}

dael_status dael_run_shards(dael_engine* engine, const dael_cipher* what, const dael_key_set* keys,
                            const dael_message* to, const dael_shard* shards, size_t count,
                            dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {what, "cipher"}, {keys, "keys"}, {to, "message"}}));
        DAEL_TRY(readable(shards, count, "shards"));
        std::vector<dael::Shard> list;
        list.reserve(count);
        for (size_t i = 0; i < count; ++i)
            list.push_back(
                {shards[i].in, shards[i].out, shards[i].size, dael::Stream{shards[i].stream}});
        return report(engine->engine.run_shards(cipher(what), keys->keys, *message(to), list), ran);
    });
}

}  // extern "C"
