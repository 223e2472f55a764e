// SPDX-License-Identifier: Apache-2.0
// Many messages at once, in GCM and the other modes that authenticate: lists of buffers, or one
// buffer with offsets; in host memory or on one device. What the arguments may be is
// daelstrom/_batch.py's affair.
#include <algorithm>
#include <optional>
#include <vector>

#include "aead.hpp"
#include "apart.hpp"
#include "gcm.hpp"
#include "gcm_device.hpp"
#include "loan.hpp"

namespace daelpy {
namespace {

struct MessageBatch {
    MessageBatch(const KeySet& with, const dael_cipher& how, std::uint64_t before)
        : keys(with), cipher(how), front(before) {}

    const KeySet& keys;
    const dael_cipher cipher;
    const std::uint64_t front;  // bytes of a nonce that lies before its message, or 0
    std::vector<Memory> held;   // what the pointers of the messages lead to
    std::vector<dael_message> messages;
    std::vector<std::int32_t> codes;
    std::vector<std::size_t> cut;  // that are shorter than a tag: not authentic, and not run
    std::optional<bool> on_device;
    bool aad_there = false;         // additional data lie on the device, too
    bool fresh = true;              // outputs lie in memory that was made for them
    const Memory* first = nullptr;  // says on which device, and on which stream

    bool seals() const { return cipher.direction == DAEL_ENCRYPT; }
    // By how much a sealed message is longer.
    std::uint64_t more() const { return front + cipher.tag; }

