// SPDX-License-Identifier: Apache-2.0
// The library's calls on device memory for torch_test.py, through ctypes: beside PyTorch, which has
// a CUDA run-time library of its own and the same GPU. Every call returns null, or what was wrong.
#include <memory>
#include <string>

#include <daelstrom/ctr.hpp>
#include <daelstrom/gcm.hpp>

#include "backends/cuda/context.hpp"

namespace {

using namespace dael;

struct State {
    Engine engine;
    KeySet keys;
    Key key;
};

thread_local std::string fault;
const char* told(const Error& error) {
    fault = error.message;
    return fault.c_str();
}

Result<std::unique_ptr<State>> make(const char* backend) {
    const std::uint8_t raw[32] = {1, 2, 3};
    DAEL_LET(engine, Engine::open({.backend = backend}));
    DAEL_LET(key, Key::import(raw));
    DAEL_LET(keys, engine.keys(std::span(&key, 1)));
    return std::make_unique<State>(State{std::move(engine), std::move(keys), std::move(key)});
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) const char* dael_torch_open(const char* backend,
                                                                   void** state) {
    auto made = make(backend);
    if (!made) return told(made.error());
    *state = made->release();
    return nullptr;
}

__attribute__((visibility("default"))) void dael_torch_close(void* state) {
    delete static_cast<State*>(state);
}

// CTR from this counter on, on the caller's stream.
__attribute__((visibility("default"))) const char* dael_torch_ctr(void* state, const void* in,
                                                                  void* out, std::uint64_t size,
                                                                  std::uint8_t counter,
                                                                  void* stream) {
    State& s = *static_cast<State*>(state);
    const auto ran = ctr::crypt(s.engine, s.key, Block{counter}, DeviceIn{in, size},
                                DeviceOut{out, size}, Stream{stream});
    return ran ? nullptr : told(ran.error());
}

// One GCM message as a batch that is prepared, launched, and gone before it has ended.
__attribute__((visibility("default"))) const char* dael_torch_gcm(void* state, int opens,
                                                                  const void* in, void* out,
                                                                  void* tag, std::uint64_t size,
                                                                  void* stream) {
    State& s = *static_cast<State*>(state);
    const Message message{.in = static_cast<const std::uint8_t*>(in),
                          .out = static_cast<std::uint8_t*>(out),
                          .size = size,
                          .tag = static_cast<std::uint8_t*>(tag),
                          .start = gcm::start({9})};
    auto batch = s.engine.prepare(opens ? gcm::opening() : gcm::sealing(), s.keys, {&message, 1});
    if (!batch) return told(batch.error());
    const auto ran = s.engine.launch(*batch, Stream{stream});
    return ran ? nullptr : told(ran.error());
}

// Everything that allocates and frees, without a launch on anybody's stream.
__attribute__((visibility("default"))) const char* dael_torch_prepare(void* state, void* memory) {
    State& s = *static_cast<State*>(state);
    auto keys = s.engine.keys(std::span(&s.key, 1));
    if (!keys) return told(keys.error());
    auto* const bytes = static_cast<std::uint8_t*>(memory);
    const Message message{.in = bytes, .out = bytes + 512, .size = 300, .tag = bytes + 1000};
    for (const Cipher& cipher : {gcm::sealing(), Cipher{Mode::cbc, Direction::decrypt}}) {
        Message fitting = message;
        if (!authenticates(cipher.mode)) fitting.size = 256, fitting.tag = nullptr;
        const auto batch = s.engine.prepare(cipher, *keys, {&fitting, 1});
        if (!batch) return told(batch.error());
    }
    release_pinned(allocate_pinned(1 << 16));
    return nullptr;
}

__attribute__((visibility("default"))) int dael_torch_has_context(int device) {
    return cuda::has_context(device);
}
}
