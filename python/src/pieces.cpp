// SPDX-License-Identifier: Apache-2.0
// A message in pieces, with the manners of pyca/cryptography's contexts: what Cipher's encryptor()
// and decryptor() give.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "gcm.hpp"

namespace daelpy {
namespace {

struct Handle {
    dael_pieces* get = nullptr;
    Handle() = default;
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { dael_pieces_free(get); }
};

bool equal(const std::uint8_t* a, const std::uint8_t* b, std::size_t size) {
    volatile std::uint8_t differ = 0;  // in a time that does not depend on them
    for (std::size_t i = 0; i < size; ++i) differ = differ | (a[i] ^ b[i]);
    return differ == 0;
}

Memory host_memory(nb::handle object, const char* name) {
    Memory memory(object, Access::read, name);
    if (memory.on_device)
        raise("UnsupportedAlgorithm", std::string(name) +
                                          " lies on a device, where messages have no pieces; use "
                                          "daelstrom.ctr, or AESGCM");
    return memory;
}

class Context {
  public:
    Context(const Engine& engine, dael_cipher cipher, Key key, const std::uint8_t* start)
        : engine_(engine), cipher_(cipher), key_(std::move(key)) {
        std::copy_n(start, DAEL_BLOCK_SIZE, start_);
        if (!xts()) check(dael_begin(engine_.get(), &cipher_, key_.get(), start_, &pieces_.get));
    }
    virtual ~Context() = default;

    nb::object update(nb::handle data) {
        const Memory in = host_memory(data, "data");
        const Busy busy(*this);
        ready();
        const std::uint64_t size = makes(in.size);
        const nb::object out = new_bytes(size);
        process(in.data, in.size, inside(out), size);
        return out;
    }
    std::uint64_t update_into(nb::handle data, nb::handle buffer) {
        const Memory in = host_memory(data, "data");
        const Memory out(buffer, Access::write, "buf");
        if (out.on_device) value_error("buf lies on a device and data in the host's memory");
        const Busy busy(*this);
        ready();
        const std::uint64_t least = in.size + (blocks() ? DAEL_BLOCK_SIZE - 1 : 0);
        if (out.size < least)
            value_error("buffer must be at least " + std::to_string(least) +
                        " bytes for this payload");
        const std::uint64_t size = makes(in.size);
        process(in.data, in.size, out.data, size);
        return size;
    }
    virtual nb::object finalize() {
        const Busy busy(*this);
        ready();
        if (!xts()) {
            const dael_status status = dael_pieces_finish(pieces_.get, nullptr, 0, nullptr);
            if (status == DAEL_RAGGED_LENGTH)
                value_error(
                    "The length of the provided data is not a multiple of the block length.");
            check(status);
        }
        finalized_ = true;
        return new_bytes(0);
    }
    void reset_nonce(nb::handle nonce) {
        if (cipher_.mode != DAEL_CTR)
            raise("UnsupportedAlgorithm",
                  "This algorithm or mode does not support resetting the nonce.");
        const Memory block = host_memory(nonce, "nonce");
        const Busy busy(*this);
        ready();
        if (block.size != DAEL_BLOCK_SIZE) value_error("Nonce must be 16 bytes long");
        check(dael_pieces_restart(pieces_.get, block.data));
    }

  protected:
    // Another thread in the midst of a call, while Python's lock is let go.
    class Busy {
      public:
        explicit Busy(Context& context) : context_(context) {
            if (!context.busy_.exchange(true)) return;
            PyErr_SetString(PyExc_RuntimeError,
                            "this context is in use by another thread; it takes one at a time");
            throw nb::python_error();
        }
        ~Busy() { context_.busy_ = false; }
        Busy(const Busy&) = delete;
        Busy& operator=(const Busy&) = delete;

      private:
        Context& context_;
    };

    bool xts() const { return cipher_.mode == DAEL_XTS; }
    bool blocks() const { return cipher_.mode == DAEL_ECB || cipher_.mode == DAEL_CBC; }
    std::uint64_t makes(std::uint64_t size) const {
        if (!blocks()) return size;
        return (size + dael_pieces_held(pieces_.get)) / DAEL_BLOCK_SIZE * DAEL_BLOCK_SIZE;
    }
    void ready() const {
        if (finalized_) raise("AlreadyFinalized", "Context was already finalized.");
    }
    virtual void process(const std::uint8_t* in, std::uint64_t size, std::uint8_t* out,
                         std::uint64_t room) {
        if (xts()) return sectors(in, size, out);
        std::size_t written = 0;
        dael_status status;
        {
            const Released released(size >= kWorthReleasing);
            status = dael_pieces_update(pieces_.get, in, size, out, room, &written);
        }
        check(status);
    }
    // As in OpenSSL, each update is a data unit of its own from the same tweak.
    void sectors(const std::uint8_t* in, std::uint64_t size, std::uint8_t* out) {
        if (size < DAEL_BLOCK_SIZE)
            value_error(
                "In XTS mode you must supply at least a full block in the first update "
                "call. For AES this is 16 bytes.");
        if (size > (1u << 24))
            value_error("XTS takes data units of up to 2^24 bytes, and this one is " +
                        std::to_string(size));
        dael_cipher cipher = cipher_;
        cipher.sector = static_cast<std::uint32_t>(size);
        dael_message message{};
        message.in = in;
        message.out = out;
        message.size = size;
        std::copy_n(start_, DAEL_BLOCK_SIZE, message.start);
        dael_status status;
        {
            const Released released(size >= kWorthReleasing);
            status = dael_run(engine_.get(), &cipher, key_.get(), &message, nullptr);
        }
        check(status);
    }