    // All data lie on one side.
    void place(const Memory& memory, const char* name) {
        if (on_device && *on_device != memory.on_device)
            value_error(std::string(name) + " lies " +
                        (memory.on_device ? "on a device" : "in the host's memory") +
                        ", and other data of the batch elsewhere");
        if (on_device && memory.on_device && first && first->device >= 0 && memory.device >= 0 &&
            first->device != memory.device)
            value_error(std::string(name) + " lies on another device than the batch");
        on_device = memory.on_device;
    }
    // A message's size is that of its text.
    void size(std::size_t i, std::uint64_t given) {
        messages[i].size = seals() ? given : given - std::min(given, more());
        if (!seals() && given < more()) cut.push_back(i);
    }
    // Data of so many bytes, and what is made of them.
    void lay(std::size_t i, const std::uint8_t* in, std::uint64_t given, std::uint8_t* out) {
        dael_message& m = messages[i];
        m.in = seals() ? in : in + std::min(given, front);
        m.out = seals() ? out + front : out;
        m.tag = seals() ? m.out + m.size : const_cast<std::uint8_t*>(m.in) + m.size;
    }
    void run(nb::handle stream);
    void run_whole(void* stream);
    void run_on_device(void* stream);
};

// Additional data follow their messages to the device.
dael_status copy_aad(std::vector<dael_message>& messages, dael_device* device, Loan& loan,
                     void* stream) {
    std::vector<std::uint8_t> all;
    for (const dael_message& m : messages) all.insert(all.end(), m.aad, m.aad + m.aad_size);
    if (all.empty()) return DAEL_OK;
    std::uint8_t* there = nullptr;
    dael_status status = loan.device(all.size(), &there);
    loan.issued = status == DAEL_OK;
    if (status == DAEL_OK)
        status = dael_device_copy_in(device, there, all.data(), all.size(), stream);
    if (status == DAEL_OK) status = dael_stream_wait(device, stream);
    if (status != DAEL_OK) return status;
    for (dael_message& m : messages) {
        m.aad = there;
        there += m.aad_size;
    }
    return DAEL_OK;
}

// The others of a batch are well, or not, by themselves.
void MessageBatch::run(nb::handle stream) {
    if (!fresh) check_apart(messages, cut, seals(), cipher.tag);
    const std::size_t count = messages.size();
    std::vector<std::size_t> whole;
    if (!cut.empty()) {
        for (std::size_t i = 0, next = 0; i < count; ++i)
            if (next < cut.size() && cut[next] == i)
                ++next;
            else
                whole.push_back(i);
        for (std::size_t i = 0; i < whole.size(); ++i) messages[i] = messages[whole[i]];
        messages.resize(whole.size());
    }
    if (on_device && *on_device && !messages.empty()) {
        const Order order(keys.engine, *first, held, stream);
        run_whole(order.stream());
    } else {
        run_whole(nullptr);
    }
    if (cut.empty()) return;
    std::vector<std::int32_t> all(count, DAEL_AUTHENTICATION);
    for (std::size_t i = 0; i < whole.size(); ++i) all[whole[i]] = codes[i];
    codes.swap(all);
}

void MessageBatch::run_whole(void* stream) {
    codes.assign(messages.size(), DAEL_INTERNAL);
    if (messages.empty()) return;
    if (on_device && *on_device) return run_on_device(stream);
    dael_status status;
    {
        const Released released;
        status = dael_run_batch(keys.engine.get(), &cipher, keys.get(), messages.data(),
                                messages.size(), codes.data(), nullptr);
        // In place the ciphertext is there again; elsewhere nothing is.
        for (std::size_t i = 0; !seals() && i < messages.size(); ++i)
            if (messages[i].in != messages[i].out && left_unverified(status, codes[i]))
                dael_wipe(messages[i].out, messages[i].size);
    }
    check(status);
}

void MessageBatch::run_on_device(void* stream) {
    if (go_along(messages, !aad_there)) {
        if (keys.engine.devices->in_child()) raise_forked();
        dael_status status;
        {
            const Released released;
            status =
                run_along(keys, cipher, messages, first->device, !aad_there, stream, codes.data());
        }
        // Devices that take no lists along take batches.
        if (status != DAEL_UNSUPPORTED) return check(status);
    }
    const Device device = Device::of(keys.engine, messages[0].tag);  // which is never null
    if (messages.size() > UINT32_MAX)
        value_error("a batch on a device has at most 2^32 - 1 messages");
    dael_status status;
    {
        const Released released;
        Loan loan(device.get(), stream);
        loan.batches.reserve(1);
        loan.issued = false;
        status = aad_there ? DAEL_OK : copy_aad(messages, device.get(), loan, stream);
        dael_batch* batch = nullptr;
        if (status == DAEL_OK)
            status = dael_prepare(keys.engine.get(), &cipher, keys.get(), messages.data(),
                                  static_cast<std::uint32_t>(messages.size()), nullptr, &batch);
        loan.batches.push_back(batch);
        if (status == DAEL_OK) {
            status = dael_launch(keys.engine.get(), batch, stream, nullptr);
            loan.issued |= status != DAEL_LIMIT;  // which is refused before anything begins
        }
        if (status == DAEL_OK) status = dael_results(batch, stream, codes.data(), codes.size());
    }
    check(status);
}

// Numbers of a buffer, wherever it lies.
template <class Number>
std::vector<Number> numbers(nb::handle object, const char* name, const Engine& engine) {
    const Memory memory(object, Access::read, name);
    if (memory.size % sizeof(Number) != 0)
        value_error(std::string(name) + " is " + std::to_string(memory.size) +
                    " bytes; its numbers have " + std::to_string(sizeof(Number)));
    std::vector<Number> all(memory.size / sizeof(Number));
    if (all.empty()) return all;
    if (!memory.on_device) {
        std::copy_n(memory.data, memory.size, reinterpret_cast<std::uint8_t*>(all.data()));
        return all;
    }
    const Device device = Device::of(engine, memory.data);
    check(dael_device_copy_out(device.get(), all.data(), memory.data, memory.size, memory.stream));
    check(dael_stream_wait(device.get(), memory.stream));
    return all;
}

nb::handle item(nb::handle tuple, std::size_t i) {
    return PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(i));
}

void set_nonce(MessageBatch& batch, std::size_t i, const Memory& nonce) {
    dael_message& m = batch.messages[i];
    if (batch.cipher.mode == DAEL_GCM)
        gcm_start(batch.keys.keys[m.key], nonce, m.start);
    else
        set_start(batch.cipher.mode, nonce, m);
}

void take_nonces(MessageBatch& batch, nb::handle given) {
    const std::size_t count = batch.messages.size();
    if (PyTuple_CheckExact(given.ptr())) {
        if (nb::len(given) != count)
            value_error(std::to_string(nb::len(given)) + " nonces for " + std::to_string(count) +
                        " messages");
        for (std::size_t i = 0; i < count; ++i)
            set_nonce(batch, i, Memory(item(given, i), Access::read, "nonce"));
        return;
    }
    const auto all = numbers<std::uint8_t>(given, "nonces", batch.keys.engine);
    const std::uint64_t each = nonce_size(batch.cipher.mode);
    if (all.size() % each != 0 || all.size() / each != count)
        value_error("nonces are " + std::to_string(all.size()) + " bytes; " +
                    std::to_string(count) + " messages take " + std::to_string(each) + " each");
    for (std::size_t i = 0; i < count; ++i) {
        dael_message& m = batch.messages[i];
        if (batch.cipher.mode == DAEL_GCM)
            check(dael_gcm_start(all.data() + i * each, m.start));
        else
            set_start(batch.cipher.mode, all.data() + i * each, m);
    }
}

// Nonces that lie before their messages: read there, or written once the messages are sealed, in
// memory that was made for the results.
void take_nonces_in_front(MessageBatch& batch) {
    for (std::size_t i = 0, next = 0; i < batch.messages.size(); ++i) {
        dael_message& m = batch.messages[i];
        if (next < batch.cut.size() && batch.cut[next] == i)
            ++next;
        else
            set_start(batch.cipher.mode, m.in - batch.front, m);
    }
}
void write_nonces_in_front(const MessageBatch& batch) {
    for (const dael_message& m : batch.messages) {
        const std::uint64_t first = std::min<std::uint64_t>(batch.front, DAEL_BLOCK_SIZE);
        std::copy_n(m.start, first, m.out - batch.front);
        std::copy_n(m.start_rest, batch.front - first, m.out - batch.front + first);
    }
}

void take_aad(MessageBatch& batch, nb::handle given) {
    if (given.is_none()) return;
    const auto hold = [&](nb::handle aad) -> const Memory& {
        batch.held.emplace_back(aad, Access::read, "associated_data");
        if (batch.held.back().on_device)
            value_error("associated_data of a batch lie in the host's memory");
        return batch.held.back();
    };
    const std::size_t count = batch.messages.size();
    if (!PyTuple_CheckExact(given.ptr())) {
        const Memory& aad = hold(given);
        for (dael_message& m : batch.messages) {
            m.aad = aad.data;
            m.aad_size = aad.size;
        }
        return;
    }
    if (nb::len(given) != count)
        value_error(std::to_string(nb::len(given)) + " associated_data for " +
                    std::to_string(count) + " messages");
    for (std::size_t i = 0; i < count; ++i) {
        const nb::handle one = item(given, i);
        dael_message& m = batch.messages[i];
        if (one.is_none()) continue;
        const Memory& aad = hold(one);
        m.aad = aad.data;
        m.aad_size = aad.size;
    }
}

void take_keys(MessageBatch& batch, nb::handle given) {
    if (given.is_none()) {
        if (batch.keys.keys.size() > 1 && !batch.messages.empty())
            value_error("keys are " + std::to_string(batch.keys.keys.size()) +
                        ", and no key_index says which message has which");
        return;
    }
    const auto indices = numbers<std::uint32_t>(given, "key_index", batch.keys.engine);
    if (indices.size() != batch.messages.size())
        value_error(std::to_string(indices.size()) + " numbers of keys for " +
                    std::to_string(batch.messages.size()) + " messages");
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= batch.keys.keys.size())
            value_error("message " + std::to_string(i) + " has key " + std::to_string(indices[i]) +
                        "; there are " + std::to_string(batch.keys.keys.size()));
        batch.messages[i].key = indices[i];
    }
}

