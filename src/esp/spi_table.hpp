// SPDX-License-Identifier: Apache-2.0
// Finds the SA of an SPI: an open table, half empty, so that a look-up touches one cache line as a
// rule. SPIs are the receiver's own choice, so nobody else can make them collide.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace dael::esp {

template <class Sa>
class SpiTable {
  public:
    Sa* find(std::uint32_t spi) const noexcept {
        if (places_.empty()) return nullptr;
        for (std::size_t i = home(spi);; i = next(i)) {
            if (places_[i].spi == spi) return places_[i].sa.get();
            if (places_[i].spi == 0) return nullptr;
        }
    }
    // Before insert(): what can fail of it.
    void reserve() {
        if (2 * (size_ + 1) > places_.size()) grow();
    }
    // An SPI that is not 0 and not there.
    Sa* insert(std::uint32_t spi, std::unique_ptr<Sa> sa) {
        reserve();
        ++size_;
        return put(spi, std::move(sa));
    }
    // Null: it was not there.
    std::unique_ptr<Sa> remove(std::uint32_t spi) noexcept {
        if (!find(spi)) return nullptr;
        std::size_t i = home(spi);
        while (places_[i].spi != spi) i = next(i);
        auto removed = std::move(places_[i].sa);
        places_[i].spi = 0;
        --size_;
        // What comes after it, up to the next empty place, may have been looked for past here.
        for (i = next(i); places_[i].spi != 0; i = next(i)) {
            Place moved = std::move(places_[i]);
            places_[i].spi = 0;
            put(moved.spi, std::move(moved.sa));
        }
        return removed;
    }
    template <class Function>
    void for_each(Function function) const {
        for (const Place& place : places_)
            if (place.spi != 0) function(*place.sa);
    }
    std::size_t size() const noexcept { return size_; }

  private:
    struct Place {
        std::uint32_t spi = 0;  // 0: empty
        std::unique_ptr<Sa> sa;
    };
    std::size_t home(std::uint32_t spi) const noexcept {
        constexpr std::uint32_t kGolden = 0x9e3779b1;  // 2^32 over the golden ratio, odd
        return spi * kGolden >> shift_;
    }
    std::size_t next(std::size_t i) const noexcept { return (i + 1) & (places_.size() - 1); }
    Sa* put(std::uint32_t spi, std::unique_ptr<Sa> sa) noexcept {
        std::size_t i = home(spi);
        while (places_[i].spi != 0) i = next(i);
        places_[i] = {spi, std::move(sa)};
        return places_[i].sa.get();
    }
    void grow() {
        std::vector<Place> old(places_.empty() ? 16 : 2 * places_.size());
        old.swap(places_);
        shift_ = 32 - std::countr_zero(places_.size());
        for (Place& place : old)
            if (place.spi != 0) put(place.spi, std::move(place.sa));
    }

    std::vector<Place> places_;  // a power of two of them
    std::size_t size_ = 0;
    int shift_ = 0;
};

}  // namespace dael::esp
