// SPDX-License-Identifier: Apache-2.0
#include "backends/openssl/gcm.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "core/secure_memory.hpp"
#include "modes/gcm.hpp"

namespace dael::openssl {
namespace {

// OpenSSL 3 takes IVs of up to this many bytes.
constexpr std::size_t kLongestIv = 128;

struct RawKey {
    std::array<std::uint8_t, 32> bytes;
    std::size_t size;
    std::size_t which() const noexcept { return size / 8 - 2; }  // of three key sizes
};

// A keyed context, and the IV size that it is set to.
struct Keyed {
    Context context;
    std::size_t iv_size = kNonceSize;
};

// Threads are numbered as they first come here.
std::size_t thread_number() noexcept {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
    return number;
}

// The keys, and for each the contexts that nobody is using at the moment: as many as threads ever
// used the key at once, if they have room. Nothing is locked, so that a child of fork() finds
// nothing locked for good: a context is taken out of its place, or put into one, by one exchange.
class Keys final : public core::PreparedKeys {
  public:
    Keys(void* memory, std::size_t count)
        : raw_(static_cast<RawKey*>(memory)),
          count_(count),
          places_(std::clamp<std::size_t>(kAllPlaces / count, 1, kMostPlaces)),
          idle_(count * places_) {}
    ~Keys() override {
        for (auto& place : idle_) delete place.load();
        core::secure_release(raw_, count_ * sizeof(RawKey));
    }
    RawKey& operator[](std::size_t i) const noexcept { return raw_[i]; }

    Result<std::unique_ptr<Keyed>> take(std::size_t i, const EVP_CIPHER* cipher) const {
        for (std::size_t step = 0; step < places_; ++step) {
            auto& at = place(i, step);
            if (!at.load(std::memory_order_relaxed)) continue;
            if (Keyed* const idle = at.exchange(nullptr)) return std::unique_ptr<Keyed>(idle);
        }
        auto context = new_context();
        if (!context) return std::move(context).error();
        DAEL_TRY(initialise(context->get(), cipher, raw_[i].bytes.data(), nullptr, 1));
        return std::make_unique<Keyed>(std::move(*context));
    }
    void give_back(std::size_t i, std::unique_ptr<Keyed> keyed) const {
        for (std::size_t step = 0; step < places_; ++step) {
            Keyed* none = nullptr;
            if (!place(i, step).compare_exchange_strong(none, keyed.get())) continue;
            (void)keyed.release();
            return;
        }
    }

  private:
    static constexpr std::size_t kMostPlaces = 64, kAllPlaces = 1024;

    // Each thread begins at another place, where it left its context the last time.
    std::atomic<Keyed*>& place(std::size_t i, std::size_t step) const noexcept {
        return idle_[i * places_ + (thread_number() + step) % places_];
    }

    RawKey* const raw_;
    const std::size_t count_, places_;  // places: for each key
    mutable std::vector<std::atomic<Keyed*>> idle_;
};

// Starts a message under the context's key.
Result<> begin(Keyed& keyed, Direction direction, std::span<const std::uint8_t> iv) {
    EVP_CIPHER_CTX* const context = keyed.context.get();
    if (keyed.iv_size != iv.size()) {
        if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, static_cast<int>(iv.size()),
                                nullptr) <= 0)
            return failure("EVP_CTRL_AEAD_SET_IVLEN");
        keyed.iv_size = iv.size();
    }
    return initialise(context, nullptr, nullptr, iv.data(), direction == Direction::encrypt);
}

// Additional data where `out` is null.
Result<> feed(EVP_CIPHER_CTX* context, const std::uint8_t* in, std::uint8_t* out,
              std::size_t size) {
    int written = 0;
    for (std::size_t done = 0; done < size;) {
        const auto piece = static_cast<int>(std::min(kPiece, size - done));
        if (!EVP_CipherUpdate(context, out ? out + done : nullptr, &written, in + done, piece))
            return failure("EVP_CipherUpdate");
        done += static_cast<std::size_t>(piece);
    }
    return {};
}

