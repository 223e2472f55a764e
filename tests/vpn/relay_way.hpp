// SPDX-License-Identifier: Apache-2.0
// What a bad network does to the datagrams of one direction, as rates and a seed say: the same for
// the same datagrams in the same order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "support/bytes.hpp"

namespace dael::test {

struct RelayRates {
    double loss = 0, order = 0, duplicate = 0, replay = 0, corrupt = 0, truncate = 0, ce = 0;
    double delay = 0, jitter = 0;  // milliseconds
    double down = 0;               // not 0: nothing passes

    double* of(const std::string& name) {
        if (name == "loss") return &loss;
        if (name == "order") return &order;
        if (name == "duplicate") return &duplicate;
        if (name == "replay") return &replay;
        if (name == "corrupt") return &corrupt;
        if (name == "truncate") return &truncate;
        if (name == "ce") return &ce;
        if (name == "delay") return &delay;
        if (name == "jitter") return &jitter;
        if (name == "down") return &down;
        return nullptr;
    }
};

struct RelayCounts {
    std::uint64_t seen = 0, passed = 0, lost = 0, late = 0, twice = 0, again = 0, altered = 0;
};

// A datagram on its way; `client` says whose it is.
struct RelayItem {
    Bytes bytes;
    std::uint8_t tos = 0;
    std::uint64_t client = 0;
};

class RelayWay {
  public:
    using Pass = std::function<void(std::span<const std::uint8_t>, std::uint8_t, std::uint64_t)>;
    RelayWay(std::uint64_t seed, Pass pass) : random_(seed), pass_(std::move(pass)) {}

    RelayRates rates;
    RelayCounts counts;

    void seed(std::uint64_t seed) { random_ = Random(seed); }

    // A datagram came, at this time (microseconds).
    void take(std::span<const std::uint8_t> bytes, std::uint8_t tos, std::uint64_t client,
              std::uint64_t now) {
        ++counts.seen;
        came_ = now;
        // What was kept back waits for so many that come after it.
        for (Held& held : held_) --held.wait;
        if (rates.down != 0 || chance(rates.loss)) {
            ++counts.lost;
            return release(false);
        }
        const bool corrupts = chance(rates.corrupt) && !bytes.empty();
        const bool cuts = chance(rates.truncate) && !bytes.empty();
        if (corrupts || cuts) {
            ++counts.altered;
            scratch_.assign(bytes.begin(), bytes.end());
            if (corrupts)
                scratch_[random_.below(scratch_.size())] ^=
                    static_cast<std::uint8_t>(1 << random_.below(8));
            if (cuts) scratch_.resize(random_.below(scratch_.size()));
            bytes = scratch_;
        }
        if ((tos & 3) != 0 && chance(rates.ce)) tos |= 3;
        if (rates.replay > 0) remember(bytes, tos, client);
        const bool twice = chance(rates.duplicate);
        counts.twice += twice;
        for (int i = 0; i <= twice; ++i) {
            if (rates.delay + rates.jitter > 0) {
                const double part = static_cast<double>(random_.below(1000)) / 1000;
                const double by = rates.delay + rates.jitter * part;
                late_.push({now + static_cast<std::uint64_t>(by * 1000),
                            ++number_,
                            {Bytes(bytes.begin(), bytes.end()), tos, client}});
            } else if (chance(rates.order)) {
                ++counts.late;
                held_.push_back({static_cast<int>(1 + random_.below(kMostWait)),
                                 {Bytes(bytes.begin(), bytes.end()), tos, client}});
            } else {
                pass(bytes, tos, client);
            }
        }
        if (!memory_.empty() && chance(rates.replay)) {
            const RelayItem& old = memory_[random_.below(memory_.size())];
            ++counts.again;
            pass(old.bytes, old.tos, old.client);
        }
        release(false);
    }

    // What is due by now. Where nothing came for a while nobody is waited for.
    void tick(std::uint64_t now) {
        while (!late_.empty() && late_.top().due <= now) {
            const RelayItem& item = late_.top().item;
            pass(item.bytes, item.tos, item.client);
            late_.pop();
        }
        if (now >= came_ + kIdle) release(true);
    }
    // Microseconds until there is something to do; negative: nothing.
    std::int64_t next(std::uint64_t now) const {
        if (late_.empty() && held_.empty()) return -1;
        std::uint64_t due = held_.empty() ? late_.top().due : came_ + kIdle;
        if (!late_.empty()) due = std::min(due, late_.top().due);
        return due <= now ? 0 : std::int64_t(due - now);
    }

  private:
    static constexpr std::uint64_t kIdle = 5000;
    static constexpr std::size_t kMostWait = 16, kMemory = 256;
    struct Held {
        int wait;
        RelayItem item;
    };
    struct Late {
        std::uint64_t due, number;
        RelayItem item;
        bool operator<(const Late& other) const {  // the first on top
            return due != other.due ? due > other.due : number > other.number;
        }
    };

    bool chance(double rate) {
        if (rate <= 0) return false;
        constexpr std::size_t kSteps = 1 << 24;
        return static_cast<double>(random_.below(kSteps)) < rate * kSteps;
    }
    void pass(std::span<const std::uint8_t> bytes, std::uint8_t tos, std::uint64_t client) {
        ++counts.passed;
        pass_(bytes, tos, client);
    }
    void remember(std::span<const std::uint8_t> bytes, std::uint8_t tos, std::uint64_t client) {
        if (memory_.size() < kMemory) memory_.emplace_back();
        RelayItem& place = memory_[remembered_++ % kMemory];
        place = {Bytes(bytes.begin(), bytes.end()), tos, client};
    }
    void release(bool all) {
        if (held_.empty()) return;
        std::vector<Held> stay;
        for (Held& held : held_) {
            if (all || held.wait <= 0)
                pass(held.item.bytes, held.item.tos, held.item.client);
            else
                stay.push_back(std::move(held));
        }
        held_.swap(stay);
    }

    Random random_;
    Pass pass_;
    Bytes scratch_;
    std::vector<Held> held_;
    std::priority_queue<Late> late_;
    std::vector<RelayItem> memory_;
    std::size_t remembered_ = 0;
    std::uint64_t number_ = 0, came_ = 0;
};

}  // namespace dael::test
