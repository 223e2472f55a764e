// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/gcm.hpp"

#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "core/key_schedule.hpp"
#include "core/secure_memory.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::openssl {

struct Tables::RawKey {
    std::array<std::uint8_t, 32> bytes;
    int size;
};

namespace {

constexpr std::size_t kMaxPlaces = 64, kAllPlaces = 1024;

// Threads are numbered as they first come here.
std::size_t thread_number() noexcept {
    constinit static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
    return number;
}

Result<Code> message(const Notes& notes, Keyed& keyed, const Key& key, const Cipher& cipher,
                     const Message& m) {
    EVP_CIPHER_CTX* const context = keyed.context.get();
    DAEL_TRY(begin(notes, keyed, key, cipher.direction, m.start));
    DAEL_TRY(feed(notes, keyed, m.aad, nullptr, m.aad_size));
    DAEL_TRY(feed(notes, keyed, m.in, m.out, m.size));
    if (cipher.direction == Direction::encrypt) {
        DAEL_TRY(end_sealing(notes, keyed, m.tag, cipher.tag));
        return Code::ok;
    }
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, cipher.tag, m.tag) <= 0)
        return failure(notes, "EVP_CTRL_AEAD_SET_TAG");
    int written = 0;
    Block unused;
    if (EVP_CipherFinal_ex(context, unused.data(), &written)) return Code::ok;
    notes.forget();
    return Code::authentication;
}

// What was decrypted before its tag turned out to be another must not remain. In place, the same
// keystream once more makes it the ciphertext that it was.
Result<> take_back(const Notes& notes, Keyed& keyed, const Key& key, Message m) {
    if (m.in != m.out) {
        wipe(m.out, m.size);
        return {};
    }
    Block tag;
    m.tag = tag.data();
    auto done = message(notes, keyed, key, {Mode::gcm, Direction::encrypt}, m);
    if (!done) wipe(m.out, m.size);
    return done ? Result<>{} : std::move(done).error();
}

Result<> run_one(const Notes& notes, Keyed& keyed, const Key& key, const Cipher& cipher,
                 const Message& m, Code& code) {
    auto done = message(notes, keyed, key, cipher, m);
    if (!done) {
        if (cipher.direction == Direction::decrypt) wipe(m.out, m.size);
        return std::move(done).error();
    }
    if (*done != Code::authentication) return {};
    code = Code::authentication;
    return take_back(notes, keyed, key, m);
}

}  // namespace

Result<> begin(const Notes& notes, Keyed& keyed, const Key& key, Direction direction,
               const Block& start) {
    EVP_CIPHER_CTX* const context = keyed.context.get();
    Block iv = start;
    std::size_t size = gcm::kNonceSize;
    if (!modes::is_of_nonce(start)) {
        modes::Element h = modes::hash_subkey(key.schedule());
        const core::WipeAtEnd wipe(h);
        iv = modes::iv_for(h, start);
        size = iv.size();
    }
    if (keyed.iv_size != size) {
        if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(size),
                                nullptr) <= 0)
            return failure(notes, "EVP_CTRL_AEAD_SET_IVLEN");
        keyed.iv_size = size;
    }
    return initialise(notes, context, nullptr, nullptr, iv.data(), direction == Direction::encrypt);
}

Result<> feed(const Notes& notes, Keyed& keyed, const std::uint8_t* in, std::uint8_t* out,
              std::uint64_t size) {
    int written = 0;
    for (std::uint64_t done = 0; done < size;) {
        const auto piece = static_cast<int>(std::min<std::uint64_t>(kPiece, size - done));
        if (!EVP_CipherUpdate(keyed.context.get(), out ? out + done : nullptr, &written, in + done,
                              piece))
            return failure(notes, "EVP_CipherUpdate");
        done += static_cast<std::uint64_t>(piece);
    }
    return {};
}

Result<> end_sealing(const Notes& notes, Keyed& keyed, std::uint8_t* tag, std::size_t size) {
    EVP_CIPHER_CTX* const context = keyed.context.get();
    int written = 0;
    Block unused;
    if (!EVP_CipherFinal_ex(context, unused.data(), &written))
        return failure(notes, "EVP_CipherFinal_ex");
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(size), tag) <= 0)
        return failure(notes, "EVP_CTRL_AEAD_GET_TAG");
    return {};
}

Result<std::unique_ptr<core::KeyTables>> Tables::make(const Algorithms& algorithms,
                                                      std::span<const Key> keys) {
    const std::size_t size = keys.size() * sizeof(RawKey);
    void* memory = core::secure_allocate(size);
    if (!memory) return Error{Code::out_of_memory, "no memory for the keys"};
    try {
        return std::unique_ptr<core::KeyTables>(
            std::make_unique<Tables>(algorithms, static_cast<RawKey*>(memory), keys));
    } catch (...) {  // no memory for the rest, and nobody has the keys
        core::secure_release(memory, size);
        throw;
    }
}

