// SPDX-License-Identifier: Apache-2.0
// Tensors out of a file and into one, where they lie, and the keys that they are under.
#include "weights.hpp"

#include <nanobind/stl/tuple.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace daelpy {
namespace {

// Bytes that are moved at a time, where nothing else is said.
constexpr std::uint64_t kWindow = 32 << 20;

// Memory of an engine's device, for those who have no framework to allocate it with.
struct DeviceMemory {
    Device device;
    std::shared_ptr<void> memory;
    std::uint64_t size;

    static DeviceMemory make(const Engine& engine, std::uint64_t size) {
        const Device device = Device::of(engine, nullptr);
        void* made = nullptr;
        check(dael_device_allocate(device.get(), size, &made));
        return {device,
                {made, [device](void* memory) { dael_device_release(device.get(), memory); }},
                size};
    }
    void move(nb::handle host, bool in) const {
        const Memory bytes(host, in ? Access::read : Access::write, "host");
        if (bytes.on_device || bytes.size != size)
            value_error("the host's memory has another size, or lies on a device");
        check(in ? dael_device_copy_in(device.get(), memory.get(), bytes.data, size, nullptr)
                 : dael_device_copy_out(device.get(), bytes.data, memory.get(), size, nullptr));
        check(dael_stream_wait(device.get(), nullptr));
    }
};

// (at, memory or None, key or -1, iv, tags, chunk) as Python gives them.
struct Given {
    std::vector<Memory> held;
    std::vector<WeightTensor> tensors;
    const Memory* on_device = nullptr;  // one of them
};

Given take(nb::sequence list, const KeySet& keys, Access of_tensors, Access of_tags) {
    Given given;
    const std::size_t count = nb::len(list);
    given.held.reserve(3 * count);
    bool on_host = false;
    for (nb::handle row : list) {
        const auto [at, memory, key, iv, tags, chunk] =
            nb::cast<std::tuple<std::uint64_t, nb::object, std::int64_t, nb::object, nb::object,
                                std::uint64_t>>(row);
        WeightTensor tensor{};
        tensor.at = at;
        if (!memory.is_none()) {
            const Memory& data = given.held.emplace_back(memory_of(memory, of_tensors, "tensor"));
            tensor.data = data.data;
            tensor.size = data.size;
            if (data.size != 0) {
                if (data.on_device && given.on_device && data.device != given.on_device->device)
                    value_error("the tensors lie on two devices: load each one's by itself");
                if (data.on_device) given.on_device = &data;
                on_host = on_host || !data.on_device;
            }
        }
        tensor.plain = key < 0;
        tensor.chunk = tensor.plain || chunk == 0 ? std::max<std::uint64_t>(tensor.size, 1) : chunk;
        if (!tensor.plain) {
            if (static_cast<std::uint64_t>(key) >= keys.keys.size())
                value_error("a tensor's key is not of the set");
            tensor.key = static_cast<std::uint32_t>(key);
            const Memory& start = given.held.emplace_back(iv, Access::read, "iv");
            const Memory& marks = given.held.emplace_back(tags, of_tags, "tags");
            if (start.on_device || start.size != 12) value_error("an IV is not 12 bytes");
            if (marks.on_device || marks.size != tensor.chunks() * DAEL_TAG_SIZE)
                value_error("the tags of a tensor are not 16 bytes for each of its chunks");
            std::memcpy(tensor.iv, start.data, 12);
            // The counter would repeat an IV: SP 800-38D 8.
            if (tensor.count() + (tensor.chunks() - 1) > 0xffffffff)
                value_error("the IVs of a tensor's chunks pass their counter's end");
            tensor.tags = marks.data;
        }
        given.tensors.push_back(tensor);
    }
    if (given.on_device && on_host) value_error("the tensors lie on the host and on a device");
    return given;
}

// Null, or the row and the chunk that is not authentic.
nb::object finish(const Given& given, const WeightFault& fault) {
    if (fault.error_number == ENODATA) {
        PyErr_SetString(PyExc_OSError, "the file is shorter than its header says");
        throw nb::python_error();
    }
    if (fault.error_number != 0) {
        errno = fault.error_number;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
    if (fault.of_message) raise_code(fault.status);
    check(fault.status);
    if (!fault.piece) return nb::none();
    return nb::make_tuple(fault.piece->tensor - given.tensors.data(), fault.piece->number);
}

// Tensors without bytes have tags too, and nothing on a device.
struct Pieces {
    std::vector<WeightPiece> empty, device;
};
Pieces split(const std::vector<WeightTensor>& tensors) {
    Pieces pieces;
    for (const WeightPiece& piece : pieces_of(tensors))
        (piece.size == 0 ? pieces.empty : pieces.device).push_back(piece);
    return pieces;
}

// A load or a save: what it does to the tensors and to their tags, and its two ways.
struct Way {
    Access of_tensors, of_tags;
    decltype(open_on_host)* on_host;
    decltype(open_on_device)* on_device;
    bool wipes;  // the host's tensors, where it fails; the device's way sees to its own
};
constexpr Way kLoad{Access::write, Access::read, open_on_host, open_on_device, true};
constexpr Way kSave{Access::read, Access::write, seal_on_host, seal_on_device, false};

template <const Way& way>
nb::object move_tensors(const KeySet& keys, int descriptor, nb::sequence list, nb::handle stream,
                        std::uint64_t window) {
    if (window == 0) window = kWindow;
    const Given given = take(list, keys, way.of_tensors, way.of_tags);
    WeightFault fault;
    const auto on_host = [&](const std::vector<WeightPiece>& pieces) {
        fault = way.on_host(keys.engine, keys, descriptor, pieces, window);
    };
    if (!given.on_device) {
        const std::vector<WeightPiece> pieces = pieces_of(given.tensors);
        {
            const Released released;
            on_host(pieces);
            if (way.wipes && fault.any())
                for (const WeightTensor& tensor : given.tensors)
                    dael_wipe(tensor.data, tensor.size);
        }
        return finish(given, fault);
    }
    const Pieces pieces = split(given.tensors);
    const Device device = Device::of(keys.engine, given.on_device->data);
    {
        const Order order(keys.engine, *given.on_device, given.held, stream);
        const Released released;
        on_host(pieces.empty);
        if (!fault.any())
            fault = way.on_device(keys.engine, device.get(), keys, descriptor, pieces.device,
                                  order.stream(), window);
    }
    return finish(given, fault);
}

// The tensors' keys, out of (wrapped, iv, tag) for each, without their being Python's at any time;
// None in place of the set: the index of the one that did not open.
nb::object unwrap_keys(const Key& master, nb::sequence wrapped, const Engine* engine) {
    const Engine& with = Engine::or_usual(engine);
    std::vector<Key> keys;
    for (nb::handle row : wrapped) {
        const auto [text, start, mark] =
            nb::cast<std::tuple<nb::object, nb::object, nb::object>>(row);
        const Memory in(text, Access::read, "wrapped key"), iv(start, Access::read, "key's iv"),
            tag(mark, Access::read, "key's tag");
        if (in.size != 16 && in.size != 32) value_error("a wrapped key is not 16 or 32 bytes");
        if (iv.size != 12 || tag.size != DAEL_TAG_SIZE)
            value_error("a wrapped key's IV is not 12 bytes, or its tag not 16");
        std::uint8_t opened[32];
        auto status = dael_gcm_open(with.get(), master.get(), iv.data, iv.size, nullptr, 0, in.data,
                                    opened, in.size, tag.data, tag.size, nullptr);
        if (status == DAEL_AUTHENTICATION) return nb::cast(keys.size());
        check(status);
        dael_key* key = nullptr;
        status = dael_key_import(opened, in.size, &key);
        dael_wipe(opened, sizeof opened);
        check(status);
        keys.push_back({{key, dael_key_free}});
    }
    return nb::cast(KeySet::make(with, std::move(keys)));
}

// `count` new keys of as many bits as the master key, and (wrapped, iv, tag) for each.
nb::tuple make_keys(const Key& master, std::size_t count, const Engine* engine) {
    const Engine& with = Engine::or_usual(engine);
    const std::size_t size = static_cast<std::size_t>(dael_key_bits(master.get())) / 8;
    std::vector<Key> keys;
    nb::list wrapped;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint8_t fresh[32], sealed[32], iv[12], tag[DAEL_TAG_SIZE];
        if (getrandom(fresh, size, 0) != static_cast<ssize_t>(size) ||
            getrandom(iv, sizeof iv, 0) != sizeof iv)
            raise("InternalError", "getrandom gives no random bytes");
        dael_key* key = nullptr;
        auto status = dael_key_import(fresh, size, &key);
        if (status == DAEL_OK) {
            keys.push_back({{key, dael_key_free}});
            status = dael_gcm_seal(with.get(), master.get(), iv, sizeof iv, nullptr, 0, fresh,
                                   sealed, size, tag, sizeof tag, nullptr);
        }
        dael_wipe(fresh, sizeof fresh);
        check(status);
        wrapped.append(nb::make_tuple(nb::bytes(sealed, size), nb::bytes(iv, sizeof iv),
                                      nb::bytes(tag, sizeof tag)));
    }
    return nb::make_tuple(KeySet::make(with, std::move(keys)), wrapped);
}

}  // namespace

