// SPDX-License-Identifier: Apache-2.0
// One message in the modes that do not authenticate, wherever it lies, and counter mode's
// keystream.
#include <algorithm>
#include <optional>

#include "engine.hpp"
#include "grid_ctr.hpp"

namespace daelpy {
namespace {

void read_start(nb::handle given, const char* name, std::uint8_t start[DAEL_BLOCK_SIZE]) {
    if (given.is_none()) return;
    const Memory memory(given, Access::read, name);
    if (memory.on_device || memory.size != DAEL_BLOCK_SIZE)
        value_error(std::string(name) + " is " + std::to_string(memory.size) +
                    " bytes; it takes 16, in the host's memory");
    std::copy_n(memory.data, DAEL_BLOCK_SIZE, start);
}

nb::object target(nb::handle out, nb::handle like, const Memory& in) {
    if (!out.is_none()) return nb::borrow(out);
    if (in.on_device || is_tensor(like)) return empty_like(like);
    return new_bytes(in.size);
}

void check_places(const Memory& in, const Memory& to) {
    if (to.size != in.size)
        value_error("out is " + std::to_string(to.size) + " bytes; data is " +
                    std::to_string(in.size));
    if (in.on_device != to.on_device)
        value_error(in.on_device ? "data lies on a device and out in the host's memory"
                                 : "data lies in the host's memory and out on a device");
}

// What `go` does with pointers, for host memory or a stream of a device.
template <class Go>
nb::object transform(const Engine& engine, nb::handle data, nb::handle out, nb::handle stream,
                     Go&& go) {
    const Memory in(data, Access::read, "data");
    const nb::object result = target(out, data, in);
    // New bytes are written to once, here.
    std::optional<Memory> to;
    std::uint8_t* bytes = nullptr;
    if (out.is_none() && PyBytes_CheckExact(result.ptr())) {
        bytes = reinterpret_cast<std::uint8_t*>(PyBytes_AsString(result.ptr()));
    } else {
        to.emplace(result, Access::write, "out");
        check_places(in, *to);
        bytes = to->data;
    }
    dael_status status;
    if (in.size == 0) return result;
    if (in.on_device) {
        const Order order(engine, in, {to ? &*to : nullptr}, stream);
        const Released released;
        status = go(in.data, bytes, in.size, true, order.stream());
    } else {
        const Released released(in.size >= kWorthReleasing);
        status = go(in.data, bytes, in.size, false, nullptr);
    }
    check(status);
    return result;
}

nb::object ctr(nb::handle key, nb::handle counter, nb::handle data, nb::handle from, nb::handle out,
               nb::handle stream, const Engine* given) {
    const std::uint64_t offset = whole_number(from, "offset");
    const Engine& engine = Engine::or_usual(given);
    const Key ready = Key::from(key);
    std::uint8_t start[DAEL_BLOCK_SIZE] = {};
    read_start(counter, "counter", start);
    return transform(engine, data, out, stream,
                     [&](const std::uint8_t* in, std::uint8_t* to, std::uint64_t size,
                         bool on_device, void* on) {
                         return on_device ? dael_ctr_crypt_device(engine.get(), ready.get(), start,
                                                                  offset, in, to, size, on, nullptr)
                                          : dael_ctr_crypt(engine.get(), ready.get(), start, offset,
                                                           in, to, size, nullptr);
                     });
}

// The keystream itself, into memory that is there.
void keystream(nb::handle key, nb::handle counter, std::uint64_t offset, nb::handle out,
               nb::handle stream, const Engine* given) {
    const Engine& engine = Engine::or_usual(given);
    const Key ready = Key::from(key);
    std::uint8_t start[DAEL_BLOCK_SIZE] = {};
    read_start(counter, "counter", start);
    const Memory to(out, Access::write, "out");
    dael_status status;
    if (to.size == 0) return;
    if (to.on_device) {
        const Order order(engine, to, stream);
        const Released released;
        status = dael_ctr_crypt_device(engine.get(), ready.get(), start, offset, nullptr, to.data,
                                       to.size, order.stream(), nullptr);
    } else {
        const Released released(to.size >= kWorthReleasing);
        status = dael_ctr_crypt(engine.get(), ready.get(), start, offset, nullptr, to.data, to.size,
                                nullptr);
    }
    check(status);
}

// Counter mode in a launch of this many blocks and threads.
nb::object shaped_ctr(nb::handle key, nb::handle counter, nb::handle data, unsigned blocks,
                      unsigned threads, nb::handle stream) {
    const Memory bytes(key, Access::read, "key");
    if (bytes.on_device || (bytes.size != 16 && bytes.size != 24 && bytes.size != 32))
        value_error("key is " + std::to_string(bytes.size) + " bytes; AES takes 16, 24 or 32");
    std::uint8_t start[DAEL_BLOCK_SIZE] = {};
    read_start(counter, "counter", start);
    GridCtr job{};
    job.key = bytes.data;
    job.key_size = static_cast<int>(bytes.size);
    job.counter = start;
    job.blocks = blocks;
    job.threads = threads;
    job.device = Memory(data, Access::read, "data").device;
    const char* failed = nullptr;
    nb::object done = transform(Engine::usual(), data, nb::none(), stream,
                                [&](const std::uint8_t* in, std::uint8_t* to, std::uint64_t size,
                                    bool on_device, void* on) {
                                    job.in = in;
                                    job.out = to;
                                    job.size = size;
                                    job.on_device = on_device;
                                    job.stream = on;
                                    failed = grid_ctr(job);
                                    return DAEL_OK;
                                });
    if (failed)
        raise("BackendError", std::string("a launch by gpup needs a GPU, and cuda: ") + failed);
    return done;
}

// Any other mode: `start` is its IV, or the first sector's number.
nb::object crypt(int mode, int direction, nb::handle key, nb::handle start, nb::handle data,
                 std::uint64_t sector, nb::handle out, nb::handle stream, const Engine* given) {
    const Engine& engine = Engine::or_usual(given);
    const Key ready = mode == DAEL_XTS ? Key::xts_from(key) : Key::from(key);
    const dael_cipher cipher{static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(direction),
                             0, 0, static_cast<std::uint32_t>(sector)};
    if (sector > UINT32_MAX) value_error("sector is more than 2^24 bytes");
    dael_message message{};
    read_start(start, "iv", message.start);
    return transform(
        engine, data, out, stream,
        [&](const std::uint8_t* in, std::uint8_t* to, std::uint64_t size, bool on_device,
            void* on) {
            message.in = in;
            message.out = to;
            message.size = size;
            return on_device
                       ? dael_run_device(engine.get(), &cipher, ready.get(), &message, on, nullptr)
                       : dael_run(engine.get(), &cipher, ready.get(), &message, nullptr);
        });
}

nb::bytes pad(nb::bytes tail) {
    std::uint8_t last[DAEL_BLOCK_SIZE];
    check(dael_pad(tail.c_str(), tail.size(), last));
    return nb::bytes(last, sizeof last);
}
std::size_t unpad(nb::bytes last) {
    if (last.size() != DAEL_BLOCK_SIZE) value_error("a last block is 16 bytes");
    std::size_t size = 0;
    check(dael_unpad(static_cast<const std::uint8_t*>(last.data()), &size));
    return size;
}

}  // namespace

void bind_modes(nb::module_& m) {
    const auto out = nb::arg("out") = nb::none(), stream = nb::arg("stream") = nb::none(),
               engine = nb::arg("engine") = nb::none();
    m.def("ctr", ctr, DAEL_DESCRIBED("ctr"), nb::arg("key"), nb::arg("counter"), nb::arg("data"),
          nb::kw_only(), nb::arg("offset").none() = 0, out, stream, engine);
    m.def("keystream", keystream, nb::arg("key"), nb::arg("counter"), nb::arg("offset"),
          nb::arg("out"), nb::kw_only(), stream, engine);
    m.def("shaped_ctr", shaped_ctr, nb::arg("key"), nb::arg("counter"), nb::arg("data"),
          nb::arg("blocks"), nb::arg("threads"), nb::kw_only(), stream);
    m.def("crypt", crypt, nb::arg("mode"), nb::arg("direction"), nb::arg("key"),
          nb::arg("start").none(), nb::arg("data"), nb::kw_only(), nb::arg("sector") = 0, out,
          stream, engine);
    m.def("pad", pad, nb::arg("tail"));
    m.def("unpad", unpad, nb::arg("last"));
}

}  // namespace daelpy
