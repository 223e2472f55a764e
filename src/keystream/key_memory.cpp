// SPDX-License-Identifier: Apache-2.0
#include "keystream/key_memory.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/key_schedule.hpp"
#include "core/libcrypto.hpp"
#include "core/libcrypto_notes.hpp"
#include "core/over_fork.hpp"
#include "core/random.hpp"

namespace dael::keystream {
namespace {

// A set of numbers that are evenly spread and not 0: open addressing, in parts, so that none takes
// long to grow. 9 to 19 bytes for each.
class Prints {
  public:
    bool contains(std::uint64_t print) const noexcept {
        const Part& part = part_of(print);
        return !part.places.empty() && part.places[find(part, print)] == print;
    }
    // Before the next insert() of it: what can fail of that.
    void reserve(std::uint64_t print) {
        Part& part = part_of(print);
        if (8 * (part.size + 1) <= 7 * part.places.size()) return;
        Part grown;
        grown.places.resize(std::max<std::size_t>(16, 2 * part.places.size()));
        for (const std::uint64_t one : part.places)
            if (one != 0) put(grown, one);
        std::swap(part, grown);
    }
    void insert(std::uint64_t print) noexcept { put(part_of(print), print); }
    void erase(std::uint64_t print) noexcept {
        Part& part = part_of(print);
        if (part.places.empty()) return;
        std::size_t at = find(part, print);
        if (part.places[at] == 0) return;
        --part.size;
        // Who comes after it, up to the next empty place, may have been looked for past here.
        for (std::size_t next = after(part, at); part.places[next] != 0; next = after(part, next)) {
            const std::size_t home = home_of(part, part.places[next]);
            if (((next - home) & mask(part)) < ((next - at) & mask(part))) continue;
            part.places[at] = part.places[next];
            at = next;
        }
        part.places[at] = 0;
    }

  private:
    struct Part {
        std::vector<std::uint64_t> places;  // a power of two of them
        std::size_t size = 0;
    };
    static constexpr int kParts = 6;  // bits
    static std::size_t mask(const Part& part) noexcept { return part.places.size() - 1; }
    static std::size_t home_of(const Part& part, std::uint64_t print) noexcept {
        return static_cast<std::size_t>(print) & mask(part);
    }
    static std::size_t after(const Part& part, std::size_t at) noexcept {
        return (at + 1) & mask(part);
    }
    static std::size_t find(const Part& part, std::uint64_t print) noexcept {
        std::size_t at = home_of(part, print);
        while (part.places[at] != 0 && part.places[at] != print) at = after(part, at);
        return at;
    }
    static void put(Part& part, std::uint64_t print) noexcept {
        part.places[find(part, print)] = print;
        ++part.size;
    }
    Part& part_of(std::uint64_t print) noexcept { return parts_[print >> (64 - kParts)]; }
    const Part& part_of(std::uint64_t print) const noexcept {
        return parts_[print >> (64 - kParts)];
    }
    std::array<Part, 1 << kParts> parts_;
};

struct Exported {
    SaState state;
    std::uint64_t owner = 0;
    Uint128 base = 0;
};
struct Receiving {
    Received received;
    std::uint32_t live = 0;  // SAs
};
using Receivings = std::unordered_map<std::uint64_t, Receiving>;

struct Memory {
    std::array<std::uint8_t, 32> secret{};
    bool has_secret = false;
    Prints sending;
    std::unordered_map<std::uint64_t, Exported> exported;
    Receivings young, old;  // when there are many young ones they become the old ones
};

// Never destroyed, since tables may outlive all that is.
constinit std::mutex mutex;
Memory& memory() {
    static Memory* const all = new Memory;
    return *all;
}

[[gnu::constructor(101)]] void hold_key_memory_over_fork() {
    core::hold_over_fork<mutex>();
}

Result<std::array<std::uint8_t, 32>> secret() {
    const std::lock_guard lock(mutex);
    Memory& all = memory();
    if (!all.has_secret) DAEL_TRY(core::fill_random(all.secret));
    all.has_secret = true;
    return all.secret;
}

// Fetched at the first key, and once: to fetch takes libcrypto longer than to hash. Never freed, as
// the memory is not. Null: libcrypto refused, and is asked again.
const EVP_MD* sha256() noexcept {
    static constinit std::atomic<EVP_MD*> kept{nullptr};
    if (EVP_MD* const known = kept.load(std::memory_order_acquire)) return known;
    EVP_MD* const fetched = EVP_MD_fetch(core::libcrypto(), "SHA256", nullptr);
    EVP_MD* other = nullptr;
    if (!fetched || kept.compare_exchange_strong(other, fetched, std::memory_order_acq_rel))
        return fetched;
    EVP_MD_free(fetched);
    return other;
}

Receiving* find_receiving(Memory& all, std::uint64_t print) noexcept {
    for (Receivings* some : {&all.young, &all.old})
        if (const auto found = some->find(print); found != some->end()) return &found->second;
    return nullptr;
}

}  // namespace

Result<std::uint64_t> print_of(const Key& key, const std::array<std::uint8_t, 4>& salt,
                               std::uint32_t spi) {
    struct Free {
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    DAEL_LET(own, secret());
    const core::LibcryptoNotes notes;
    const EVP_MD* const md = sha256();
    const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
    std::array<std::uint8_t, 32> digest;
    const auto bytes = key.schedule().key();
    if (!md || !context || EVP_DigestInit_ex2(context.get(), md, nullptr) != 1 ||
        EVP_DigestUpdate(context.get(), own.data(), own.size()) != 1 ||
        EVP_DigestUpdate(context.get(), &spi, sizeof spi) != 1 ||
        EVP_DigestUpdate(context.get(), salt.data(), salt.size()) != 1 ||
        EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
        EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1)
        return notes.failure("SHA-256");
    std::uint64_t print = 0;
    for (std::size_t i = 0; i < 8; ++i) print = print << 8 | digest[i];
    return print == 0 ? 1 : print;
}

Result<> claim_sending(std::uint64_t print, const SaState* from, Uint128 base) {
    const std::lock_guard lock(mutex);
    Memory& all = memory();
    if (!all.sending.contains(print)) {
        all.sending.reserve(print);
        all.sending.insert(print);
        return {};
    }
    const auto exported = all.exported.find(print);
    if (from && exported != all.exported.end() && exported->second.state == *from) {
        if (exported->second.base != base)
            return Error{Code::invalid_argument,
                         "the state was exported under another layout or first_iv, and counters "
                         "would repeat; give the options that it was exported with"};
        all.exported.erase(exported);
        return {};
    }
    if (from)
        return Error{Code::invalid_argument,
                     "this key and salt have sent in this process, and the state is not the last "
                     "that was exported of them, or was taken over before; export it again, or "
                     "agree on a new key"};
    return Error{Code::invalid_argument,
                 "this key and salt are another SA's in this process, or have sent in it, in this "
                 "table or another, and their counters would repeat; agree on a new key"};
}

void release_sending(std::uint64_t print, bool sent) noexcept {
    if (sent) return;
    const std::lock_guard lock(mutex);
    memory().sending.erase(print);
}

Result<> export_sending(std::uint64_t print, const SaState& state, std::uint64_t owner, bool again,
                        Uint128 base) {
    const std::lock_guard lock(mutex);
    auto& exported = memory().exported;
    if (again) {
        const auto found = exported.find(print);
        if (found == exported.end() || found->second.owner != owner)
            return Error{Code::invalid_argument,
                         "the SA's state was taken over by another SA, whose numbers are the ones "
                         "after it"};
    }
    exported.insert_or_assign(print, Exported{state, owner, base});
    return {};
}

Result<Received> claim_receiving(std::uint64_t print, bool beside) {
    const std::lock_guard lock(mutex);
    Memory& all = memory();
    if (Receiving* const known = find_receiving(all, print)) {
        if (known->live != 0 && !beside)
            return Error{Code::invalid_argument,
                         "another SA of this process receives under this key and SPI, and what "
                         "both accept would be accepted twice; remove it first, or say "
                         "accept_again"};
        ++known->live;
        return known->received;
    }
    if (all.young.size() >= kReceived) {
        // Those whose SA is there stay.
        for (auto at = all.old.begin(); at != all.old.end();) {
            const auto next = std::next(at);
            if (at->second.live != 0) all.young.insert(all.old.extract(at));
            at = next;
        }
        all.old = std::move(all.young);
        all.young = {};
    }
    all.young.emplace(print, Receiving{{}, 1});
    return Received{};
}

void release_receiving(std::uint64_t print, const Received& received) noexcept {
    const std::lock_guard lock(mutex);
    Receiving* const known = find_receiving(memory(), print);
    if (!known) return;
    if (known->live != 0) --known->live;
    if (received.top < known->received.top) return;
    // Of two at once nobody knows what the other accepted below its highest.
    const bool same = received.top == known->received.top;
    known->received.top = received.top;
    known->received.accepted =
        same ? std::max(known->received.accepted, received.accepted) : received.accepted;
}

}  // namespace dael::keystream