Result<> end_sealing(EVP_CIPHER_CTX* context, std::uint8_t* tag, std::size_t size) {
    int written = 0;
    Block unused;
    if (!EVP_CipherFinal_ex(context, unused.data(), &written)) return failure("EVP_CipherFinal_ex");
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(size), tag) <= 0)
        return failure("EVP_CTRL_AEAD_GET_TAG");
    return {};
}

Result<Code> message(Keyed& keyed, Direction direction, const core::GcmSegment& s,
                     std::span<const std::uint8_t> iv) {
    EVP_CIPHER_CTX* const context = keyed.context.get();
    DAEL_TRY(begin(keyed, direction, iv));
    DAEL_TRY(feed(context, s.aad, nullptr, s.aad_size));
    DAEL_TRY(feed(context, s.in, s.out, s.size));
    if (direction == Direction::encrypt) {
        DAEL_TRY(end_sealing(context, s.tag, s.tag_size));
        return Code::ok;
    }
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(s.tag_size), s.tag) <=
        0)
        return failure("EVP_CTRL_AEAD_SET_TAG");
    int written = 0;
    Block unused;
    if (EVP_CipherFinal_ex(context, unused.data(), &written)) return Code::ok;
    ERR_clear_error();
    return Code::authentication;
}

// What was decrypted before its tag turned out to be another must not remain. In place, the same
// keystream once more makes it the ciphertext that it was.
Result<> take_back(Keyed& keyed, core::GcmSegment s, std::span<const std::uint8_t> iv) {
    if (s.in != s.out) {
        wipe(s.out, s.size);
        return {};
    }
    Block tag;
    s.tag = tag.data();
    auto done = message(keyed, Direction::encrypt, s, iv);
    if (!done) wipe(s.out, s.size);
    return done ? Result<>{} : std::move(done).error();
}

// IVs beyond kLongestIv: their first counter block, and from it an IV of 16 bytes with the same.
Result<Block> shorter_iv(const EVP_CIPHER* ecb, const RawKey& key,
                         std::span<const std::uint8_t> iv) {
    const auto context = new_context();
    if (!context) return context.error();
    Block subkey{};
    int written = 0;
    DAEL_TRY(initialise(context->get(), ecb, key.bytes.data(), nullptr, 1));
    if (!EVP_CipherUpdate(context->get(), subkey.data(), &written, subkey.data(), kBlockSize))
        return failure("the hash subkey");
    core::FieldElement h = core::load_element(subkey.data());
    const Block shorter = modes::iv_for_counter(h, modes::initial_counter(h, iv));
    wipe(&h, sizeof h);
    wipe(subkey.data(), subkey.size());
    return shorter;
}

// EVP tells a tag only where it encrypts. So to decrypt, one context encrypts the ciphertext, which
// makes it plaintext, and a second one encrypts that again, for the tag.
class Stream final : public core::GcmStream {
  public:
    static Result<std::unique_ptr<core::GcmStream>> start(Direction direction,
                                                          const EVP_CIPHER* cipher,
                                                          const Keys& keys, std::uint32_t key,
                                                          std::span<const std::uint8_t> iv) {
        auto stream = std::make_unique<Stream>();
        for (Keyed* keyed : {&stream->sealer_, &stream->opener_}) {
            if (keyed == &stream->opener_ && direction == Direction::encrypt) break;
            auto taken = keys.take(key, cipher);
            if (!taken) return std::move(taken).error();
            *keyed = std::move(**taken);
            DAEL_TRY(begin(*keyed, Direction::encrypt, iv));
        }
        return std::unique_ptr<core::GcmStream>(std::move(stream));
    }