// Tuples, which nobody changes meanwhile: a new object for each result, or those of `out`.
nb::list lists(MessageBatch& batch, nb::handle data, nb::handle out) {
    const std::size_t count = nb::len(data);
    if (!out.is_none() && nb::len(out) != count)
        value_error(std::to_string(nb::len(out)) + " outputs for " + std::to_string(count) +
                    " messages");
    nb::list results;
    batch.messages.resize(count);
    batch.held.reserve(3 * count + 1);
    batch.fresh = out.is_none();
    for (std::size_t i = 0; i < count; ++i) {
        const nb::handle one = item(data, i);
        batch.held.emplace_back(one, Access::read, "data");
        const Memory& in = batch.held.back();
        if (i == 0) batch.first = &in;
        batch.place(in, "data");
        dael_message& m = batch.messages[i];
        batch.size(i, in.size);
        const std::uint64_t size = batch.seals() ? in.size + batch.more() : m.size;
        nb::object result;
        std::uint8_t* to_bytes = nullptr;
        if (!out.is_none()) {
            result = nb::borrow(item(out, i));
        } else if (in.on_device || is_tensor(one)) {
            result = new_like(one, size);
        } else {
            result = new_bytes(size);
        }
        if (out.is_none() && PyBytes_CheckExact(result.ptr())) {
            to_bytes = reinterpret_cast<std::uint8_t*>(PyBytes_AsString(result.ptr()));
        } else {
            batch.held.emplace_back(result, Access::write, "out");
            const Memory& to = batch.held.back();
            batch.place(to, "out");
            if (to.size != size)
                value_error("output " + std::to_string(i) + " is " + std::to_string(to.size) +
                            " bytes; its message makes " + std::to_string(size));
            to_bytes = to.data;
        }
        batch.lay(i, in.data, in.size, to_bytes);
        results.append(result);
    }
    return results;
}

