// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>

#include <daelstrom/esp.hpp>

#include "core/guard.hpp"
#include "core/process.hpp"
#include "esp/format.hpp"
#include "esp/replay_window.hpp"
#include "esp/spi_table.hpp"
#include "esp/tally.hpp"
#include "keystream/key_memory.hpp"

namespace dael::esp {
namespace {

struct Receiving {
    Receiving(SaTable& its_table, const Options& its_options)
        : table(its_table), options(its_options), window(its_options.window) {}
    ~Receiving() {
        (void)table.remove(sa);
        retire();
    }
    // What it has accepted is known to whoever has its key next. Nothing comes through it any more.
    void retire() noexcept {
        if (const std::uint64_t mine = std::exchange(print, 0))
            keystream::release_receiving(mine, {window.top(), accepted});
    }
    WindowState state() const { return {window.top(), accepted, window.seen()}; }

    SaTable& table;
    const Options options;
    SaId sa;
    std::uint64_t print = 0;  // of its key, where a window remembers
    std::mutex mutex;         // of what follows; from the look at the window until it has moved
    ReplayWindow window;
    std::uint64_t accepted = 0;
    Counters counters;
};

// What the window is to begin with: the given state, if no more has been accepted in this process;
// or all that has counts as seen.
Result<> begin_window(Receiving& sa, const Key& key, const WindowState* from) {
    const Options& options = sa.options;
    if (from && !options.esn && from->top > 0xffffffff)
        return Error{Code::invalid_argument,
                     "ESP: the window's top is beyond the SA's numbers of 32 bits"};
    if (from) {
        sa.window.restore(from->top, from->seen);
        sa.accepted = from->accepted;
    }
    if (options.window == 0) return {};
    DAEL_LET(print, keystream::print_of(key, options.salt, options.spi));
    DAEL_LET(before, keystream::claim_receiving(print, options.accept_again));
    sa.print = print;
    if (options.accept_again || before.top == 0) return {};
    const bool same = from && from->top == before.top && from->accepted == before.accepted;
    if (same || (from && from->top > before.top)) return {};
    sa.window.restore(before.top, {});
    sa.accepted = before.accepted;
    return {};
}

// Packets of one SA that are opened together. Their numbers rise, so that none of them is the
// replay of another, and what was found of one before all are opened still holds after.
class Run {
  public:
    explicit Run(Receiving& sa) noexcept : sa_(sa) {}

    void add(Packet& p, const Outside& outside) noexcept {
        if (!fits(p, outside)) return;
        if (count_ != 0 && p.sequence <= packets_[count_ - 1]->sequence) {
            open();
            if (!is_new(p)) return;
        }
        const std::size_t i = count_++;
        packets_[i] = &p;
        std::uint8_t* const data = outside.at + kHeader;
        const std::size_t size = outside.size - kHeader - sa_.options.icv_size;
        if (sa_.options.esn) put_esn_aad(aad_[i], sa_.options.spi, p.sequence);
        sealed_[i] = {data,
                      data,
                      size,
                      sa_.options.esn ? aad_[i].data() : outside.at,
                      sa_.options.esn ? kEsnAad : kPlainAad,
                      outside.at + kIvAt,
                      data + size};
    }

    void open() noexcept {
        const std::size_t count = std::exchange(count_, 0);
        if (count == 0) return;
        std::array<Code, kTogether> codes;
        const auto opened =
            sa_.table.open(sa_.sa, std::span(sealed_).first(count), std::span(codes).first(count));
        for (std::size_t i = 0; i < count; ++i) {
            Packet& p = *packets_[i];
            const Code code = opened ? codes[i] : opened.code();
            if (code == Code::ok)
                accept(p, sealed_[i]);
            else
                p.verdict = code == Code::authentication ? Verdict::bad_icv
                            : code == Code::limit        ? Verdict::exhausted
                                                         : Verdict::fault;
        }
    }

