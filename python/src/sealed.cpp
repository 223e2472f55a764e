// SPDX-License-Identifier: Apache-2.0
// Sealed data in chunks, whose bytes Python moves.
#include "sealed.hpp"

#include <nanobind/stl/string.h>

#include <cstring>

#include "scratch.hpp"

namespace daelpy {

SealedStream SealedStream::start(dael_engine* engine, const SealedKeys& keys, const Memory& aad,
                                 const void* head, std::size_t size, bool whole) {
    dael_opener* opener = nullptr;
    check(dael_opener_start(engine, keys.get(), aad.data, aad.size, head, size, whole, &opener));
    SealedStream stream{{opener, dael_opener_free}};
    check(dael_opener_layout(opener, &stream.layout));
    return stream;
}

std::uint64_t SealedStream::plain_size(std::uint64_t sealed) const {
    std::uint64_t plain = 0;
    check(dael_sealed_plain_size(&layout, sealed, &plain));
    return plain;
}

dael_status SealedStream::covering(std::uint64_t at, std::uint64_t size, std::uint64_t total,
                                   dael_sealed_chunk* chunk) const {
    const dael_sealed_range range{at, size};
    return dael_sealed_covering(&layout, &range, total, chunk);
}

dael_status SealedStream::open_part(const dael_sealed_chunk& chunk, const std::uint8_t* sealed,
                                    std::uint64_t at, std::uint8_t* out, std::uint64_t size) const {
    const std::uint64_t skip = at - chunk.plain.at;
    if (skip == 0 && chunk.plain.size == size)
        return dael_opener_open(opener.get(), &chunk, sealed, chunk.sealed.size, out, size,
                                nullptr);
    const Scratch scratch(chunk.plain.size, Scratch::secret);
    const auto status = dael_opener_open(opener.get(), &chunk, sealed, chunk.sealed.size,
                                         scratch.get(), chunk.plain.size, nullptr);
    if (status == DAEL_OK && size != 0) std::memcpy(out, scratch.get() + skip, size);
    return status;
}

dael_status SealedStream::open(std::uint64_t total, const dael_sealed_chunk& chunk,
                               const std::uint8_t* sealed, std::uint64_t at, std::uint8_t* out,
                               std::uint64_t size) const {
    // Opened whole, by all threads at once, before what is wanted is copied; of larger ones only
    // the segments at the ends are.
    constexpr std::uint64_t kWhole = 4 << 20;
    if (chunk.sealed.size <= kWhole || chunk.plain.size == size)
        return open_part(chunk, sealed, at, out, size);
    const std::uint64_t end = at + size;
    dael_sealed_chunk first{}, last{};
    auto status = covering(at, 1, total, &first);
    if (status == DAEL_OK) status = covering(end - 1, 1, total, &last);
    if (status != DAEL_OK) return status;
    std::uint64_t from = at;
    for (const std::uint64_t to : {first.plain.at + first.plain.size, last.plain.at, end}) {
        if (to <= from) continue;
        dael_sealed_chunk part{};
        status = covering(from, to - from, total, &part);
        if (status == DAEL_OK)
            status = open_part(part, sealed + (part.sealed.at - chunk.sealed.at), from,
                               out + (from - at), to - from);
        if (status != DAEL_OK) return status;
        from = to;
    }
    return DAEL_OK;
}

namespace {

// Checks what a range takes of the stream, and opens it to `out`.
void open_range(const SealedStream& stream, std::uint64_t at, std::uint64_t total, const Memory& in,
                std::uint8_t* out, std::uint64_t size) {
    if (in.on_device) value_error("sealed chunks are opened in the host's memory");
    dael_sealed_chunk chunk{};
    check(stream.covering(at, size, total, &chunk));
    if (chunk.sealed.size != in.size)
        value_error("the range takes " + std::to_string(chunk.sealed.size) +
                    " bytes of the stream, not " + std::to_string(in.size));
    dael_status status;
    {
        const Released released;
        status = stream.open(total, chunk, in.data, at, out, size);
        if (status != DAEL_OK) dael_wipe(out, size);
    }
    check(status);
}

nb::bytes open_bytes(const SealedStream& stream, std::uint64_t at, std::uint64_t size,
                     std::uint64_t total, nb::handle sealed) {
    const Memory in(sealed, Access::read, "sealed");
    const nb::bytes bytes = new_bytes(size);
    open_range(stream, at, total, in, inside(bytes), size);
    return bytes;
}

void open_to(const SealedStream& stream, std::uint64_t at, std::uint64_t total, nb::handle sealed,
             nb::handle out) {
    const Memory in(sealed, Access::read, "sealed"), to(out, Access::write, "out");
    if (to.on_device) value_error("sealed chunks are opened in the host's memory");
    open_range(stream, at, total, in, to.data, to.size);
}

// One thread at a time, which the writers in Python see to.
struct Sealer {
    std::shared_ptr<dael_sealer> handle;
    dael_sealed_layout layout{};