// One buffer: message i is data[offsets[i]:offsets[i + 1]], and results lie in the same order, each
// with its tag behind it, or without.
nb::object packed(MessageBatch& batch, nb::handle data, nb::handle offsets, nb::handle out) {
    const auto at = numbers<std::int64_t>(offsets, "offsets", batch.keys.engine);
    if (at.empty()) value_error("offsets are one number more than there are messages");
    const std::size_t count = at.size() - 1;
    batch.held.reserve(count + 3);
    batch.held.emplace_back(data, Access::read, "data");
    const Memory& in = batch.held.back();
    batch.first = &in;
    batch.place(in, "data");
    for (std::size_t i = 0; i < count; ++i)
        if (at[i] < 0 || at[i + 1] < at[i])
            value_error("message " + std::to_string(i) + " is from " + std::to_string(at[i]) +
                        " to " + std::to_string(at[i + 1]) + "; offsets go up");
    if (static_cast<std::uint64_t>(at[count]) > in.size)
        value_error("offsets reach to " + std::to_string(at[count]) + "; data is " +
                    std::to_string(in.size) + " bytes");
    batch.messages.resize(count);
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < count; ++i) {
        batch.size(i, static_cast<std::uint64_t>(at[i + 1] - at[i]));
        size += batch.messages[i].size + (batch.seals() ? batch.more() : 0);
    }
    batch.fresh = out.is_none();
    nb::object result =
        out.is_none() ? nb::module_::import_("daelstrom._tensors").attr("new_array")(data, size)
                      : nb::borrow(out);
    batch.held.emplace_back(result, Access::write, "out");
    const Memory& to = batch.held.back();
    batch.place(to, "out");
    if (to.size != size)
        value_error("out is " + std::to_string(to.size) + " bytes; this batch makes " +
                    std::to_string(size));
    std::uint8_t* next = to.data;
    for (std::size_t i = 0; i < count; ++i) {
        batch.lay(i, in.data + at[i], static_cast<std::uint64_t>(at[i + 1] - at[i]), next);
        next += batch.messages[i].size + (batch.seals() ? batch.more() : 0);
    }
    return result;
}

// (results, codes): codes are numbers of 32 bits, one for each message; 0 is well. `in_front`: the
// nonces lie before the messages; those of new ones are given all the same.
nb::tuple run(const KeySet& keys, int direction, nb::handle nonces, nb::handle data, nb::handle aad,
              nb::handle offsets, nb::handle key_index, nb::handle out, nb::handle stream, int mode,
              int tag, bool in_front) {
    for (const nb::handle list : {data, out})
        if (offsets.is_none() && !list.is_none() && !PyTuple_CheckExact(list.ptr()))
            type_error("data and out are tuples where there are no offsets");
    const InUse in_use(keys);
    const dael_cipher cipher{static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(direction),
                             static_cast<std::uint8_t>(tag), 0, 0};
    MessageBatch batch(keys, cipher, in_front ? nonce_size(mode) : 0);
    const nb::object results =
        offsets.is_none() ? nb::object(lists(batch, data, out)) : packed(batch, data, offsets, out);
    if (in_front && batch.on_device.value_or(false))
        value_error("data lie on a device; there nonces are given, and lie by themselves");
    take_keys(batch, key_index);
    if (in_front && !batch.seals())
        take_nonces_in_front(batch);
    else
        take_nonces(batch, nonces);
    take_aad(batch, aad);
    batch.run(stream);
    if (in_front && batch.seals()) write_nonces_in_front(batch);
    nb::object codes = nb::bytes(batch.codes.data(), batch.codes.size() * sizeof(std::int32_t));
    return nb::make_tuple(results, codes);
}

}  // namespace

void run_on_device(const KeySet& keys, const dael_cipher& cipher, const dael_message& message,
                   const Memory& data, const Memory& aad, const Memory* out, nb::handle stream) {
    MessageBatch batch(keys, cipher, 0);
    batch.messages = {message};
    batch.first = &data;
    batch.on_device = true;
    batch.aad_there = aad.on_device;
    const Order order(keys.engine, data, {out, &aad}, stream);
    batch.run_whole(order.stream());
    if (batch.codes[0] != DAEL_OK) raise_code(batch.codes[0]);
}

void bind_batch(nb::module_& m) {
    m.def("run_batch", run, nb::arg("keys"), nb::arg("direction"), nb::arg("nonces"),
          nb::arg("data"), nb::arg("aad").none(), nb::arg("offsets").none(),
          nb::arg("key_index").none(), nb::arg("out").none(), nb::arg("stream").none(),
          nb::arg("mode") = static_cast<int>(DAEL_GCM), nb::arg("tag") = static_cast<int>(kTag),
          nb::arg("in_front") = false);
    m.def(
        "raise_code", [](std::int32_t code) { raise_code(code); }, nb::arg("code"));
}

}  // namespace daelpy
