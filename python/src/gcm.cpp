// SPDX-License-Identifier: Apache-2.0
// AESGCM: pyca's calls, for data that lies anywhere.
#include "gcm.hpp"

#include "gcm_device.hpp"
#include "result.hpp"

namespace daelpy {

void gcm_start(const Key& key, const Memory& nonce, std::uint8_t start[DAEL_BLOCK_SIZE]) {
    if (nonce.on_device) value_error("nonce lies in a device's memory; give it from the host's");
    if (nonce.size == DAEL_NONCE_SIZE)
        check(dael_gcm_start(nonce.data, start));
    else
        check(dael_gcm_start_iv(key.get(), nonce.data, nonce.size, start));
}

namespace {

// Most bytes of a first message: with more, to make the key ready costs little beside them.
constexpr std::uint64_t kAsItIs = 4096;

// `data` is looked at after the nonce: who confuses the two hears of the nonce first.
std::uint64_t opened_size(const Memory& data) {
    if (data.size < kTag) raise("InvalidTag", "data is shorter than a tag of 16 bytes");
    return data.size - kTag;
}

}  // namespace

AesGcm::AesGcm(nb::handle key, const Engine* engine)
    : engine_(Engine::or_usual(engine)), key_(Key::from(key)) {
    if (dael_key_is_xts(key_.get()))
        value_error("key is for XTS; AESGCM takes one of 16, 24 or 32 bytes");
}

struct AesGcm::Ready {
    explicit Ready(KeySet keys) : set(std::move(keys)), on_devices(set) {}
    KeySet set;
    DeviceGcm on_devices;
};

AesGcm::~AesGcm() {
    delete ready_.load();
}

// Of threads that come here for the first time together, all make one, and the first one's stays.
AesGcm::Ready& AesGcm::ready() const {
    if (Ready* const made = ready_.load(std::memory_order_acquire)) return *made;
    KeySet set = KeySet::make(engine_, {key_});
    set.is_fixed = true;
    auto fresh = std::make_unique<Ready>(std::move(set));
    Ready* made = nullptr;
    if (ready_.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel))
        return *fresh.release();
    return *made;
}

const KeySet& AesGcm::keys() const {
    return ready().set;
}

dael_message AesGcm::message(nb::handle nonce, const Memory& data, const Memory& aad) const {
    const Memory iv(nonce, Access::read, "nonce");
    if (iv.size < 8 || iv.size > 128) value_error("Nonce must be between 8 and 128 bytes");
    dael_message m{};
    gcm_start(key_, iv, m.start);
    m.in = data.data;
    m.aad = aad.data;
    m.aad_size = aad.size;
    return m;
}

void AesGcm::run(dael_direction direction, const dael_message& message) {
    const dael_cipher cipher{DAEL_GCM, static_cast<std::uint8_t>(direction), kTag, 0, 0};
    const std::uint64_t size = message.size + message.aad_size;
    std::int32_t code = DAEL_INTERNAL;
    dael_status status;
    const bool first = size <= kAsItIs && !ready_.load(std::memory_order_relaxed) &&
                       !used_.exchange(true, std::memory_order_relaxed);
    const dael_key_set* const set = first ? nullptr : ready().set.get();
    {
        const Released released(size >= kWorthReleasing);
        if (first) {
            status = dael_run(engine_.get(), &cipher, key_.get(), &message, nullptr);
            code = status == DAEL_AUTHENTICATION ? status : DAEL_OK;
            if (code != DAEL_OK) status = DAEL_OK;
        } else {
            status = dael_run_batch(engine_.get(), &cipher, set, &message, 1, &code, nullptr);
        }
        // In place the ciphertext is there again; elsewhere nothing is.
        if (direction == DAEL_DECRYPT && message.in != message.out && left_unverified(status, code))
            dael_wipe(message.out, message.size);
    }
    check(status);
    if (code != DAEL_OK) [[unlikely]]
        raise_code(code);
}

void AesGcm::run_on_device(dael_direction direction, const dael_message& message,
                           const Memory& data, const Memory& aad, const Memory* out,
                           nb::handle stream) {
    const Order order(engine_, data, {out, &aad}, stream);
    ready().on_devices.run(direction, message, data.device, aad.size != 0 && !aad.on_device,
                           order.stream());
}

void AesGcm::run_where_it_lies(dael_direction direction, const dael_message& message,
                               const Memory& data, const Memory& additional, const Memory* out,
                               nb::handle stream) {
    if (data.on_device) return run_on_device(direction, message, data, additional, out, stream);
    if (additional.on_device)
        value_error("associated_data lies on a device and data in the host's memory");
    run(direction, message);
}

