// SPDX-License-Identifier: Apache-2.0
// What all batches have in common.
#pragma once

#include <mutex>

#include "backends/opencl/ends.hpp"
#include "backends/opencl/keys.hpp"
#include "backends/opencl/tuning.hpp"
#include "core/device.hpp"

namespace dael::opencl {

class OpenClDevice;

class PreparedBatch : public core::Prepared {
  public:
    PreparedBatch(OpenClDevice& its_device, const OpenClKeys& its_keys, const Cipher& its_cipher,
                  const Tuning& its_tuning)
        : device(its_device), keys(its_keys), cipher(its_cipher), tuning(its_tuning) {}
    // Nothing that a run uses, and keys least of all, is wiped under its kernels.
    ~PreparedBatch() override {
        if (!ends.wait()) keys.outlive(std::move(ends));
    }

    const std::uint32_t* results() const override { return nullptr; }
    Result<> outcome() const override {
        if (after_fork()) return fork_failure();
        const std::lock_guard lock(mutex);
        return ends.outcome();
    }
    // All of its kernels, into the queue. Called with the mutex held, between ends.begin() and the
    // next run's.
    virtual Result<> launch(const cl::CommandQueue& queue) = 0;

    OpenClDevice& device;
    const OpenClKeys& keys;
    const Cipher cipher;
    const Tuning tuning;
    mutable std::mutex mutex;  // guards what follows
    Ends ends;
};

}  // namespace dael::opencl
