// SPDX-License-Identifier: Apache-2.0
// What a Udp is made of.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "vpn/path/udp.hpp"

namespace dael::vpn::path {

// A number that one thread counts up and any may read.
class Count {
  public:
    void add(std::uint64_t more) noexcept { value_.store(get() + more, std::memory_order_relaxed); }
    std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

struct Udp::State {
    ~State();

    int fd = -1;
    bool six = false, many = true, gro = false;
    std::uint16_t port = 0;
    std::atomic<bool> gso{false};

    // Receiving.
    struct Control {
        alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(in6_pktinfo)) +
                                    CMSG_SPACE(sizeof(in_pktinfo)) + 3 * CMSG_SPACE(sizeof(int))];
    };
    std::size_t room = 0;  // of each message
    std::unique_ptr<std::uint8_t[]> buffer;
    std::vector<std::size_t> touched;  // of each room: the bytes that held something
    std::vector<mmsghdr> messages;
    std::vector<iovec> parts;
    std::vector<sockaddr_in6> names;
    std::vector<Control> controls;
    std::vector<Datagrams> datagrams;
    Count received, receive_calls, receive_bytes, cut_short;

    // Sending.
    Count sent, send_calls, send_bytes, lost, too_big, full, gso_refused, source_gone;
    std::atomic<int> last_error{0};
};

}  // namespace dael::vpn::path