Tables::Tables(const Algorithms& algorithms, RawKey* memory, std::span<const Key> keys)
    : algorithms_(algorithms),
      raw_(memory),
      count_(keys.size()),
      places_(
          std::clamp<std::size_t>(kAllPlaces / std::max<std::size_t>(count_, 1), 1, kMaxPlaces)),
      idle_(count_ * places_) {
    for (std::uint32_t i = 0; i < count_; ++i) (void)replace(i, keys[i], {});
}

Tables::~Tables() {
    for (auto& idle : idle_) delete idle.load();
    core::secure_release(raw_, count_ * sizeof(RawKey));
}

Result<> Tables::replace(std::uint32_t index, const Key& key, Stream) {
    for (std::size_t step = 0; step < places_; ++step) delete place(index, step).exchange(nullptr);
    raw_[index].bytes = key.schedule().raw;
    raw_[index].size = key.schedule().key_bytes;
    return {};
}

// Each thread begins at another place, where it left its context the last time.
std::atomic<Keyed*>& Tables::place(std::size_t i, std::size_t step) const noexcept {
    return idle_[i * places_ + (thread_number() + step) % places_];
}

Result<std::unique_ptr<Keyed>> Tables::take(const Notes& notes, std::size_t i) const {
    for (std::size_t step = 0; step < places_; ++step) {
        auto& at = place(i, step);
        if (!at.load(std::memory_order_relaxed)) continue;
        if (Keyed* const idle = at.exchange(nullptr)) return std::unique_ptr<Keyed>(idle);
    }
    DAEL_LET(context, new_context());
    DAEL_TRY(initialise(notes, context.get(), algorithms_[by_size(raw_[i].size)].get(),
                        raw_[i].bytes.data(), nullptr, 1));
    // Not make_unique: an aggregate in round brackets is more than clang 14 knows of C++20.
    return std::unique_ptr<Keyed>(new Keyed{std::move(context)});
}

void Tables::give_back(std::size_t i, std::unique_ptr<Keyed> keyed) const {
    for (std::size_t step = 0; step < places_; ++step) {
        Keyed* none = nullptr;
        if (!place(i, step).compare_exchange_strong(none, keyed.get())) continue;
        (void)keyed.release();
        return;
    }
}

// A context that has its algorithm is keyed anew without an allocation; a key of zeros in the end
// takes the place of the real one, and of all that was made with it.
Result<> Lent::set_key(const Notes& notes, std::span<const std::uint8_t> raw) {
    thread_local std::array<Keyed, 3> own;
    const std::size_t which = by_size(static_cast<int>(raw.size()));
    Keyed& mine = own[which];
    if (used_ && used_ != &mine) forget();
    const bool fresh = !mine.context;
    if (fresh) {
        DAEL_LET(context, new_context());
        mine.context = std::move(context);
    }
    used_ = &mine;
    return initialise(notes, mine.context.get(), fresh ? algorithms_[which].get() : nullptr,
                      raw.data(), nullptr, 1);
}

Result<> Lent::run(const Notes& notes, const Key& key, const Cipher& cipher, const Message& message,
                   Code& code) {
    return run_one(notes, *used_, key, cipher, message, code);
}

void Lent::forget() noexcept {
    static constexpr std::array<std::uint8_t, 32> kNoKey{};
    if (!EVP_CipherInit_ex2(used_->context.get(), nullptr, kNoKey.data(), nullptr, 1, nullptr))
        *used_ = {};
    used_ = nullptr;
}

Result<> Gcm::open() {
    for (std::size_t i = 0; i < algorithms_.size(); ++i)
        DAEL_TRY(fetch(algorithms_[i], "AES-" + std::to_string(128 + 64 * i) + "-GCM"));
    return {};
}

Result<> Gcm::run(const Notes& notes, const Cipher& cipher, const core::KeyList& keys,
                  std::span<const Message> messages, std::span<Code> codes) const {
    if (keys.tables) return run_prepared(notes, cipher, keys, messages, codes);
    Lent lent(algorithms_);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Key& key = keys.list[messages[i].key];
        DAEL_TRY(lent.set_key(notes, key.schedule().key()));
        DAEL_TRY(lent.run(notes, key, cipher, messages[i], codes[i]));
    }
    return {};
}

// A context serves the messages of its key for as long as they follow each other.
Result<> Gcm::run_prepared(const Notes& notes, const Cipher& cipher, const core::KeyList& keys,
                           std::span<const Message> messages, std::span<Code> codes) const {
    const auto& tables = static_cast<const Tables&>(*keys.tables);
    for (std::size_t i = 0; i < messages.size();) {
        const std::uint32_t key = messages[i].key;
        DAEL_LET(keyed, tables.take(notes, key));
        for (; i < messages.size() && messages[i].key == key; ++i)
            DAEL_TRY(run_one(notes, *keyed, keys.list[key], cipher, messages[i], codes[i]));
        tables.give_back(key, std::move(keyed));
    }
    return {};
}

}  // namespace dael::openssl
