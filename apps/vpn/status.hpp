// SPDX-License-Identifier: Apache-2.0
// What a tunnel says of itself: for people, as JSON, and for Prometheus.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vpn/aside.hpp"
#include "vpn/config.hpp"
#include "vpn/loop.hpp"
#include "vpn/path/tun.hpp"
#include "vpn/sessions.hpp"

namespace dael::vpn {

struct Tunnel {
    const Config& config;
    PublicKey own_key{};
    Sessions& sessions;
    const path::Tun& tun;
    std::span<const std::unique_ptr<Loop>> loops;
    const Aside& aside;
    std::vector<std::string> fallbacks;  // what this kernel, machine or build lacks
    Time since{0};
};

std::string status_text(Tunnel& tunnel);
std::string status_json(Tunnel& tunnel);
std::string status_metrics(Tunnel& tunnel);

}  // namespace dael::vpn