    Result<> aad(std::span<const std::uint8_t> bytes) override {
        return feed(sealer_.context.get(), bytes.data(), nullptr, bytes.size());
    }
    Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out) override {
        if (!opener_.context) return feed(sealer_.context.get(), in.data(), out, in.size());
        std::array<std::uint8_t, 4096> ciphertext;
        for (std::size_t done = 0; done < in.size();) {
            const std::size_t size = std::min(ciphertext.size(), in.size() - done);
            DAEL_TRY(feed(opener_.context.get(), in.data() + done, out + done, size));
            DAEL_TRY(feed(sealer_.context.get(), out + done, ciphertext.data(), size));
            done += size;
        }
        return {};
    }
    Result<Block> finish() override {
        Block tag;
        DAEL_TRY(end_sealing(sealer_.context.get(), tag.data(), tag.size()));
        return tag;
    }

  private:
    Keyed sealer_, opener_;
};

}  // namespace

Result<> Gcm::open() {
    for (std::size_t i = 0; i < gcm_.size(); ++i) {
        const std::string algorithm = "AES-" + std::to_string(128 + 64 * i);
        DAEL_TRY(fetch(gcm_[i], algorithm + "-GCM"));
        DAEL_TRY(fetch(ecb_[i], algorithm + "-ECB"));
    }
    return {};
}

Result<std::unique_ptr<core::PreparedKeys>> Gcm::prepare_keys(std::span<const Key> keys) const {
    const std::size_t count = std::max<std::size_t>(keys.size(), 1);
    void* memory = core::secure_allocate(count * sizeof(RawKey));
    if (!memory) return Error{Code::out_of_memory, "no memory for the keys"};
    auto prepared = std::make_unique<Keys>(memory, count);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const auto raw = keys[i].schedule().key();
        std::ranges::copy(raw, (*prepared)[i].bytes.begin());
        (*prepared)[i].size = raw.size();
    }
    return std::unique_ptr<core::PreparedKeys>(std::move(prepared));
}

Result<> Gcm::run(Direction direction, const core::PreparedKeys& prepared,
                  std::span<const core::GcmSegment> segments, std::span<Code> results) const {
    const auto& keys = static_cast<const Keys&>(prepared);
    for (std::size_t i = 0; i < segments.size();) {
        // A context serves the messages of its key for as long as they follow each other.
        const std::uint32_t key = segments[i].key;
        auto keyed = keys.take(key, gcm_[keys[key].which()].get());
        if (!keyed) return std::move(keyed).error();
        for (; i < segments.size() && segments[i].key == key; ++i) {
            const core::GcmSegment& segment = segments[i];
            std::span iv{segment.iv, segment.iv_size};
            Result<Block> shorter = Block{};
            if (iv.size() > kLongestIv) {
                shorter = shorter_iv(ecb_[keys[key].which()].get(), keys[key], iv);
                if (!shorter) return std::move(shorter).error();
                iv = *shorter;
            }
            auto done = message(**keyed, direction, segment, iv);
            if (!done) {
                if (direction == Direction::decrypt) wipe(segment.out, segment.size);
                return std::move(done).error();
            }
            if (*done == Code::authentication) DAEL_TRY(take_back(**keyed, segment, iv));
            results[i] = *done;
        }
        keys.give_back(key, std::move(*keyed));
    }
    return {};
}

Result<std::unique_ptr<core::GcmStream>> Gcm::stream(Direction direction,
                                                     const core::PreparedKeys& prepared,
                                                     std::uint32_t key,
                                                     std::span<const std::uint8_t> iv) const {
    const auto& keys = static_cast<const Keys&>(prepared);
    const std::size_t which = keys[key].which();
    Result<Block> shorter = Block{};
    if (iv.size() > kLongestIv) {
        shorter = shorter_iv(ecb_[which].get(), keys[key], iv);
        if (!shorter) return std::move(shorter).error();
        iv = *shorter;
    }
    return Stream::start(direction, gcm_[which].get(), keys, key, iv);
}

}  // namespace dael::openssl