Memory memory_of(nb::handle object, Access access, const char* name) {
    DeviceMemory* known = nullptr;
    if (!nb::try_cast(object, known)) return Memory(object, access, name);
    Memory memory;
    memory.data = static_cast<std::uint8_t*>(known->memory.get());
    memory.size = known->size;
    memory.on_device = true;
    return memory;
}

void bind_ed25519(nb::module_& m);

void bind_weights(nb::module_& m) {
    bind_ed25519(m);
    nb::class_<DeviceMemory>(m, "DeviceMemory")
        .def(
            "__init__",
            [](DeviceMemory* self, std::uint64_t size, const Engine* engine) {
                new (self) DeviceMemory(DeviceMemory::make(Engine::or_usual(engine), size));
            },
            nb::arg("size"), nb::kw_only(), nb::arg("engine") = nb::none())
        .def("copy_in", [](const DeviceMemory& to, nb::handle host) { to.move(host, true); })
        .def("copy_out", [](const DeviceMemory& to, nb::handle host) { to.move(host, false); })
        .def_ro("nbytes", &DeviceMemory::size);
    m.def("weights_unwrap", unwrap_keys, nb::arg("master"), nb::arg("wrapped"), nb::kw_only(),
          nb::arg("engine") = nb::none());
    m.def("weights_keys", make_keys, nb::arg("master"), nb::arg("count"), nb::kw_only(),
          nb::arg("engine") = nb::none());
    m.def("weights_open", move_tensors<kLoad>, nb::arg("keys"), nb::arg("descriptor"),
          nb::arg("tensors"), nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("window") = 0);
    m.def("weights_seal", move_tensors<kSave>, nb::arg("keys"), nb::arg("descriptor"),
          nb::arg("tensors"), nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("window") = 0);
}

}  // namespace daelpy
