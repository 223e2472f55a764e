// SPDX-License-Identifier: Apache-2.0
// GCM through EVP. Contexts are made and keyed once and then kept with their key, so that a message
// costs a new IV and no key expansion.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "backends/openssl/evp.hpp"
#include "core/backend.hpp"

namespace dael::openssl {

// A keyed context, and the IV size that it is set to.
struct Keyed {
    Context context;
    std::size_t iv_size = 12;
};

// Starts a message, whose J0 is `start`, under the context's key, which is `key`.
Result<> begin(const Notes& notes, Keyed& keyed, const Key& key, Direction direction,
               const Block& start);
// Additional data where `out` is null.
Result<> feed(const Notes& notes, Keyed& keyed, const std::uint8_t* in, std::uint8_t* out,
              std::uint64_t size);
Result<> end_sealing(const Notes& notes, Keyed& keyed, std::uint8_t* tag, std::size_t size);

// The keys, and for each the contexts that nobody is using at the moment: as many as threads ever
// used the key at once, if they have room. Nothing is locked, so that a child of fork() finds
// nothing locked for good: a context is taken out of its place, or put into one, by one exchange.
class Tables final : public core::KeyTables {
  public:
    using Algorithms = std::array<Algorithm, 3>;  // by key size
    static Result<std::unique_ptr<core::KeyTables>> make(const Algorithms& algorithms,
                                                         std::span<const Key> keys);
    struct RawKey;
    Tables(const Algorithms& algorithms, RawKey* memory, std::span<const Key> keys);
    ~Tables() override;
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override;

    Result<std::unique_ptr<Keyed>> take(const Notes& notes, std::size_t i) const;
    void give_back(std::size_t i, std::unique_ptr<Keyed> keyed) const;

  private:
    std::atomic<Keyed*>& place(std::size_t i, std::size_t step) const noexcept;

    const Algorithms& algorithms_;
    RawKey* const raw_;
    const std::size_t count_, places_;  // places: for each key
    mutable std::vector<std::atomic<Keyed*>> idle_;
};

// The calling thread's own context, for keys that nobody made ready; within one call, after which
// it holds none of them.
class Lent {
  public:
    explicit Lent(const Tables::Algorithms& algorithms) noexcept : algorithms_(algorithms) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
        if (used_) forget();
    }
    Result<> set_key(const Notes& notes, std::span<const std::uint8_t> raw);
    // One message under it. `key` is asked where J0 is of no nonce.
    Result<> run(const Notes& notes, const Key& key, const Cipher& cipher, const Message& message,
                 Code& code);

  private:
    void forget() noexcept;
    const Tables::Algorithms& algorithms_;
    Keyed* used_ = nullptr;
};

class Gcm {
  public:
    Result<> open();  // fetches the ciphers; before all else
    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key> keys) const {
        return Tables::make(algorithms_, keys);
    }
    Result<> run(const Notes& notes, const Cipher& cipher, const core::KeyList& keys,
                 std::span<const Message> messages, std::span<Code> codes) const;
    Lent lent() const noexcept { return Lent(algorithms_); }

  private:
    Result<> run_prepared(const Notes& notes, const Cipher& cipher, const core::KeyList& keys,
                          std::span<const Message> messages, std::span<Code> codes) const;

    Tables::Algorithms algorithms_;  // read only once open
};

}  // namespace dael::openssl