    Engine engine_;
    dael_cipher cipher_;
    Key key_;
    std::uint8_t start_[DAEL_BLOCK_SIZE] = {};
    Handle pieces_;
    bool finalized_ = false;
    std::atomic<bool> busy_{false};
};

class AeadContext : public Context {
  public:
    using Context::Context;
    virtual void authenticate_additional_data(nb::handle data) {
        const Memory aad = host_memory(data, "data");
        const Busy busy(*this);
        ready();
        if (updated_) raise("AlreadyUpdated", "Update has been called on this context.");
        add_aad(aad);
    }

  protected:
    virtual void add_aad(const Memory& aad) {
        check(dael_pieces_aad(pieces_.get, aad.data, aad.size));
    }
    bool updated_ = false;
};

class AeadEncryption final : public AeadContext {
  public:
    using AeadContext::AeadContext;
    nb::object finalize() override {
        const Busy busy(*this);
        ready();
        check(dael_pieces_finish(pieces_.get, tag_, sizeof tag_, nullptr));
        finalized_ = true;
        return new_bytes(0);
    }
    nb::bytes tag() const {
        if (!finalized_)
            raise("NotYetFinalized", "You must finalize encryption before getting the tag.");
        return nb::bytes(tag_, sizeof tag_);
    }

  protected:
    void process(const std::uint8_t* in, std::uint64_t size, std::uint8_t* out,
                 std::uint64_t room) override {
        Context::process(in, size, out, room);
        updated_ = true;  // not by an update that was refused
    }

  private:
    std::uint8_t tag_[DAEL_TAG_SIZE] = {};
};

class AeadDecryption final : public AeadContext {
  public:
    // `tag` may come later; of a size that is not known before, if `least` is less than 16, or of
    // one that the library has not got (pyca has all from 4 bytes on). Then the plaintext is
    // encrypted once more, which makes the tag to compare with.
    AeadDecryption(const Engine& engine, dael_cipher cipher, Key key, const std::uint8_t* start,
                   std::vector<std::uint8_t> tag, std::size_t least)
        : AeadContext(engine, cipher, std::move(key), start), tag_(std::move(tag)), least_(least) {
        if (tag_.empty() ? least_ >= DAEL_TAG_SIZE : known_size(tag_.size())) return;
        const dael_cipher other{DAEL_GCM, DAEL_ENCRYPT, DAEL_TAG_SIZE, 0, 0};
        check(dael_begin(engine_.get(), &other, key_.get(), start_, &shadow_.get));
    }
    nb::object finalize() override {
        const Busy busy(*this);
        ready();
        if (tag_.empty()) value_error("Authentication tag must be provided when decrypting.");
        return end(tag_.data(), tag_.size());
    }
    nb::object finalize_with_tag(nb::handle given) {
        const Memory tag = host_memory(given, "tag");
        const Busy busy(*this);
        ready();
        if (!tag_.empty()) value_error("Authentication tag must be provided only once.");
        if (tag.size < least_)
            value_error("Authentication tag must be " + std::to_string(least_) +
                        " bytes or longer.");
        if (tag.size > DAEL_TAG_SIZE)
            value_error("Authentication tag cannot be more than 16 bytes.");
        return end(tag.data, tag.size);
    }

    static bool known_size(std::size_t tag) { return tag == 4 || tag == 8 || tag >= 12; }

  protected:
    void add_aad(const Memory& aad) override {
        AeadContext::add_aad(aad);
        if (!shadow_.get) return;
        const dael_status status = dael_pieces_aad(shadow_.get, aad.data, aad.size);
        finalized_ = status != DAEL_OK;  // the two have parted
        check(status);
    }
    void process(const std::uint8_t* in, std::uint64_t size, std::uint8_t* out,
                 std::uint64_t) override {
        dael_status status;
        {
            std::vector<std::uint8_t> nowhere(shadow_.get ? size : 0);
            const Released released(size >= kWorthReleasing);
            status = dael_pieces_update_unverified(pieces_.get, in, out, size);
            updated_ |= status == DAEL_OK;
            if (status == DAEL_OK && shadow_.get) {
                status = dael_pieces_update(shadow_.get, out, size, nowhere.data(), size, nullptr);
                finalized_ = status != DAEL_OK;  // the two have parted
            }
        }
        check(status);
    }

