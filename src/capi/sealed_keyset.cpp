// SPDX-License-Identifier: Apache-2.0
// Keysets that are changed, for C.
#include <daelstrom/daelstrom_sealed.h>
#include <daelstrom/sealed_keys.hpp>

#include <string_view>

#include "capi/sealed.hpp"

using dael::Code;
using dael::Error;
using dael::Result;
using dael::sealed::Keyset;
using namespace dael::capi;

struct dael_sealed_keyset {
    Keyset keyset;
};

static_assert(DAEL_SEALED_KEY_ENABLED == static_cast<int>(Keyset::Status::enabled) &&
              DAEL_SEALED_KEY_DISABLED == static_cast<int>(Keyset::Status::disabled) &&
              DAEL_SEALED_KEY_DESTROYED == static_cast<int>(Keyset::Status::destroyed));

namespace {

dael_status change(dael_sealed_keyset* keyset, std::uint32_t id,
                   Result<> (Keyset::*what)(std::uint32_t)) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{keyset, "keyset"}}));
        return (keyset->keyset.*what)(id);
    });
}

}  // namespace

extern "C" {

dael_status dael_sealed_keyset_create(dael_sealed_keyset** keyset) {
    return hand_out(keyset, "keyset",
                    []() -> Result<dael_sealed_keyset*> { return new dael_sealed_keyset{}; });
}
dael_status dael_sealed_keyset_parse(const void* json, size_t size, dael_sealed_keyset** keyset) {
    return hand_out(keyset, "keyset", [&]() -> Result<dael_sealed_keyset*> {
        DAEL_TRY(given({{json, "json"}}));
        DAEL_LET(parsed, Keyset::parse(bytes(json, size)));
        return new dael_sealed_keyset{std::move(parsed)};
    });
}
void dael_sealed_keyset_free(dael_sealed_keyset* keyset) {
    release(keyset);
}

size_t dael_sealed_keyset_count(const dael_sealed_keyset* keyset) {
    return keyset ? keyset->keyset.size() : 0;
}
dael_status dael_sealed_keyset_entry_at(const dael_sealed_keyset* keyset, size_t i,
                                        dael_sealed_keyset_entry* entry) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{keyset, "keyset"}, {entry, "entry"}}));
        const auto entries = keyset->keyset.entries();
        if (i >= entries.size())
            return Error{Code::invalid_argument, "the keyset has no key at place " +
                                                     std::to_string(i) + ", but " +
                                                     std::to_string(entries.size())};
        dael_sealed_keyset_entry known{};
        known.id = entries[i].id;
        known.status = static_cast<std::int32_t>(entries[i].status);
        known.primary = entries[i].primary ? 1 : 0;
        entries[i].type.copy(known.type, sizeof known.type - 1);
        entries[i].shape.copy(known.shape, sizeof known.shape - 1);
        return fill_sized(entry, "entry", known);
    });
}

dael_status dael_sealed_keyset_add(dael_sealed_keyset* keyset, const char* name, uint32_t* id) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{keyset, "keyset"}, {id, "id"}}));
        DAEL_LET(added, keyset->keyset.add(name ? std::string_view(name)
                                                : dael::sealed::kTemplates.front()));
        *id = added;
        return {};
    });
}
dael_status dael_sealed_keyset_promote(dael_sealed_keyset* keyset, uint32_t id) {
    return change(keyset, id, &Keyset::promote);
}
dael_status dael_sealed_keyset_enable(dael_sealed_keyset* keyset, uint32_t id) {
    return change(keyset, id, &Keyset::enable);
}
dael_status dael_sealed_keyset_disable(dael_sealed_keyset* keyset, uint32_t id) {
    return change(keyset, id, &Keyset::disable);
}
dael_status dael_sealed_keyset_remove(dael_sealed_keyset* keyset, uint32_t id) {
    return change(keyset, id, &Keyset::remove);
}

size_t dael_sealed_keyset_json_size(const dael_sealed_keyset* keyset) {
    return keyset ? keyset->keyset.json_size() : 0;
}
dael_status dael_sealed_keyset_write_json(const dael_sealed_keyset* keyset, void* out,
                                          size_t size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{keyset, "keyset"}, {out, "out"}}));
        return keyset->keyset.write_json(bytes(out, size));
    });
}

}  // extern "C"
