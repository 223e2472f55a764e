// SPDX-License-Identifier: Apache-2.0
// What the host tells the kernel of a batch with a key for each message, outside GCM.
#pragma once

#include <daelstrom/keyed.hpp>

#include "backends/cuda/gcm_work.hpp"

namespace dael::cuda {

// All pointers are to device memory.
struct KeyedWork {
    const KeyedMessage* messages;
    const std::uint32_t* order;  // which message comes when; null: as they are listed
    const GcmKey* keys;
    std::uint32_t* results;  // a Code each
    std::uint32_t count;
    std::uint32_t key_count;
};

// Whether the message can be encrypted in CBC. Lists made by kernels have been checked by nobody.
DAEL_HD Code validity(const KeyedWork& work, const KeyedMessage& m) {
    if (m.key >= work.key_count) return Code::invalid_argument;
    if (m.size % 16 != 0) return Code::ragged_length;
    return can_lie_at(m.in, m.size) && can_lie_at(m.out, m.size) ? Code::ok
                                                                 : Code::invalid_argument;
}

// (KeyedWork): encrypts messages whose key has `rounds`, and writes their results and those of
// invalid ones. Any grid. keyed.cu
Kernel keyed_cbc_encrypt_kernel(int rounds, int tables);

}  // namespace dael::cuda
