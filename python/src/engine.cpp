// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <nanobind/stl/string.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>

#include "process.hpp"

namespace daelpy {

Engine Engine::open(const std::string& backend, const std::string& form,
                    dael_engine_options options) {
    options.struct_size = sizeof options;
    options.backend = backend.c_str();
    options.form = form.c_str();
    dael_engine* opened = nullptr;
    dael_status status;
    {
        const Released released;
        status = dael_engine_open(&options, &opened);
    }
    check(status);
    return Engine(opened);
}

std::uint64_t whole_number(nb::handle number, const char* name) {
    if (!PyIndex_Check(number.ptr()))
        type_error(std::string(name) + " is " +
                   nb::cast<std::string>(number.type().attr("__name__")) +
                   "; it is a whole number");
    const nb::object index = nb::steal(PyNumber_Index(number.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    const std::uint64_t value = PyLong_AsUnsignedLongLong(index.ptr());
    if (PyErr_Occurred()) {
        PyErr_Clear();
        value_error(std::string(name) + " is " + nb::cast<std::string>(nb::str(index)) +
                    "; it is a number from 0 to 2^64 - 1");
    }
    return value;
}

// Of threads that come at once each opens one, and the first one's stays: nobody waits for anybody
// who may not be there any more, as in a child of fork().
const Engine& Engine::usual() {
    constinit static std::atomic<const Engine*> kept{nullptr};
    if (const Engine* const engine = kept.load(std::memory_order_acquire)) return *engine;
    auto made = std::make_unique<const Engine>(open({}, {}, {}));
    const Engine* first = nullptr;
    if (kept.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
        return *made.release();
    const Released released;  // while the other one is closed
    made.reset();
    return *first;
}

KeptDevice& Engine::device_of(const Memory& memory) const {
    if (devices->in_child()) raise_forked();
    KeptDevice* found = nullptr;
    dael_status status;
    {
        const Released released;
        status = devices->of(memory.device, memory.data, found);
    }
    check(status);
    return *found;
}

namespace {

template <auto import>
Key import_with(nb::handle bytes) {
    const Memory memory(bytes, Access::read, "key");
    if (memory.on_device)
        value_error("key lies in a device's memory; keys are given from the host's");
    dael_key* made = nullptr;
    check(import(memory.data, memory.size, &made));
    return {{made, dael_key_free}};
}

}  // namespace

Key Key::import(nb::handle bytes) {
    return import_with<dael_key_import>(bytes);
}
Key Key::import_xts(nb::handle bytes) {
    return import_with<dael_key_import_xts>(bytes);
}
Key Key::from(nb::handle key) {
    Key* made = nullptr;
    return nb::try_cast(key, made) ? *made : import(key);
}
Key Key::xts_from(nb::handle key) {
    Key* made = nullptr;
    return nb::try_cast(key, made) ? *made : import_xts(key);
}

namespace {

// Keys that work on a device uses are freed when that is done. Until then others run: it may be
// theirs to go on with.
void free_keys(dael_key_set* set) {
    const Released released;
    dael_key_set_free(set);
}

}  // namespace

KeySet KeySet::make(const Engine& engine, std::vector<Key> keys) {
    if (keys.empty()) value_error("a key set has one key or more");
    std::vector<const dael_key*> pointers;
    for (const Key& key : keys) pointers.push_back(key.get());
    dael_key_set* made = nullptr;
    check(dael_key_set_make(engine.get(), pointers.data(), pointers.size(), &made));
    return {engine, {made, free_keys}, KeySet::List(std::move(keys))};
}

void Uses::begin() {
    std::int64_t count = count_.load(std::memory_order_relaxed);
    for (;;) {
        if (count >= 0) {
            if (count_.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) return;
            continue;
        }
        if (process_ != this_process())
            raise("LimitError",
                  "a key of this set was being replaced when the process was forked; make a set "
                  "anew");
        const Released released;
        sched_yield();
        count = count_.load(std::memory_order_relaxed);
    }
}

void Uses::begin_replacing() {
    // For who finds it so later; whoever wins, it is this process. What a parent began stays its
    // own.
    if (count_.load(std::memory_order_relaxed) >= 0) process_ = this_process();
    std::int64_t nobody = 0;
    if (count_.compare_exchange_strong(nobody, -1, std::memory_order_acquire)) return;
    PyErr_SetString(PyExc_RuntimeError,
                    "this set is in use by another thread, or was when the process was forked; "
                    "its keys are replaced while it is not");
    throw nb::python_error();
}

void KeySet::replace(std::uint32_t index, Key fresh, void* stream) {
    if (is_fixed) value_error("this set is an AESGCM's, which has one key; make a KeySet");
    if (index >= keys.size())
        value_error("index is " + std::to_string(index) + "; the set has " +
                    std::to_string(keys.size()) + " keys");
    uses->begin_replacing();
    const dael_status status = dael_key_set_replace(get(), index, fresh.get(), stream);
    if (status == DAEL_OK) std::swap(keys[index], fresh);
    uses->end_replacing();
    check(status);
}

Device Device::of(const Engine& engine, const void* memory) {
    dael_device* device = nullptr;
    check(dael_device_of(engine.get(), memory, &device));
    return {{device, dael_device_free}};
}

Order::Order(const Engine& engine, const Memory& first, std::span<const Memory* const> others,
             nb::handle stream)
    : stream_(stream.is_none() ? first.stream : stream_of(stream)) {
    add(&first);
    for (const Memory* memory : others) add(memory);
    begin(engine);
}

Order::Order(const Engine& engine, const Memory& first, const std::vector<Memory>& others,
             nb::handle stream)
    : stream_(stream.is_none() ? first.stream : stream_of(stream)) {
    add(&first);
    for (const Memory& memory : others) add(&memory);
    begin(engine);
}

void Order::add(const Memory* memory) {
    if (!memory || !memory->on_device) return;
    if (memory->data && !somewhere_) somewhere_ = memory;
    if (!memory->in_stream_order && memory->data) foreign_.push_back(memory);
    if (memory->stream != stream_ &&
        std::ranges::find(producers_, memory->stream) == producers_.end())
        producers_.push_back(memory->stream);
}

void Order::begin(const Engine& engine) {
    exceptions_ = std::uncaught_exceptions();
    if ((producers_.empty() && foreign_.empty()) || !somewhere_) return;
    device_ = &engine.device_of(*somewhere_);
    dael_status status = DAEL_OK;
    {
        // Its locks are held over calls that may need the interpreter's.
        const Released released;
        for (void* producer : producers_)
            if (status == DAEL_OK) status = device_->follow(producer, stream_);
    }
    check(status);
}

Order::~Order() noexcept(false) {
    if (!device_) return;
    dael_status status = DAEL_OK;
    if (!foreign_.empty()) {
        {
            const Released released;
            status = dael_stream_wait(device_->get(), stream_);
        }
        if (status != DAEL_OK)
            for (const Memory* memory : foreign_) memory->keep_for_good();
    }
    if (!producers_.empty()) {
        const Released released;
        for (void* producer : producers_)
            if (const dael_status followed = device_->follow(stream_, producer);
                followed != DAEL_OK)
                status = followed;
    }
    if (std::uncaught_exceptions() == exceptions_) check(status);
}

namespace {

// Numbers that are handed out once, in this process alone: a child of fork() would repeat them.
class NonceCounter {
  public:
    NonceCounter(nb::handle fixed, nb::handle start) : process_(this_process()) {
        const std::uint64_t first = whole_number(start, "first");
        const Memory four(fixed, Access::read, "fixed");
        if (four.on_device || four.size != 4)
            value_error("fixed is " + std::to_string(four.size) + " bytes; it takes 4");
        dael_nonces* made = nullptr;
        check(dael_nonces_make(four.data, first, &made));
        handle_ = {made, dael_nonces_free};
    }
    nb::bytes next() {
        here();
        std::uint8_t nonce[DAEL_NONCE_SIZE];
        check(dael_nonces_next(handle_.get(), nonce));
        return nb::bytes(nonce, sizeof nonce);
    }
    nb::bytes take(nb::handle number) {
        const std::uint64_t count = whole_number(number, "count");
        here();
        if (count > (std::uint64_t{1} << 32)) value_error("more than 2^32 nonces at once");
        std::vector<dael_message> messages(count);
        check(dael_nonces_number(handle_.get(), messages.data(), count));
        auto taken = nb::steal<nb::bytes>(
            PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * DAEL_NONCE_SIZE)));
        if (!taken.ptr()) throw nb::python_error();
        char* to = PyBytes_AsString(taken.ptr());
        for (const dael_message& message : messages) {
            std::copy_n(message.start, DAEL_NONCE_SIZE, to);
            to += DAEL_NONCE_SIZE;
        }
        return taken;
    }
    std::uint64_t unused() const { return dael_nonces_unused(handle_.get()); }

  private:
    void here() const {
        if (this_process() == process_) return;
        raise("LimitError",
              "this NonceCounter was made before fork(), and its parent hands out the same "
              "nonces; make one in each process, with `fixed` bytes of its own");
    }
    std::uint64_t process_;
    std::shared_ptr<dael_nonces> handle_;
};

nb::list list_backends() {
    nb::list all;
    check(dael_list_backends(
        [](void* to, const dael_backend* backend) {
            nb::dict row;
            row["name"] = backend->name;
            row["description"] = backend->description;
            row["summary"] = backend->summary;
            row["missing"] = backend->missing;
            row["present"] = backend->present != 0;
            static_cast<nb::list*>(to)->append(row);
        },
        &all));
    return all;
}

nb::list backends_of(const Engine& engine) {
    nb::list all;
    check(dael_engine_backends(
        engine.get(), [](void* to, const char* name) { static_cast<nb::list*>(to)->append(name); },
        &all));
    return all;
}

}  // namespace

void refuse_pickling(nb::handle object, const char* mend) {
    type_error(nb::cast<std::string>(object.type().attr("__name__")) +
               " is not pickled or copied: " + mend);
}

void bind_engine(nb::module_& m) {
    constexpr const char* kSecret =
        "its key would be written where nobody wipes it. Give a process the key's bytes by a way "
        "that you choose, and make it there";
    auto engines = nb::class_<Engine>(m, "Engine", described("Engine").text);
    keep_here(engines, "it is of its process; make one by the same name in another process");
    engines
        .def(
            "__init__",
            [](Engine* self, const std::string& backend, const std::string& form, int threads,
               std::uint64_t chunk, bool calibrated, double cpu_share, std::uint64_t device_memory,
               std::uint64_t copy_rate) {
                dael_engine_options options{};
                options.threads = threads;
                options.uncalibrated = calibrated ? 0 : 1;
                options.chunk = chunk;
                options.cpu_share = cpu_share == 0 ? -1 : cpu_share;  // which C takes for all
                options.device_memory = device_memory;
                options.copy_rate = copy_rate;
                new (self) Engine(Engine::open(backend, form, options));
            },
            DAEL_DESCRIBED("Engine.__init__"), nb::arg("backend") = "", nb::kw_only(),
            nb::arg("form") = "", nb::arg("threads") = 0, nb::arg("chunk") = 0,
            nb::arg("calibrated") = true, nb::arg("cpu_share") = 1.0, nb::arg("device_memory") = 0,
            nb::arg("copy_rate") = 0)
        .def("backends", backends_of, DAEL_DESCRIBED("Engine.backends"));

    auto key_type = nb::class_<Key>(m, "Key", described("Key").text);
    keep_here(key_type, kSecret);
    key_type
        .def(
            "__init__", [](Key* self, nb::handle bytes) { new (self) Key(Key::import(bytes)); },
            DAEL_DESCRIBED("Key.__init__"), nb::arg("key"))
        .def_static("xts", Key::import_xts, DAEL_DESCRIBED("Key.xts"), nb::arg("key"))
        .def_prop_ro(
            "bits", [](const Key& self) { return dael_key_bits(self.get()); },
            described("Key.bits").text)
        .def_prop_ro(
            "is_xts", [](const Key& self) { return dael_key_is_xts(self.get()) != 0; },
            described("Key.is_xts").text);

    auto set_type = nb::class_<KeySet>(m, "KeySet", described("KeySet").text);
    keep_here(set_type, kSecret);
    set_type
        .def(
            "__init__",
            [](KeySet* self, nb::iterable keys, const Engine* engine) {
                std::vector<Key> list;
                for (nb::handle key : keys) list.push_back(Key::from(key));
                new (self) KeySet(KeySet::make(Engine::or_usual(engine), std::move(list)));
            },
            DAEL_DESCRIBED("KeySet.__init__"), nb::arg("keys"), nb::kw_only(),
            nb::arg("engine") = nb::none())
        .def("__len__", [](const KeySet& set) { return set.keys.size(); })
        .def(
            "replace",
            [](KeySet& set, std::uint32_t index, nb::handle key, nb::handle stream) {
                set.replace(index, Key::from(key), stream.is_none() ? nullptr : stream_of(stream));
            },
            DAEL_DESCRIBED("KeySet.replace"), nb::arg("index"), nb::arg("key"), nb::kw_only(),
            nb::arg("stream") = nb::none());

    auto nonces = nb::class_<NonceCounter>(m, "NonceCounter", described("NonceCounter").text);
    keep_here(nonces,
              "a copy would hand out the same nonces. Make one in each process, with fixed "
              "bytes of its own");
    nonces
        .def(nb::init<nb::handle, nb::handle>(), DAEL_DESCRIBED("NonceCounter.__init__"),
             nb::arg("fixed"), nb::arg("first").none() = 0)
        .def("next", &NonceCounter::next, DAEL_DESCRIBED("NonceCounter.next"))
        .def("take", &NonceCounter::take, DAEL_DESCRIBED("NonceCounter.take"),
             nb::arg("count").none())
        .def_prop_ro("unused", &NonceCounter::unused, described("NonceCounter.unused").text);

    m.def("list_backends", list_backends, DAEL_DESCRIBED("list_backends"));
    m.def("version", dael_version, DAEL_DESCRIBED("version"));
    m.def(
        "writable", [](nb::handle buffer) { return Memory(buffer, Access::write, "out").size; },
        nb::arg("buffer"));
    m.def(
        "wipe",
        [](nb::handle buffer) {
            const Memory memory(buffer, Access::write, "buffer");
            if (memory.on_device) value_error("buffer lies in a device's memory");
            dael_wipe(memory.data, memory.size);
        },
        DAEL_DESCRIBED("wipe"), nb::arg("buffer"));
}

}  // namespace daelpy