  private:
    // What can be told before anything is computed.
    bool fits(Packet& p, const Outside& outside) const noexcept {
        const std::size_t icv = sa_.options.icv_size;
        p.verdict = Verdict::truncated;
        if (outside.size < kHeader + 4 + icv) return false;
        p.verdict = Verdict::malformed;
        if ((outside.size - kHeader - icv) % 4 != 0) return false;
        const auto number = sa_.window.whole(get32(outside.at + 4), sa_.options.esn);
        if (number && *number == 0) return false;
        p.sequence = number.value_or(0);
        p.verdict = Verdict::too_old;
        return number && is_new(p);
    }
    bool is_new(Packet& p) const noexcept {
        p.verdict = sa_.window.check(p.sequence);
        return p.verdict == Verdict::ok;
    }
    // Only what is authentic moves the window (RFC 4303 3.4.3).
    void accept(Packet& p, const SaPacket& opened) noexcept {
        sa_.window.mark(p.sequence);
        ++sa_.accepted;
        const Inside inside = look_inside(opened.out, opened.size);
        p.verdict = inside.verdict;
        if (inside.verdict != Verdict::ok) return wipe(opened.out, opened.size);
        p.offset = static_cast<std::uint32_t>(opened.out - p.buffer);
        p.size = static_cast<std::uint32_t>(inside.payload);
        p.next_header = inside.next_header;
    }

    Receiving& sa_;
    std::size_t count_ = 0;
    std::array<Packet*, kTogether> packets_;
    std::array<SaPacket, kTogether> sealed_;
    std::array<EsnAad, kTogether> aad_;
};

}  // namespace

struct Decapsulator::State {
    explicit State(SaTable& its_table) noexcept : table(its_table), process(core::this_process()) {}
    SaTable& table;
    SpiTable<Receiving> sas;
    Tally tally;

    // In a child of fork() another thread may have held any of the locks when it forked.
    bool forked() const noexcept { return process != core::this_process(); }
    Result<> usable() const {
        if (!forked()) return {};
        return Error{
            Code::limit,
            "ESP: the SAs are of the process before fork(); add others, with keys of their "
            "own, to a table that the child opens"};
    }

    Result<> add(const Key& key, const Options& options, const WindowState* from);

    // Of the list of SAs. A lock that many share lets them in before who wants it alone: so packets
    // wait at the gate while somebody does, lest a change waits for a pause that never comes.
    std::shared_lock<std::shared_mutex> share() const {
        if (changes.load() != 0) const std::lock_guard wait(gate);
        return std::shared_lock(mutex);
    }
    template <class Change>
    auto change(Change change) {
        ++changes;
        const std::lock_guard closed(gate);
        const std::unique_lock lock(mutex);
        --changes;
        return change();
    }

