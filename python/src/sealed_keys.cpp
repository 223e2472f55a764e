// SPDX-License-Identifier: Apache-2.0
// Keys of sealed data, and the envelopes that hold them for recipients or a passphrase.
#include <nanobind/stl/string.h>

#include "sealed.hpp"

namespace daelpy {
namespace {

// What `create` makes of a secret's bytes, and of what comes after them.
template <typename T, typename Create, typename... More>
T of_secret(Create create, nb::handle object, const char* name, More... more) {
    const Memory memory(object, Access::read, name);
    if (memory.on_device)
        value_error(std::string(name) + " lies in a device's memory; it is given from the host's");
    return T::make(create, memory.data, memory.size, more...);
}

std::uint64_t sealed_size(const SealedKeys& keys, std::uint64_t plain) {
    std::uint64_t size = 0;
    check(dael_sealed_size(keys.get(), plain, &size));
    return size;
}

// Where things lie in what these keys seal.
dael_sealed_layout layout_of(const SealedKeys& keys) {
    return {dael_sealed_keys_segment(keys.get()), sealed_size(keys, 0) - DAEL_TAG_SIZE};
}

std::uint64_t plain_size(const SealedKeys& keys, std::uint64_t sealed) {
    const dael_sealed_layout layout = layout_of(keys);
    std::uint64_t plain = 0;
    check(dael_sealed_plain_size(&layout, sealed, &plain));
    return plain;
}

// Where the segments lie that hold a range, in the stream or in the plaintext.
template <dael_sealed_range dael_sealed_chunk::*in>
nb::tuple range_in(const SealedKeys& keys, std::uint64_t at, std::uint64_t size,
                   std::uint64_t total) {
    const dael_sealed_layout layout = layout_of(keys);
    const dael_sealed_range range{at, size};
    dael_sealed_chunk chunk{};
    check(dael_sealed_covering(&layout, &range, total, &chunk));
    return nb::make_tuple((chunk.*in).at, (chunk.*in).size);
}

// (bytes of the envelope, or 0 where more of the file is needed; the work it asks of scrypt)
nb::tuple envelope_read(nb::handle start) {
    const Memory bytes(start, Access::read, "start");
    dael_envelope_info info{};
    info.struct_size = sizeof info;
    check(dael_envelope_read(bytes.data, bytes.size, &info));
    return nb::make_tuple(info.size, info.work);
}

bool is_envelope(nb::handle start) {
    const Memory bytes(start, Access::read, "start");
    return dael_is_envelope(bytes.data, bytes.size) != 0;
}

nb::tuple envelope_make(const Recipients& recipients, std::uint32_t segment) {
    std::vector<std::uint8_t> envelope(dael_recipients_envelope_size(recipients.get()));
    dael_sealed_keys* made = nullptr;
    dael_status status;
    {
        const Released released;  // scrypt takes its time
        status =
            dael_envelope_make(recipients.get(), segment, envelope.data(), envelope.size(), &made);
    }
    check(status);
    return nb::make_tuple(nb::bytes(envelope.data(), envelope.size()), SealedKeys::hold(made));
}

SealedKeys envelope_open(const Identities& identities, nb::handle start, std::uint32_t segment) {
    const Memory bytes(start, Access::read, "start");
    dael_sealed_keys* made = nullptr;
    dael_status status;
    {
        const Released released;
        status = dael_envelope_open(identities.get(), bytes.data, bytes.size, segment, &made);
    }
    check(status);
    return SealedKeys::hold(made);
}

nb::tuple identity_make() {
    char identity[DAEL_IDENTITY_SIZE + 1], recipient[DAEL_RECIPIENT_SIZE + 1];
    check(dael_identity_make(identity, recipient));
    nb::tuple made = nb::make_tuple(nb::str(identity), nb::str(recipient));
    dael_wipe(identity, sizeof identity);
    return made;
}

}  // namespace

void bind_sealed_keys(nb::module_& m) {
    nb::class_<SealedKeys>(m, "SealedKeys")
        .def_static(
            "of_key",
            [](nb::handle key, std::uint32_t segment) {
                return of_secret<SealedKeys>(dael_sealed_keys_import, key, "key", segment);
            },
            nb::arg("key"), nb::arg("segment") = 0)
        .def_static(
            "of_keyset",
            [](nb::handle json) {
                return of_secret<SealedKeys>(dael_sealed_keys_parse, json, "keyset");
            },
            nb::arg("keyset"))
        .def("sealing",
             [](const SealedKeys& keys) {
                 return SealedKeys::make(dael_sealed_keys_sealing, keys.get());
             })
        .def_prop_ro("segment",
                     [](const SealedKeys& keys) { return dael_sealed_keys_segment(keys.get()); })
        .def_prop_ro("head_size",
                     [](const SealedKeys& keys) { return dael_opener_head_size(keys.get()); })
        .def("sealed_size", sealed_size, nb::arg("plain"))
        .def("plain_size", plain_size, nb::arg("sealed"))
        .def("sealed_range", range_in<&dael_sealed_chunk::sealed>, nb::arg("at"), nb::arg("size"),
             nb::arg("total"))
        .def("plain_range", range_in<&dael_sealed_chunk::plain>, nb::arg("at"), nb::arg("size"),
             nb::arg("total"));
    nb::class_<Recipients>(m, "Recipients")
        .def_static(
            "parse",
            [](nb::handle text) {
                return of_secret<Recipients>(dael_recipients_parse, text, "recipients");
            },
            nb::arg("recipients"))
        .def_static(
            "of_passphrase",
            [](nb::handle passphrase, std::int32_t work) {
                return of_secret<Recipients>(dael_recipients_of_passphrase, passphrase,
                                             "passphrase", work);
            },
            nb::arg("passphrase"), nb::arg("work") = 0);
    nb::class_<Identities>(m, "Identities")
        .def_static(
            "parse",
            [](nb::handle text) {
                return of_secret<Identities>(dael_identities_parse, text, "identities");
            },
            nb::arg("identities"))
        .def_static(
            "of_passphrase",
            [](nb::handle passphrase, std::int32_t most) {
                return of_secret<Identities>(dael_identities_of_passphrase, passphrase,
                                             "passphrase", most);
            },
            nb::arg("passphrase"), nb::arg("most") = 0)
        .def("recipients", [](const Identities& identities) {
            return Recipients::make(dael_identities_recipients, identities.get());
        });
    m.def("envelope_read", envelope_read, nb::arg("start"));
    m.def("is_envelope", is_envelope, nb::arg("start"));
    m.def("envelope_make", envelope_make, nb::arg("recipients"), nb::arg("segment") = 0);
    m.def("envelope_open", envelope_open, nb::arg("identities"), nb::arg("start"),
          nb::arg("segment") = 0);
    m.def("identity_make", identity_make);
}

}  // namespace daelpy
