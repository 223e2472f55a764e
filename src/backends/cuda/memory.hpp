// SPDX-License-Identifier: Apache-2.0
// A CUDA device's memory, streams, events and copies.
#pragma once

#include <daelstrom/device.hpp>

namespace dael::cuda {

class CudaMemory final : public Memory {
  public:
    explicit CudaMemory(int index);
    Result<void*> allocate(std::size_t size) override;
    void release(void* memory) noexcept override;
    Result<void*> allocate_pinned(std::size_t size) override;
    void release_pinned(void* memory) noexcept override;
    Result<std::uint64_t> free_memory() override;
    bool is_pinned(const void* host_memory, std::size_t size) override;
    bool is_one_pinned(const void* host_memory, std::size_t size);  // by one call
    bool owns(const void* device_memory) override;
    Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                     Stream stream) override;
    Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                      Stream stream) override;
    Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) override;
    Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                  Stream stream) override;

  private:
    const int index_;
    const int node_;  // that its bus is on, of a NUMA machine; -1: nobody knows
};

class CudaOrder final : public Order {
  public:
    explicit CudaOrder(int index) : index_(index) {}
    Result<Stream> create_stream() override;
    void destroy_stream(Stream stream) noexcept override;
    Result<Event> create_event() override;
    void destroy_event(Event event) noexcept override;
    Result<> record(Event event, Stream stream) override;
    Result<> wait(Stream stream, Event event) override;
    Result<> wait(Event event) override;
    Result<bool> is_done(Event event) override;
    Result<> wait(Stream stream) override;
    Result<float> elapsed_ms(Event from, Event to) override;
    bool is_capturing(Stream stream) override;

  private:
    const int index_;
};

}  // namespace dael::cuda
