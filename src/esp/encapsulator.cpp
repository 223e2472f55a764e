// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <daelstrom/esp.hpp>

#include "core/guard.hpp"
#include "esp/format.hpp"
#include "esp/tally.hpp"

namespace dael::esp {

struct Encapsulator::State {
    SaTable& table;
    Options options;
    SaId sa;
    Tally tally;
    ~State() { (void)table.remove(sa); }
};

namespace {

// What C's {0} leaves there. Within ESP it is never right: those options stand before it (RFC 4303
// 3.1.1).
constexpr std::uint8_t kHopByHop = 0;

// The packets that are sealed together, and what the table sees of them.
struct Together {
    explicit Together(const Options& its_options) noexcept : options(its_options) {}

    const Options& options;
    std::size_t count = 0;
    std::array<Packet*, kTogether> packets;
    std::array<std::uint8_t*, kTogether> spi_at;
    std::array<SaPacket, kTogether> sealed;
    std::array<EsnAad, kTogether> aad;

    void add(Packet& p) noexcept {
        const std::size_t i = count++;
        std::uint8_t* const esp = wrap(p, options);
        std::uint8_t* const payload = p.buffer + p.offset;
        const std::size_t size = encrypted_size(p.size, p.pad_to);
        packets[i] = &p;
        spi_at[i] = esp;
        sealed[i] = {payload,
                     payload,
                     size,
                     options.esn ? aad[i].data() : esp,
                     options.esn ? kEsnAad : kPlainAad,
                     esp + kIvAt,
                     payload + size};
    }
    // Called back with the numbers, of the packets from `first` on.
    struct Numbers {
        Together& all;
        std::size_t first, count;
    };
    static void number(void* context, std::uint64_t number) {
        const auto& [all, first, count] = *static_cast<Numbers*>(context);
        for (std::size_t i = first; i < first + count; ++i, ++number) {
            all.packets[i]->sequence = number;
            put32(all.spi_at[i] + 4, static_cast<std::uint32_t>(number));
            put_esn_aad(all.aad[i], all.options.spi, number);
        }
    }
    Result<SaSealed> seal(SaTable& table, SaId sa, std::size_t first, std::size_t number_of) {
        Numbers numbers{*this, first, number_of};
        return table.seal(sa, std::span(sealed).subspan(first, number_of), {&number, &numbers});
    }
};

// Those that got through are ESP packets now.
void settle(Together& together, std::size_t first, std::size_t count, Verdict verdict) {
    for (std::size_t i = first; i < first + count; ++i) {
        Packet& p = *together.packets[i];
        p.verdict = verdict;
        if (verdict == Verdict::ok) p.spi = together.options.spi;
    }
}

// All of them; where that passes the limit, as many as it allows.
Result<> seal_all(Encapsulator::State& state, Together& together, bool& rekey_soon) {
    const auto one_by_one = [&]() -> Result<> {
        for (std::size_t i = 0; i < together.count; ++i) {
            const auto one = together.seal(state.table, state.sa, i, 1);
            if (!one) {
                const bool limit = one.code() == Code::limit;
                settle(together, i, together.count - i,
                       limit ? Verdict::exhausted : Verdict::fault);
                return limit ? Result<>{} : Result<>{one.error()};
            }
            rekey_soon |= one->rekey_soon;
            settle(together, i, 1, Verdict::ok);
        }
        return {};
    };
    if (together.count == 0) return {};
    const auto sealed = together.seal(state.table, state.sa, 0, together.count);
    if (sealed) {
        rekey_soon |= sealed->rekey_soon;
        settle(together, 0, together.count, Verdict::ok);
        return {};
    }
    if (sealed.code() == Code::limit) {
        rekey_soon = true;
        return one_by_one();
    }
    settle(together, 0, together.count, Verdict::fault);
    return sealed.error();
}

}  // namespace

Encapsulator::Encapsulator(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Encapsulator::Encapsulator(Encapsulator&&) noexcept = default;
Encapsulator& Encapsulator::operator=(Encapsulator&&) noexcept = default;
Encapsulator::~Encapsulator() = default;

namespace {

Result<SaOptions> sa_options(const Options& options) {
    DAEL_TRY(check(options, false));
    const std::uint64_t last = options.esn ? ~std::uint64_t{0} : 0xffffffff;
    return SaOptions{.direction = SaDirection::sending,
                     .ivs = options.ivs,
                     .tag_size = options.icv_size,
                     .salt = options.salt,
                     .fresh_key = options.fresh_key,
                     .limit = options.limit == 0 ? last : std::min(options.limit, last),
                     .soft_limit = options.soft_limit,
                     .quota = options.quota,
                     .limit_bytes = options.limit_bytes,
                     .soft_limit_bytes = options.soft_limit_bytes,
                     .lifetime = options.lifetime,
                     .soft_lifetime = options.soft_lifetime};
}

}  // namespace

Result<Encapsulator> Encapsulator::open(SaTable& table, const Key& key, const Options& options) {
    return core::guarded([&]() -> Result<Encapsulator> {
        DAEL_LET(sa_opts, sa_options(options));
        // Made before the SA is, which it then surely removes.
        auto state = std::unique_ptr<State>(new State{table, options, {}, {}});
        DAEL_LET(sa, table.add(key, sa_opts));
        state->sa = sa;
        return Encapsulator(std::move(state));
    });
}

Result<Encapsulator> Encapsulator::open(SaTable& table, const Key& key, const Options& options,
                                        const SaState& from) {
    return core::guarded([&]() -> Result<Encapsulator> {
        DAEL_LET(sa_opts, sa_options(options));
        auto state = std::unique_ptr<State>(new State{table, options, {}, {}});
        DAEL_LET(sa, table.add(key, sa_opts, from));
        state->sa = sa;
        return Encapsulator(std::move(state));
    });
}

Result<SaState> Encapsulator::export_state(std::uint64_t more) {
    return state_->table.export_state(state_->sa, more);
}

Result<Encapsulator::Sent> Encapsulator::encapsulate(std::span<Packet> packets) {
    State& state = *state_;
    Sent sent;
    Counters counters;
    Result<> fault;
    for (std::size_t at = 0; at < packets.size(); at += kTogether) {
        const auto part = packets.subspan(at, std::min(kTogether, packets.size() - at));
        Together together(state.options);
        for (Packet& p : part) {
            p.verdict = !fault                       ? Verdict::fault
                        : p.next_header == kHopByHop ? Verdict::malformed
                                                     : Verdict::no_room;
            if (p.verdict == Verdict::no_room && has_room(p, state.options)) together.add(p);
        }
        if (auto done = seal_all(state, together, sent.rekey_soon); !done) fault = std::move(done);
        for (Packet& p : part) {
            count(counters, p);
            if (p.verdict != Verdict::ok) continue;
            grow(p, state.options);
            ++sent.packets;
        }
    }
    state.tally.add(counters);
    if (!fault) return std::move(fault).error();
    return sent;
}

SaId Encapsulator::sa() const noexcept {
    return state_->sa;
}

Counters Encapsulator::counters() const {
    return state_->tally.read();
}

}  // namespace dael::esp