  private:
    nb::object end(const std::uint8_t* tag, std::size_t size) {
        finalized_ = true;
        if (shadow_.get) {
            std::uint8_t right[DAEL_TAG_SIZE] = {};
            check(dael_pieces_finish(shadow_.get, right, sizeof right, nullptr));
            const bool same = equal(right, tag, size);
            dael_wipe(right, sizeof right);
            if (!same) raise_code(DAEL_AUTHENTICATION);
        } else {
            check(dael_pieces_verify(pieces_.get, tag, size));
        }
        return new_bytes(0);
    }
    std::vector<std::uint8_t> tag_;
    std::size_t least_;
    Handle shadow_;
};

// The context for a mode: `start` is its IV, its counter block, its tweak; in GCM of any size.
nb::object begin(int mode, int direction, nb::handle key, nb::handle start, nb::handle tag,
                 std::size_t least, const Engine* given) {
    const Engine& engine = Engine::or_usual(given);
    Key ready = mode == DAEL_XTS ? Key::xts_from(key) : Key::from(key);
    dael_cipher cipher{static_cast<std::uint8_t>(mode), static_cast<std::uint8_t>(direction), 0, 0,
                       0};
    std::uint8_t block[DAEL_BLOCK_SIZE] = {};
    if (mode != DAEL_ECB) {
        const Memory first = host_memory(start, "iv");
        if (mode == DAEL_GCM)
            gcm_start(ready, first, block);
        else if (first.size != DAEL_BLOCK_SIZE)
            value_error("iv is " + std::to_string(first.size) + " bytes; it takes 16");
        else
            std::copy_n(first.data, DAEL_BLOCK_SIZE, block);
    }
    if (mode != DAEL_GCM)
        return nb::cast(new Context(engine, cipher, std::move(ready), block),
                        nb::rv_policy::take_ownership);
    cipher.tag = DAEL_TAG_SIZE;
    if (direction == DAEL_ENCRYPT)
        return nb::cast(new AeadEncryption(engine, cipher, std::move(ready), block),
                        nb::rv_policy::take_ownership);
    std::vector<std::uint8_t> expected;
    if (!tag.is_none()) {
        const Memory memory = host_memory(tag, "tag");
        expected.assign(memory.data, memory.data + memory.size);
        if (memory.size < std::min<std::size_t>(least, DAEL_TAG_SIZE) || memory.size < 4 ||
            memory.size > DAEL_TAG_SIZE)
            value_error("tag is " + std::to_string(memory.size) + " bytes; it takes " +
                        std::to_string(least) + " to 16");
        if (AeadDecryption::known_size(memory.size))
            cipher.tag = static_cast<std::uint8_t>(memory.size);
    }
    return nb::cast(
        new AeadDecryption(engine, cipher, std::move(ready), block, std::move(expected), least),
        nb::rv_policy::take_ownership);
}

}  // namespace

void bind_pieces(nb::module_& m) {
    auto context = nb::class_<Context>(m, "CipherContext", described("CipherContext").text);
    keep_here(context, "a copy would use the same keystream");
    context.def("update", &Context::update, DAEL_DESCRIBED("CipherContext.update"), nb::arg("data"))
        .def("update_into", &Context::update_into, DAEL_DESCRIBED("CipherContext.update_into"),
             nb::arg("data"), nb::arg("buf"))
        .def("finalize", &Context::finalize, DAEL_DESCRIBED("CipherContext.finalize"))
        .def("reset_nonce", &Context::reset_nonce, DAEL_DESCRIBED("CipherContext.reset_nonce"),
             nb::arg("nonce"));
    nb::class_<AeadContext, Context>(m, "AEADCipherContext", described("AEADCipherContext").text)
        .def("authenticate_additional_data", &AeadContext::authenticate_additional_data,
             DAEL_DESCRIBED("AEADCipherContext.authenticate_additional_data"), nb::arg("data"));
    nb::class_<AeadEncryption, AeadContext>(m, "AEADEncryptionContext",
                                            described("AEADEncryptionContext").text)
        .def_prop_ro("tag", &AeadEncryption::tag, described("AEADEncryptionContext.tag").text);
    nb::class_<AeadDecryption, AeadContext>(m, "AEADDecryptionContext",
                                            described("AEADDecryptionContext").text)
        .def("finalize_with_tag", &AeadDecryption::finalize_with_tag,
             DAEL_DESCRIBED("AEADDecryptionContext.finalize_with_tag"), nb::arg("tag"));
    m.def("begin", begin, nb::arg("mode"), nb::arg("direction"), nb::arg("key"),
          nb::arg("start").none(), nb::kw_only(), nb::arg("tag") = nb::none(),
          nb::arg("min_tag_length") = DAEL_TAG_SIZE, nb::arg("engine") = nb::none());
}

}  // namespace daelpy
