// SPDX-License-Identifier: Apache-2.0
// AEGIS, XAES-256-GCM and AES-GCM-SIV with AESGCM's calls, for data that lies anywhere. The classes
// of each are Python's (daelstrom/aead.py).
#include "aead.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "gcm.hpp"
#include "result.hpp"

namespace daelpy {

std::uint64_t nonce_size(int mode) {
    return mode == DAEL_AEGIS256                               ? 32
           : mode == DAEL_XAES256GCM                           ? 24
           : mode >= DAEL_AEGIS128L && mode <= DAEL_AEGIS128X4 ? DAEL_BLOCK_SIZE
                                                               : DAEL_NONCE_SIZE;
}

void set_start(int mode, const std::uint8_t* nonce, dael_message& message) {
    const std::uint64_t size = nonce_size(mode);
    const std::uint64_t first = std::min<std::uint64_t>(size, DAEL_BLOCK_SIZE);
    std::copy_n(nonce, first, message.start);
    std::copy_n(nonce + first, size - first, message.start_rest);
}

void set_start(int mode, const Memory& nonce, dael_message& message) {
    if (nonce.on_device) value_error("nonce lies in a device's memory; give it from the host's");
    if (const std::uint64_t size = nonce_size(mode); nonce.size != size)
        value_error("Nonce must be " + std::to_string(size) + " bytes long");
    set_start(mode, nonce.data, message);
}

namespace {

// One key for one of these modes. A message of the host's memory is done with the key as it is; the
// first one of a device's makes it ready, once. Never changes otherwise, and has no lock.
class Aead {
  public:
    Aead(int mode, nb::handle key, int tag, const Engine* engine)
        : engine_(Engine::or_usual(engine)),
          key_(Key::from(key)),
          mode_(static_cast<std::uint8_t>(mode)),
          tag_(static_cast<std::uint8_t>(tag)) {}
    ~Aead() { delete set_.load(); }
    Aead(const Aead&) = delete;
    Aead& operator=(const Aead&) = delete;

    nb::object encrypt(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                       nb::handle stream) const {
        const Memory in(data, Access::read, "data");
        dael_message m = message(nonce, in, in.size);
        const Out to(out, data, in, in.size + tag_);
        m.out = to.bytes;
        m.tag = to.bytes + m.size;
        run(DAEL_ENCRYPT, m, in, aad, to.given(), stream);
        return to.object;
    }
    nb::object decrypt(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle out,
                       nb::handle stream) const {
        const Memory in(data, Access::read, "data");
        dael_message m = message(nonce, in, in.size - std::min<std::uint64_t>(in.size, tag_));
        check_size(in);
        const Out to(out, data, in, m.size);
        m.out = to.bytes;
        m.tag = in.data + m.size;
        run(DAEL_DECRYPT, m, in, aad, to.given(), stream);
        return to.object;
    }
    std::uint64_t encrypt_into(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle buf,
                               nb::handle stream) const {
        const Memory in(data, Access::read, "data");
        dael_message m = message(nonce, in, in.size);
        const Memory to = into(buf, in, in.size + tag_);
        m.out = to.data;
        m.tag = to.data + m.size;
        run(DAEL_ENCRYPT, m, in, aad, &to, stream);
        return to.size;
    }
    std::uint64_t decrypt_into(nb::handle nonce, nb::handle data, nb::handle aad, nb::handle buf,
                               nb::handle stream) const {
        const Memory in(data, Access::read, "data");
        dael_message m = message(nonce, in, in.size - std::min<std::uint64_t>(in.size, tag_));
        check_size(in);
        const Memory to = into(buf, in, m.size);
        m.out = to.data;
        m.tag = in.data + m.size;
        run(DAEL_DECRYPT, m, in, aad, &to, stream);
        return to.size;
    }

    // Of threads that come here for the first time together, all make one, and the first stays.
    const KeySet& keys() const {
        if (const KeySet* const made = set_.load(std::memory_order_acquire)) return *made;
        auto fresh = std::make_unique<KeySet>(KeySet::make(engine_, {key_}));
        fresh->is_fixed = true;
        const KeySet* made = nullptr;
        if (set_.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel))
            return *fresh.release();
        return *made;
    }
    int mode() const { return mode_; }
    int tag() const { return tag_; }

  private:
    // The nonce is looked at before the data's size, as AESGCM does.
    dael_message message(nb::handle nonce, const Memory& in, std::uint64_t size) const {
        dael_message m{};
        set_start(mode_, Memory(nonce, Access::read, "nonce"), m);
        m.in = in.data;
        m.size = size;
        return m;
    }
    void check_size(const Memory& in) const {
        if (in.size < tag_)
            raise("InvalidTag", "data is shorter than a tag of " + std::to_string(tag_) + " bytes");
    }
    void run(dael_direction direction, dael_message& m, const Memory& in, nb::handle aad,
             const Memory* out, nb::handle stream) const {
        const Memory additional = optional_memory(aad, "associated_data");
        m.aad = additional.data;
        m.aad_size = additional.size;
        const dael_cipher cipher{mode_, static_cast<std::uint8_t>(direction), tag_, 0, 0};
        if (in.on_device) return run_on_device(keys(), cipher, m, in, additional, out, stream);
        if (additional.on_device)
            value_error("associated_data lies on a device and data in the host's memory");
        dael_status status;
        {
            const Released released(m.size + m.aad_size >= kWorthReleasing);
            status = dael_run(engine_.get(), &cipher, key_.get(), &m, nullptr);
            // In place the ciphertext is there again; elsewhere nothing is.
            if (direction == DAEL_DECRYPT && m.in != m.out && left_unverified(status, DAEL_OK))
                dael_wipe(m.out, m.size);
        }
        check(status);
    }

    Engine engine_;
    Key key_;
    const std::uint8_t mode_, tag_;
    mutable std::atomic<const KeySet*> set_{nullptr};
};

}  // namespace

void bind_aead(nb::module_& m) {
    const auto nonce = nb::arg("nonce"), data = nb::arg("data");
    const auto out = nb::arg("out") = nb::none(), stream = nb::arg("stream") = nb::none();
    auto aead = nb::class_<Aead>(m, "Aead", described("Aead").text);
    keep_here(aead,
              "its key would be written where nobody wipes it. Give a process the key's "
              "bytes by a way that you choose, and make it there");
    aead.def(nb::init<int, nb::handle, int, const Engine*>(), DAEL_DESCRIBED("Aead.__init__"),
             nb::arg("mode"), nb::arg("key"), nb::arg("tag"), nb::arg("engine") = nb::none())
        .def("encrypt", &Aead::encrypt, DAEL_DESCRIBED("Aead.encrypt"), nonce, data,
             nb::arg("associated_data").none(), out, stream)
        .def("decrypt", &Aead::decrypt, DAEL_DESCRIBED("Aead.decrypt"), nonce, data,
             nb::arg("associated_data").none(), out, stream)
        .def("encrypt_into", &Aead::encrypt_into, DAEL_DESCRIBED("Aead.encrypt_into"), nonce, data,
             nb::arg("associated_data").none(), nb::arg("buf"), stream)
        .def("decrypt_into", &Aead::decrypt_into, DAEL_DESCRIBED("Aead.decrypt_into"), nonce, data,
             nb::arg("associated_data").none(), nb::arg("buf"), stream)
        .def_prop_ro("keys", &Aead::keys, described("Aead.keys").text)
        .def_prop_ro("mode", &Aead::mode, described("Aead.mode").text)
        .def_prop_ro("tag", &Aead::tag, described("Aead.tag").text);
}

}  // namespace daelpy
