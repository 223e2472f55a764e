// SPDX-License-Identifier: Apache-2.0
// AES-GCM and GMAC (NIST SP 800-38D): encryption that also authenticates.
//
// Safety: a nonce must never repeat under one key, else the plaintexts' XOR and the authentication
// key are lost. Use a counter for it, or at most 2^32 messages with random 96-bit nonces under a
// key (SP 800-38D 8.3). Tags shorter than 16 bytes authenticate less (appendix C). Opening releases
// no plaintext before its tag is verified: on failure the output holds zeros or what it held
// before, never a byte of the forgery.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>

namespace dael {

inline constexpr std::size_t kTagSize = 16;    // bytes of a whole tag
inline constexpr std::size_t kNonceSize = 12;  // bytes of the usual IV
// The most that one (key, IV) may encrypt, and the most AAD and IV: 2^39 - 256 bits, and 2^61 - 1
// bytes (SP 800-38D 5.2.1.1).
inline constexpr std::uint64_t kGcmMostData = (std::uint64_t{1} << 36) - 32;
inline constexpr std::uint64_t kGcmMostAad = (std::uint64_t{1} << 61) - 1;

// The same of counter mode without a tag, whose counter goes from 1 to 2^32 - 1.
inline constexpr std::uint64_t kGcmCtrMostData = (std::uint64_t{1} << 36) - 16;

constexpr bool valid_tag_size(std::size_t size) noexcept {  // SP 800-38D 5.2.1.2
    return size == 4 || size == 8 || (size >= 12 && size <= 16);
}

// One message of a batch. Plain data of one layout everywhere, so that lists of messages may also
// be made in device memory, by a kernel. `in`, `out`, `aad` and `tag` lie in the batch's memory
// space; `out` is `in` itself or does not overlap it. A message without data is GMAC.
struct GcmMessage {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::uint64_t size = 0;  // bytes
    const std::uint8_t* aad = nullptr;
    std::uint64_t aad_size = 0;                    // bytes
    std::uint8_t* tag = nullptr;                   // sealing writes it, opening reads it
    std::array<std::uint8_t, kNonceSize> nonce{};  // the 96-bit IV
    std::uint32_t key = 0;                         // index into the KeySet
};
static_assert(sizeof(GcmMessage) == 64);

// Keys made ready for GCM on an engine: expanded, with what GHASH needs of each. Made by
// Engine::prepare_keys; wiped when it goes, which must be before the engine and after the work.
// Any number of threads may use it at once.
class KeySet {
  public:
    KeySet(KeySet&&) noexcept;
    KeySet& operator=(KeySet&&) noexcept;
    ~KeySet();
    std::size_t size() const noexcept;  // keys

  private:
    friend class Engine;
    struct State;
    explicit KeySet(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

// A batch in device memory, made ready by Engine::prepare_gcm. Its keys and its engine must outlive
// it, and it the work that it was used for; one run at a time.
//
// The messages' pointers are to device memory. Their list lies on the host, and is checked and
// copied; or in device memory, where a kernel may make it, and is read and checked when the batch
// runs. A list from the host is sealed once only, since its nonces would repeat (Code::limit); one
// in device memory must be given new nonces by whoever seals it again. Opening verifies a message
// before it writes any of its plaintext.
//
// With a tag size of 0 there are neither tags nor AAD: counter mode with a 32-bit counter from 1,
// as Parquet's AES_GCM_CTR_V1 has it; sealing and opening are then the same.
class GcmBatch {
  public:
    GcmBatch(GcmBatch&&) noexcept;
    GcmBatch& operator=(GcmBatch&&) noexcept;
    ~GcmBatch();
    // Device memory: a Code for each message, as a 32-bit number, once a run has ended.
    const std::uint32_t* results() const noexcept;

  private:
    friend class Engine;
    struct State;
    explicit GcmBatch(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael
