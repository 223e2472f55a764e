// SPDX-License-Identifier: Apache-2.0
#include "pipeline/survey.hpp"

#include <atomic>
#include <new>

#include "modes/starts.hpp"
#include "pipeline/thread_pool.hpp"

namespace dael::pipeline {
namespace {

// What one thread looks at, at a time: some microseconds' worth. Threads that come late, since each
// is woken by another, then find less to do. Fewer messages than kFew are not worth waking them.
constexpr std::size_t kPart = 16 * kGroup, kFew = 8192;

// The look at one part of the list. Sums wrap nowhere: sizes are bounded.
class Look {
  public:
    explicit Look(std::uint32_t first_key) : first_key_(first_key) {}

    void add(const Message& message) noexcept {
        bytes_ += bounded(message.size);
        aad_ += bounded(message.aad_size);
        other_keys_ |= message.key ^ first_key_;
        shrinking_ &= message.size <= last_size_;
        last_size_ = message.size;
        starts_.add(message);
    }
    // The part that follows.
    void join(const Look& next, std::span<const Message> its) noexcept {
        shrinking_ &= next.shrinking_ && its.front().size <= last_size_;
        bytes_ += next.bytes_;
        aad_ += next.aad_;
        other_keys_ |= next.other_keys_;
        last_size_ = next.last_size_;
        starts_.join(its.front(), next.starts_);
    }
    Survey tell(const Cipher& cipher, std::size_t messages) const noexcept {
        return {.bytes = bytes_,
                .weight = bytes_ + (authenticates(cipher.mode) ? kSteps * messages + aad_ : 0),
                .one_key = other_keys_ == 0,
                .starts_distinct = starts_.distinct(),
                .shrinking = shrinking_};
    }

  private:
    std::uint32_t first_key_, other_keys_ = 0;
    std::uint64_t bytes_ = 0, aad_ = 0, last_size_ = ~std::uint64_t{0};
    bool shrinking_ = true;
    modes::StartsInOrder starts_;
};

Survey by_all(const Cipher& cipher, std::span<const Message> messages, ThreadPool& pool) {
    const std::size_t parts = (messages.size() + kPart - 1) / kPart;
    std::vector<Group> groups((messages.size() + kGroup - 1) / kGroup);
    std::vector<Look> looks(parts, Look(messages[0].key));
    const auto part = [&](std::size_t index) {
        return messages.subspan(index * kPart, std::min(kPart, messages.size() - index * kPart));
    };
    const auto ran = pool.run(parts, pool.threads(), [&](std::size_t index) -> Result<> {
        const auto its = part(index);
        Look look = looks[index];  // not beside what other threads write
        for (std::size_t at = 0; at < its.size(); at += kGroup) {
            const auto few = its.subspan(at, std::min(kGroup, its.size() - at));
            for (const Message& message : few) look.add(message);
            groups[(index * kPart + at) / kGroup] = look_at(cipher, few);
        }
        looks[index] = look;
        return {};
    });
    if (!ran) return survey(cipher, messages);
    for (std::size_t i = 1; i < parts; ++i) looks[0].join(looks[i], part(i));
    Survey all = looks[0].tell(cipher, messages.size());
    all.groups = std::move(groups);
    return all;
}

}  // namespace

Group look_at(const Cipher& cipher, std::span<const Message> messages) noexcept {
    Group all;
    for (const Message& message : messages) {
        const std::uint64_t its = weight(cipher, message);
        all.weight += its;
        all.largest = std::max(all.largest, its);
    }
    return all;
}

Survey survey(const Cipher& cipher, std::span<const Message> messages) noexcept {
    Look look(messages.empty() ? 0 : messages[0].key);
    for (const Message& message : messages) look.add(message);
    return look.tell(cipher, messages.size());
}

Survey survey(const Cipher& cipher, std::span<const Message> messages, ThreadPool& pool) {
    if (messages.size() < kFew || pool.threads() == 1) return survey(cipher, messages);
    try {
        return by_all(cipher, messages, pool);
    } catch (const std::bad_alloc&) {
        return survey(cipher, messages);
    }
}

bool starts_repeat(std::span<const Message> messages, ThreadPool& pool, bool with_rest) {
    modes::SeenStarts seen(messages, with_rest);
    std::atomic<bool> twice = false;
    const std::size_t parts = (messages.size() + kPart - 1) / kPart;
    const auto ran = pool.run(parts, pool.threads(), [&](std::size_t index) -> Result<> {
        const std::size_t begin = index * kPart;
        if (seen.add(begin, std::min(begin + kPart, messages.size())))
            twice.store(true, std::memory_order_relaxed);
        return {};
    });
    return !ran || twice.load(std::memory_order_relaxed);
}

}  // namespace dael::pipeline