  private:
    const std::uint32_t process;
    mutable std::shared_mutex mutex;
    mutable std::mutex gate;
    std::atomic<int> changes{0};
};

namespace {

// Up to kTogether packets; those of one SA are gathered from among them.
void decapsulate_together(const SpiTable<Receiving>& sas, std::span<Packet> packets,
                          Framing framing, Counters& counters) noexcept {
    std::array<Outside, kTogether> outside;
    std::array<Receiving*, kTogether> sa{};
    for (std::size_t i = 0; i < packets.size(); ++i) {
        Packet& p = packets[i];
        outside[i] = look_outside(p, framing);
        p.verdict = outside[i].verdict;
        if (p.verdict == Verdict::ok) {
            p.spi = get32(outside[i].at);
            sa[i] = sas.find(p.spi);
            if (sa[i]) continue;
            p.verdict = Verdict::unknown_spi;
        }
        count(counters, p);
    }
    for (std::size_t i = 0; i < packets.size(); ++i) {
        if (!sa[i]) continue;
        Receiving& mine = *sa[i];
        const std::lock_guard lock(mine.mutex);
        Run run(mine);
        std::array<Packet*, kTogether> seen;
        std::size_t number = 0;
        for (std::size_t j = i; j < packets.size(); ++j) {
            if (sa[j] != &mine) continue;
            sa[j] = nullptr;
            run.add(packets[j], outside[j]);
            seen[number++] = &packets[j];
        }
        run.open();
        for (std::size_t j = 0; j < number; ++j) {
            count(mine.counters, *seen[j]);
            count(counters, *seen[j]);
        }
    }
}

}  // namespace

Decapsulator::Decapsulator(SaTable& table) : state_(std::make_unique<State>(table)) {}
Decapsulator::Decapsulator(Decapsulator&&) noexcept = default;
Decapsulator& Decapsulator::operator=(Decapsulator&&) noexcept = default;
Decapsulator::~Decapsulator() = default;

Result<> Decapsulator::State::add(const Key& key, const Options& options, const WindowState* from) {
    DAEL_TRY(usable());
    DAEL_TRY(check(options, true));
    auto made = std::make_unique<Receiving>(table, options);
    DAEL_LET(sa, table.add(key, {.direction = SaDirection::receiving,
                                 .ivs = options.ivs,
                                 .tag_size = options.icv_size,
                                 .salt = options.salt,
                                 .fresh_key = options.fresh_key,
                                 .soft_limit = options.soft_limit,
                                 .quota = options.quota,
                                 .limit_bytes = options.limit_bytes,
                                 .soft_limit_bytes = options.soft_limit_bytes,
                                 .lifetime = options.lifetime,
                                 .soft_lifetime = options.soft_lifetime,
                                 .most_failed = options.most_bad_icvs}));
    made->sa = sa;
    return change([&]() -> Result<> {
        if (sas.find(options.spi))
            return Error{Code::invalid_argument, "ESP: SPI " + std::to_string(options.spi) +
                                                     " is taken; remove its SA first"};
        sas.reserve();
        DAEL_TRY(begin_window(*made, key, from));
        sas.insert(options.spi, std::move(made));
        return {};
    });
}

Result<> Decapsulator::add(const Key& key, const Options& options) {
    return core::guarded([&] { return state_->add(key, options, nullptr); });
}
Result<> Decapsulator::add(const Key& key, const Options& options, const WindowState& from) {
    return core::guarded([&] { return state_->add(key, options, &from); });
}

Result<> Decapsulator::remove(std::uint32_t spi, WindowState* last) {
    return core::guarded([&]() -> Result<> {
        DAEL_TRY(state_->usable());
        std::unique_ptr<Receiving> removed;
        DAEL_TRY(state_->change([&]() -> Result<> {
            const Receiving* const sa = state_->sas.find(spi);
            if (!sa)
                return Error{Code::invalid_argument, "ESP: no SA has SPI " + std::to_string(spi)};
            if (last) *last = sa->state();
            removed = state_->sas.remove(spi);
            removed->retire();
            return {};
        }));
        return {};
    });
}

Result<WindowState> Decapsulator::export_state(std::uint32_t spi) const {
    return core::guarded([&]() -> Result<WindowState> {
        DAEL_TRY(state_->usable());
        const auto lock = state_->share();
        Receiving* const sa = state_->sas.find(spi);
        if (!sa) return Error{Code::invalid_argument, "ESP: no SA has SPI " + std::to_string(spi)};
        const std::lock_guard lock_of_sa(sa->mutex);
        return sa->state();
    });
}

std::size_t Decapsulator::size() const {
    if (state_->forked()) return 0;
    const auto lock = state_->share();
    return state_->sas.size();
}

std::size_t Decapsulator::decapsulate(std::span<Packet> packets, Framing framing) noexcept {
    Counters counters;
    if (state_->forked()) {
        for (Packet& p : packets) p.verdict = Verdict::fault;
        return 0;
    }
    {
        const auto lock = state_->share();
        for (std::size_t at = 0; at < packets.size(); at += kTogether)
            decapsulate_together(state_->sas,
                                 packets.subspan(at, std::min(kTogether, packets.size() - at)),
                                 framing, counters);
    }
    state_->tally.add(counters);
    return counters.of(Verdict::ok);
}

Counters Decapsulator::counters() const {
    return state_->tally.read();
}

Result<Counters> Decapsulator::counters(std::uint32_t spi) const {
    DAEL_TRY(state_->usable());
    const auto lock = state_->share();
    Receiving* const sa = state_->sas.find(spi);
    if (!sa) return Error{Code::invalid_argument, "ESP: no SA has SPI " + std::to_string(spi)};
    const std::lock_guard lock_of_sa(sa->mutex);
    return sa->counters;
}

}  // namespace dael::esp
