// SPDX-License-Identifier: Apache-2.0
// What launches of GCM need of device memory where no batch was made ready for them: only where a
// message is long.
#pragma once

#include <array>
#include <memory>

#include "backends/cuda/batch.hpp"
#include "backends/cuda/gcm/launch_work.hpp"

namespace dael::cuda {

// Room for the list of one launch, its results and partial hashes. One launch at a time. The
// partial hashes stay until the next launch, which writes over them, or the end.
struct GcmRoom final : Kept {
    explicit GcmRoom(int device) : block(device), runs(device) {}
    Result<> settle(bool waits) override { return runs.settle(waits); }
    GcmPlace* place() const { return reinterpret_cast<GcmPlace*>(block.data()); }
    // For AAD and data, each `workers` + kMaxLaunched.
    Words4* partials() const { return reinterpret_cast<Words4*>(place() + 1); }

    DeviceBlock block;
    Runs runs;
};

// A few of them for each device: launches on one stream have the same, which they follow each other
// in anyhow, and those on different streams seldom wait for each other.
class GcmRooms {
  public:
    // Within a SetUp. `workers`: the most that hash.
    static Result<std::shared_ptr<GcmRooms>> make(int device, std::uint32_t workers);
    explicit GcmRooms(int device);
    ~GcmRooms();
    static std::uint32_t of(Stream stream);
    GcmRoom& operator[](std::uint32_t room) const { return *rooms_[room]; }
    static constexpr std::uint32_t kRooms = 8;

  private:
    const int device_;
    std::array<std::unique_ptr<GcmRoom>, kRooms> rooms_;
};

}  // namespace dael::cuda
