// SPDX-License-Identifier: Apache-2.0
// What the files of the C ABI share: its handles, how Results become statuses, and how structures
// that say their own size are read.
#pragma once

#include <daelstrom/daelstrom.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include <daelstrom/engine.hpp>

#include "core/guard.hpp"

// Handles may be freed in any order: key sets, batches and pieces keep what they need of each other
// and of the engine, whose state is shared.
struct dael_engine {
    dael::Engine engine;
};
struct dael_key {
    dael::Key key;
};
struct dael_key_set {
    dael::KeySet keys;
};

namespace dael::capi {

// Keeps the message for dael_last_error(), in memory that is there already.
dael_status failed(const Error& error) noexcept;

// Runs `work`, which returns a Result<>, and lets nothing but a status out. Not noexcept: a thread
// that is cancelled leaves this way.
template <class Work>
dael_status call(Work&& work) {
    const Result<> result = core::guarded(std::forward<Work>(work));
    return result ? DAEL_OK : failed(result.error());
}

// Frees a handle. Destructors must not be left by a cancelled thread, so its end waits for theirs.
template <class Handle>
void release(Handle* handle) noexcept {
    if (!handle) return;
    const core::Uncancelled whole;
    delete handle;
}

inline Error null(const char* what) {
    return {Code::invalid_argument, std::string(what) + " is null"};
}

// Refuses the first null among pointers with names: `DAEL_TRY(given({{engine, "engine"}, ...}))`.
struct Pointer {
    const void* value;
    const char* name;
};
inline Result<> given(std::initializer_list<Pointer> pointers) {
    for (const Pointer& pointer : pointers)
        if (!pointer.value) return null(pointer.name);
    return {};
}

// Runs `make`, which returns a Result<Handle*>, and hands the handle out; null where it failed.
template <class Handle, class Make>
dael_status hand_out(Handle** out, const char* name, Make&& make) {
    return call([&]() -> Result<> {
        if (!out) return null(name);
        *out = nullptr;
        DAEL_LET(made, std::forward<Make>(make)());
        *out = made;
        return {};
    });
}

// Tells what a call did to the caller who asked for it.
Result<> report(const Result<Ran>& ran, dael_ran* out);

// The bytes of a caller's structure, which begins with its size, as far as both know it; the rest
// of `known` stays zero. Null is all defaults.
Result<> read_sized(const void* given, const char* name, void* known, std::size_t size);
template <class Sized>
Result<Sized> sized(const Sized* given, const char* name) {
    Sized known{};
    DAEL_TRY(read_sized(given, name, &known, sizeof known));
    return known;
}

// Refuses what a later version may give a meaning: options' spare members are 0.
inline Result<> spare(std::initializer_list<std::int64_t> members, const char* name) {
    for (const std::int64_t member : members)
        if (member != 0)
            return Error{Code::unsupported, std::string(name) +
                                                " asks for something in `unused` that this version "
                                                "of daelstrom does not know; set it to 0"};
    return {};
}

Result<EngineOptions> engine_options(const dael_engine_options* options);

// The same objects by their names in C++; src/capi/layout.cpp checks that they are laid out alike.
inline const Cipher& cipher(const dael_cipher* cipher) noexcept {
    return *reinterpret_cast<const Cipher*>(cipher);
}
inline const Message* message(const dael_message* message) noexcept {
    return reinterpret_cast<const Message*>(message);
}
inline Block block(const std::uint8_t* bytes) noexcept {  // null: one of zeros, for ECB
    Block block{};
    if (bytes) std::copy_n(bytes, kBlockSize, block.begin());
    return block;
}

inline HostIn bytes(const void* data, std::size_t size) noexcept {
    return {static_cast<const std::uint8_t*>(data), size};
}
inline HostOut bytes(void* data, std::size_t size) noexcept {
    return {static_cast<std::uint8_t*>(data), size};
}
// Refuses null with a size, where nothing below would.
inline Result<> readable(const void* data, std::size_t size, const char* name) {
    if (data || size == 0) return {};
    return null(name);
}

}  // namespace dael::capi