    static Sealer start(const SealedKeys& keys, nb::handle aad, const Engine* engine) {
        const Memory bound(aad, Access::read, "aad");
        dael_sealer* made = nullptr;
        check(dael_sealer_start(Engine::or_usual(engine).get(), keys.get(), bound.data, bound.size,
                                &made));
        Sealer sealer{{made, dael_sealer_free}};
        check(dael_sealer_layout(made, &sealer.layout));
        return sealer;
    }
    std::uint64_t room(std::uint64_t plain, bool last) const {
        dael_sealed_chunk chunk{};
        check(dael_sealer_next(handle.get(), plain, last, &chunk));
        return chunk.sealed.size;
    }
    std::uint64_t seal(nb::handle plain, nb::handle out, bool last) const {
        const Memory in(plain, Access::read, "plain"), to(out, Access::write, "out");
        if (in.on_device || to.on_device) value_error("chunks are sealed in the host's memory");
        const std::uint64_t size = room(in.size, last);
        dael_status status;
        {
            const Released released;
            status =
                dael_sealer_seal(handle.get(), in.data, in.size, to.data, to.size, last, nullptr);
        }
        check(status);
        return size;
    }
};

// Any object's bytes for Python's memoryview(), which by itself takes neither numpy's dates nor
// what is empty in several dimensions, nor other libraries' tensors.
struct HostBytes {
    nb::object owner;
    Memory memory;

    static int get(PyObject* self, Py_buffer* view, int flags) {
        const Memory& memory = nb::inst_ptr<HostBytes>(self)->memory;
        return PyBuffer_FillInfo(view, self, memory.data, static_cast<Py_ssize_t>(memory.size), 1,
                                 flags);
    }
};
PyType_Slot host_bytes_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(HostBytes::get)},
    {0, nullptr},
};

}  // namespace

void bind_sealed(nb::module_& m) {
    nb::class_<HostBytes>(m, "HostBytes", nb::type_slots(host_bytes_slots))
        .def(
            "__init__",
            [](HostBytes* self, nb::handle data) {
                Memory memory(data, Access::read, "data");
                if (memory.on_device)
                    value_error("data lies in a device's memory; what is written lies on the host");
                new (self) HostBytes{nb::borrow(data), std::move(memory)};
            },
            nb::arg("data"));
    bind_sealed_keys(m);
    bind_sealed_file(m);
    bind_place(m);
    bind_sealed_keyset(m);
    nb::class_<SealedStream>(m, "SealedOpener")
        .def(
            "__init__",
            [](SealedStream* self, const SealedKeys& keys, nb::handle aad, nb::handle head,
               bool whole, const Engine* engine) {
                const Memory bound(aad, Access::read, "aad"), start(head, Access::read, "head");
                new (self) SealedStream(SealedStream::start(Engine::or_usual(engine).get(), keys,
                                                            bound, start.data, start.size, whole));
            },
            nb::arg("keys"), nb::arg("aad"), nb::arg("head"), nb::arg("whole"), nb::kw_only(),
            nb::arg("engine") = nb::none())
        .def_prop_ro("segment", [](const SealedStream& s) { return s.layout.segment; })
        .def("plain_size", &SealedStream::plain_size, nb::arg("sealed"))
        .def("open_to", open_to, nb::arg("at"), nb::arg("total"), nb::arg("sealed"), nb::arg("out"))
        .def("open", open_bytes, nb::arg("at"), nb::arg("size"), nb::arg("total"),
             nb::arg("sealed"));
    nb::class_<Sealer>(m, "Sealer")
        .def(
            "__init__",
            [](Sealer* self, const SealedKeys& keys, nb::handle aad, const Engine* engine) {
                new (self) Sealer(Sealer::start(keys, aad, engine));
            },
            nb::arg("keys"), nb::arg("aad"), nb::kw_only(), nb::arg("engine") = nb::none())
        .def_prop_ro("segment", [](const Sealer& s) { return s.layout.segment; })
        .def_prop_ro("header", [](const Sealer& s) { return s.layout.header; })
        .def("room", &Sealer::room, nb::arg("plain"), nb::arg("last"))
        .def("seal", &Sealer::seal, nb::arg("plain"), nb::arg("out"), nb::arg("last"));
}

}  // namespace daelpy