nb::object AesGcm::encrypt(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                           nb::handle stream) {
    const Memory in(data, Access::read, "data"),
        additional = optional_memory(aad, "associated_data");
    dael_message m = message(nonce, in, additional);
    const Out to(out, data, in, in.size + kTag);
    m.size = in.size;
    m.out = to.bytes;
    m.tag = to.bytes + in.size;
    run_where_it_lies(DAEL_ENCRYPT, m, in, additional, to.given(), stream);
    return to.object;
}

nb::object AesGcm::decrypt(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                           nb::handle stream) {
    const Memory in(data, Access::read, "data"),
        additional = optional_memory(aad, "associated_data");
    dael_message m = message(nonce, in, additional);
    m.size = opened_size(in);
    const Out to(out, data, in, m.size);
    m.out = to.bytes;
    m.tag = in.data + m.size;
    run_where_it_lies(DAEL_DECRYPT, m, in, additional, to.given(), stream);
    return to.object;
}

std::uint64_t AesGcm::encrypt_into(nb::handle nonce, nb::handle data, nb::handle aad,
                                   nb::handle out, nb::handle stream) {
    const Memory in(data, Access::read, "data"),
        additional = optional_memory(aad, "associated_data");
    dael_message m = message(nonce, in, additional);
    const Memory to = into(out, in, in.size + kTag);
    m.size = in.size;
    m.out = to.data;
    m.tag = to.data + in.size;
    run_where_it_lies(DAEL_ENCRYPT, m, in, additional, &to, stream);
    return to.size;
}

std::uint64_t AesGcm::decrypt_into(nb::handle nonce, nb::handle data, nb::handle aad,
                                   nb::handle out, nb::handle stream) {
    const Memory in(data, Access::read, "data"),
        additional = optional_memory(aad, "associated_data");
    dael_message m = message(nonce, in, additional);
    m.size = opened_size(in);
    const Memory to = into(out, in, m.size);
    m.out = to.data;
    m.tag = in.data + m.size;
    run_where_it_lies(DAEL_DECRYPT, m, in, additional, &to, stream);
    return to.size;
}

namespace {

nb::object generate_key(int bit_length) {
    if (bit_length != 128 && bit_length != 192 && bit_length != 256)
        value_error("bit_length must be 128, 192, or 256");
    return nb::module_::import_("os").attr("urandom")(bit_length / 8);
}

}  // namespace

void bind_gcm(nb::module_& m) {
    const auto nonce = nb::arg("nonce"), data = nb::arg("data");
    auto aesgcm = nb::class_<AesGcm>(m, "AESGCM", described("AESGCM").text);
    keep_here(aesgcm,
              "its key would be written where nobody wipes it. Give a process the key's "
              "bytes by a way that you choose, and make it there");
    aesgcm
        .def(nb::init<nb::handle, const Engine*>(), DAEL_DESCRIBED("AESGCM.__init__"),
             nb::arg("key"), nb::kw_only(), nb::arg("engine") = nb::none())
        .def("encrypt", &AesGcm::encrypt, DAEL_DESCRIBED("AESGCM.encrypt"), nonce, data,
             nb::arg("associated_data") = nb::none(), nb::kw_only(), nb::arg("out") = nb::none(),
             nb::arg("stream") = nb::none())
        .def("decrypt", &AesGcm::decrypt, DAEL_DESCRIBED("AESGCM.decrypt"), nonce, data,
             nb::arg("associated_data") = nb::none(), nb::kw_only(), nb::arg("out") = nb::none(),
             nb::arg("stream") = nb::none())
        .def("encrypt_into", &AesGcm::encrypt_into, DAEL_DESCRIBED("AESGCM.encrypt_into"), nonce,
             data, nb::arg("associated_data").none(), nb::arg("buf"), nb::kw_only(),
             nb::arg("stream") = nb::none())
        .def("decrypt_into", &AesGcm::decrypt_into, DAEL_DESCRIBED("AESGCM.decrypt_into"), nonce,
             data, nb::arg("associated_data").none(), nb::arg("buf"), nb::kw_only(),
             nb::arg("stream") = nb::none())
        .def_static("generate_key", generate_key, DAEL_DESCRIBED("AESGCM.generate_key"),
                    nb::arg("bit_length"))
        .def_prop_ro("keys", &AesGcm::keys, described("AESGCM.keys").text);
}

}  // namespace daelpy
