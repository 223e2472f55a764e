// SPDX-License-Identifier: Apache-2.0
// What a kernel may still read or write is neither wiped nor given back. Where the wait for it
// failed, it is kept at its GPU and asked again whenever memory is allocated there, until it is
// over; a GPU that fails for good keeps it to the end of the process.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include <daelstrom/error.hpp>

namespace dael::cuda {

// Whoever settle() says ok of may be destroyed.
class Kept {
  public:
    virtual ~Kept() = default;
    // All work on it has ended. `waits`: it is waited for; else it is only asked whether it has,
    // and ok too says that it has. A failure says that nobody knows, or not yet; so does
    // std::bad_alloc, since the words of a failure take memory.
    virtual Result<> settle(bool waits) = 0;

    // Of the list of what is kept, which takes no memory.
    int kept_at = -1;
    Kept* next = nullptr;
};

// Waits for it and destroys it, or keeps it. Null does nothing.
void end_or_keep(int device, std::unique_ptr<Kept> what) noexcept;
// Asks again. How many are left.
std::size_t retry_kept(int device) noexcept;

// cudaFree() and cudaFreeHost(), which wait for all that the GPU has been given, a host function
// that waits for this very thread among it. A launch that asks a known answer first must not: what
// is given back while a thread asks goes along with what is given back later.
void give_back(int device, void* memory, bool pinned) noexcept;

// For tests: so many of the next waits fail, as they do after a kernel that faulted.
inline std::atomic<int> failing_waits{0};
bool wait_fails() noexcept;
// Waits, or fails at once as a test wants it.
template <class Wait>
cudaError_t after_wait(const Wait& wait) noexcept {
    return wait_fails() ? cudaErrorUnknown : wait();
}

}  // namespace dael::cuda
