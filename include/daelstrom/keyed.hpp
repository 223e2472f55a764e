// SPDX-License-Identifier: Apache-2.0
// Batches in which each message has a key of its own, without authentication: CBC encryption, and
// counter mode as Parquet's AES_GCM_CTR_V1 has it (Engine::ctr_batch, which takes GcmMessages).
//
// Safety: nothing here tells altered data from the original; where there is a choice, seal with GCM
// (gcm.hpp). A nonce must never repeat under one key, and a CBC IV must be unpredictable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <daelstrom/gcm.hpp>
#include <daelstrom/modes.hpp>

namespace dael {

// One message of a batch. Plain data of one layout everywhere, so that lists of messages may also
// be made in device memory, by a kernel. `in` and `out` lie in the batch's memory space; `out` is
// `in` itself or does not overlap it.
struct KeyedMessage {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::uint64_t size = 0;  // bytes; a multiple of 16
    Block iv{};
    std::uint32_t key = 0;  // index into the KeySet
    std::uint32_t unused = 0;
};
static_assert(sizeof(KeyedMessage) == 48);

// A batch in device memory, made ready by Engine::prepare_cbc_encrypt. Its keys and its engine must
// outlive it, and it the work that it was used for; one run at a time.
//
// The messages' pointers are to device memory. Their list lies on the host, and is checked and
// copied; or in device memory, where a kernel may make it, and is read and checked when the batch
// runs: a message that makes no sense has a result that says so (invalid_argument, ragged_length)
// and is not touched. That its memory is what it says, and that its output does not overlap others,
// is for whoever makes the list. Run it again only on other data, and then with other IVs.
class KeyedBatch {
  public:
    KeyedBatch(KeyedBatch&&) noexcept;
    KeyedBatch& operator=(KeyedBatch&&) noexcept;
    ~KeyedBatch();
    // Device memory: a Code for each message, as a 32-bit number, once a run has ended.
    const std::uint32_t* results() const noexcept;

  private:
    friend class Engine;
    struct State;
    explicit KeyedBatch(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael
