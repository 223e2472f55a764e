// SPDX-License-Identifier: Apache-2.0
// A TUN interface: packets of layer 3, whole super-packets at once where the kernel can (see
// vnet.hpp). It goes, with its addresses and routes, when the last queue is closed: also when the
// process is killed.
//
// Threads: each queue by one thread that reads and one that writes. fork(): a child that keeps the
// descriptors keeps the interface; they close on exec().
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>

#include "vpn/path/vnet.hpp"

namespace dael::vpn::path {

struct TunOptions {
    std::string name = "dael%d";  // the kernel puts a number for %d
    unsigned queues = 1;
    // Each is left out where the kernel does not know it.
    bool vnet_header = true, tcp = true, tcp_ecn = true, udp = true;
};

class TunQueue {
  public:
    // Longest packet that read() can meet.
    static constexpr std::size_t kMostPacket = 65536 + 64;
    TunQueue(int fd, const Offloads& offloads) noexcept : fd_(fd), offloads_(offloads) {}
    TunQueue(TunQueue&& other) noexcept;
    TunQueue& operator=(TunQueue&&) = delete;
    ~TunQueue();

    struct Got {
        std::size_t size = 0;  // of the packet
        int error = 0;         // errno; EAGAIN: nothing there. EBADFD: the interface was deleted
    };
    // One packet. Never blocks.
    Got read(VnetHeader& header, std::span<std::uint8_t> packet) noexcept;
    // One packet, as Joiner::flush() gives it: a VnetHeader first, where offloads() has it.
    // 0, or errno (EIO: the interface is down; EINVAL: refused).
    int write(std::span<const iovec> parts) noexcept;
    // One packet without anything special.
    int write(std::span<const std::uint8_t> packet) noexcept;

    int fd() const noexcept { return fd_; }
    const Offloads& offloads() const noexcept { return offloads_; }

  private:
    friend class Tun;
    int fd_;
    Offloads offloads_;
};

class Tun {
  public:
    // Errors: io (no /dev/net/tun, no right, the name is taken), invalid_argument (the name).
    static Result<Tun> open(const TunOptions& options);

    const std::string& name() const noexcept { return name_; }
    unsigned index() const noexcept { return index_; }  // of the interface
    const Offloads& offloads() const noexcept { return offloads_; }
    // As many as were asked for, or 1 where the kernel has no IFF_MULTI_QUEUE.
    std::span<TunQueue> queues() noexcept { return queues_; }

  private:
    std::string name_;
    unsigned index_ = 0;
    Offloads offloads_;
    std::vector<TunQueue> queues_;
};

}  // namespace dael::vpn::path
