// SPDX-License-Identifier: Apache-2.0
// Memory for one call, not cleared first; what holds plaintext is wiped at the end.
#pragma once

#include <daelstrom/daelstrom.h>

#include <memory>

namespace daelpy {

class Scratch {
  public:
    enum Kind { open, secret };
    Scratch(std::uint64_t size, Kind kind)
        : memory_(new std::uint8_t[size]), wiped_(kind == secret ? size : 0) {}
    ~Scratch() { dael_wipe(memory_.get(), wiped_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::uint8_t* get() const { return memory_.get(); }

  private:
    std::unique_ptr<std::uint8_t[]> memory_;
    std::size_t wiped_;
};

}  // namespace daelpy
