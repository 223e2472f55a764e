// SPDX-License-Identifier: Apache-2.0
// What the bindings of sealed data share (daelstrom/daelstrom_sealed.h).
#pragma once

#include <daelstrom/daelstrom_sealed.h>

#include "engine.hpp"

namespace daelpy {

// A handle of the library, freed with the last copy.
template <typename T, void (*free)(T*)>
struct Held {
    std::shared_ptr<T> handle;

    static Held hold(T* made) { return {{made, free}}; }
    // What `create(arguments..., &made)` makes.
    template <typename Create, typename... Arguments>
    static Held make(Create create, Arguments... arguments) {
        T* made = nullptr;
        check(create(arguments..., &made));
        return hold(made);
    }
    T* get() const { return handle.get(); }
};
using SealedKeys = Held<dael_sealed_keys, dael_sealed_keys_free>;
using Recipients = Held<dael_recipients, dael_recipients_free>;
using Identities = Held<dael_identities, dael_identities_free>;

// One stream that is opened, and where things lie in it.
struct SealedStream {
    std::shared_ptr<dael_opener> opener;
    dael_sealed_layout layout{};

    static SealedStream start(dael_engine* engine, const SealedKeys& keys, const Memory& aad,
                              const void* head, std::size_t size, bool whole);
    std::uint64_t plain_size(std::uint64_t sealed) const;
    // The smallest chunk that holds a range of a plaintext of `total` bytes.
    dael_status covering(std::uint64_t at, std::uint64_t size, std::uint64_t total,
                         dael_sealed_chunk* chunk) const;
    // Opens `chunk`, whose bytes of the stream are `sealed`, and puts what `size` bytes of
    // plaintext from byte `at` on are into `out`, without a copy where they are whole segments.
    dael_status open(std::uint64_t total, const dael_sealed_chunk& chunk,
                     const std::uint8_t* sealed, std::uint64_t at, std::uint8_t* out,
                     std::uint64_t size) const;

  private:
    dael_status open_part(const dael_sealed_chunk& chunk, const std::uint8_t* sealed,
                          std::uint64_t at, std::uint8_t* out, std::uint64_t size) const;
};

void bind_sealed_keys(nb::module_& m);
void bind_sealed_file(nb::module_& m);
void bind_sealed_keyset(nb::module_& m);
void bind_place(nb::module_& m);  // of files that appear whole

}  // namespace daelpy
