// SPDX-License-Identifier: Apache-2.0
// Tink's keysets, made and changed (daelstrom_sealed.h).
#include <daelstrom/daelstrom_sealed.h>
#include <nanobind/stl/string.h>

#include "sealed.hpp"

namespace daelpy {
namespace {

using Keyset = Held<dael_sealed_keyset, dael_sealed_keyset_free>;

Keyset parse(nb::handle json) {
    const Memory text(json, Access::read, "json");
    if (text.on_device) value_error("json lies in a device's memory; it is given from the host's");
    return Keyset::make(dael_sealed_keyset_parse, text.data, text.size);
}

// (number, status, whether it seals, type, shape) of each key.
nb::list entries(const Keyset& keyset) {
    nb::list told;
    for (std::size_t i = 0; i < dael_sealed_keyset_count(keyset.get()); ++i) {
        dael_sealed_keyset_entry entry{};
        entry.struct_size = sizeof entry;
        check(dael_sealed_keyset_entry_at(keyset.get(), i, &entry));
        told.append(nb::make_tuple(entry.id, entry.status, entry.primary != 0, nb::str(entry.type),
                                   nb::str(entry.shape)));
    }
    return told;
}

std::uint32_t add(const Keyset& keyset, const std::string& name) {
    std::uint32_t id = 0;
    check(dael_sealed_keyset_add(keyset.get(), name.c_str(), &id));
    return id;
}

template <dael_status change(dael_sealed_keyset*, std::uint32_t)>
void changed(const Keyset& keyset, std::uint32_t id) {
    check(change(keyset.get(), id));
}

nb::bytes json(const Keyset& keyset) {
    const std::size_t size = dael_sealed_keyset_json_size(keyset.get());
    const nb::bytes text = new_bytes(size);
    check(dael_sealed_keyset_write_json(keyset.get(), inside(text), size));
    return text;
}

}  // namespace

void bind_sealed_keyset(nb::module_& m) {
    nb::class_<Keyset>(m, "SealedKeyset")
        .def_static("create", [] { return Keyset::make(dael_sealed_keyset_create); })
        .def_static("parse", parse, nb::arg("json"))
        .def("entries", entries)
        .def("add", add, nb::arg("template"))
        .def("promote", changed<dael_sealed_keyset_promote>, nb::arg("id"))
        .def("enable", changed<dael_sealed_keyset_enable>, nb::arg("id"))
        .def("disable", changed<dael_sealed_keyset_disable>, nb::arg("id"))
        .def("remove", changed<dael_sealed_keyset_remove>, nb::arg("id"))
        .def("json", json);
}

}  // namespace daelpy
