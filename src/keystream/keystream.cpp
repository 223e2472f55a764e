// SPDX-License-Identifier: Apache-2.0
// The public calls, and what is said of the plan.
#include <daelstrom/keystream.hpp>

#include <algorithm>
#include <cstdio>

#include "core/guard.hpp"
#include "keystream/table.hpp"

namespace dael {

using core::guarded;

SaFiller::SaFiller(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
SaFiller::SaFiller(SaFiller&&) noexcept = default;
SaFiller& SaFiller::operator=(SaFiller&&) noexcept = default;
SaFiller::~SaFiller() = default;

Result<SaFiller> SaFiller::open(Engine& engine, SaFillerOptions options) {
    return guarded([&]() -> Result<SaFiller> {
        DAEL_LET(state, State::make(engine, options));
        return SaFiller(std::move(state));
    });
}

SaTable::SaTable(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
SaTable::SaTable(SaTable&&) noexcept = default;
SaTable& SaTable::operator=(SaTable&&) noexcept = default;
SaTable::~SaTable() = default;

Result<SaTable> SaTable::open(Engine& engine, SaTableOptions options) {
    return guarded([&]() -> Result<SaTable> {
        DAEL_LET(filler, SaFiller::open(engine));
        return open(filler, options);
    });
}
Result<SaTable> SaTable::open(const SaFiller& filler, SaTableOptions options) {
    return guarded([&]() -> Result<SaTable> {
        auto state = std::make_unique<State>(filler.state(), options);
        DAEL_TRY(state->set_up());
        return SaTable(std::move(state));
    });
}

Result<SaId> SaTable::add(const Key& key, const SaOptions& options) {
    return guarded([&] { return state_->add(key, options, nullptr); });
}
Result<SaId> SaTable::add(const Key& key, const SaOptions& options, const SaState& from) {
    return guarded([&] { return state_->add(key, options, &from); });
}
Result<SaState> SaTable::export_state(SaId sa, std::uint64_t more) {
    return guarded([&] { return state_->export_state(sa, more); });
}
Result<> SaTable::rekey(SaId sa, const Key& key, const std::array<std::uint8_t, 4>& salt) {
    return guarded([&] { return state_->rekey(sa, key, salt); });
}
Result<> SaTable::remove(SaId sa) {
    return guarded([&] { return state_->remove(sa); });
}
Result<SaSealed> SaTable::seal(SaId sa, std::span<const SaPacket> packets, SaNumbered numbered) {
    return guarded([&] { return state_->seal(sa, packets, numbered); });
}
Result<> SaTable::open(SaId sa, std::span<const SaPacket> packets, std::span<Code> codes) {
    return guarded([&] { return state_->open(sa, packets, codes); });
}
SaCounters SaTable::counters() const {
    return state_->counters();
}
Result<SaStatus> SaTable::status(SaId sa) const {
    return guarded([&] { return state_->status(sa); });
}
std::string SaTable::explain() const {
    return state_->explain();
}
SaFilling SaTable::filling() const {
    return state_->forked() ? SaFilling{.works = false, .fault = "fork()"}
                            : state_->filler->filling();
}
void SaTable::settle() {
    if (!state_->forked()) state_->filler->settle(*state_);
}

namespace {

std::string with_digits(double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}
std::string percent(std::uint64_t part, std::uint64_t whole) {
    return with_digits(
               whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) +
           "%";
}

}  // namespace

std::string SaTable::State::explain() const {
    if (forked()) return "The table was opened before fork(), and is the parent's to use.\n";
    const SaCounters sum = counters();
    std::string text = "A packet of 1024 bytes takes " + with_digits(measured.direct_ns, 0) +
                       " ns by '" + host->profile().name + "', and " +
                       with_digits(measured.ahead_ns, 0) +
                       " ns where its keystream is there (AES-128, from cache).\n";
    const bool ahead = options.plan == SaTableOptions::Plan::ahead ||
                       (options.plan == SaTableOptions::Plan::measured && measured.pays());
    text += ahead ? "So keystream is made ahead of time" : "So packets are encrypted as they come";
    text += options.plan == SaTableOptions::Plan::measured ? ".\n" : ", as the table was opened.\n";
    text += filler->describe();
    text += "Budget: " + std::to_string(options.budget) + " bytes in blocks of " +
            std::to_string(options.block) + ", of which " + std::to_string(sum.memory) +
            " are in use" + filler->say_lost(*this) + ".\n";
    text += std::to_string(sum.packets) + " packets: " + percent(sum.hits, sum.packets) +
            " found their keystream, " + percent(sum.partial, sum.packets) + " a part of it, " +
            percent(sum.direct, sum.packets) + " none.\n";
    const std::uint64_t over = sum.made - std::min(sum.made, sum.dropped + sum.ready);
    text += "Of the keystream that packets came to, " +
            percent(over - std::min(over, sum.used), over) + " was not needed.\n";
    return text;
}

std::string SaFiller::State::say_lost(const SaTable::State& table) {
    const std::lock_guard lock(mutex_);
    if (table.lost == 0) return {};
    return ", " + std::to_string(table.lost * table.options.block) +
           " of them kept as they are, since the device could not be waited for";
}

std::string SaFiller::State::describe() {
    const std::lock_guard lock(mutex_);
    std::string text = "The filler is '" + name_ + "' with " + std::to_string(options_.threads) +
                       (options_.threads == 1 ? " thread" : " threads");
    if (jobs_ != 0)
        text += ": " + std::to_string(jobs_) + " blocks, " + std::to_string(bytes_ / jobs_) +
                " bytes in each, on average; one takes " + with_digits(latency_ * 1e6, 0) +
                " us from order to delivery";
    text += ".\n";
    if (resting_)
        text += "It has failed, and packets are encrypted as they come until it is tried again: " +
                fault_ + "\n";
    else if (faults_ != 0)
        text += "It has failed " + std::to_string(faults_) +
                (faults_ == 1 ? " time, and was begun anew: " : " times, and was begun anew: ") +
                fault_ + "\n";
    return text;
}

SaFilling SaFiller::State::filling() {
    using std::chrono::duration_cast, std::chrono::milliseconds;
    const auto ms = [](Clock::duration time) {
        return static_cast<std::uint64_t>(
            std::max<std::int64_t>(0, duration_cast<milliseconds>(time).count()));
    };
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    SaFilling filling{.works = !resting_, .faults = faults_, .fault = fault_};
    if (resting_) filling.retry_ms = ms(rested_ - now);
    for (const auto& worker : workers_)
        for (const auto& lane : worker->lanes)
            if (lane->fill.table && !lane->fill.lost)
                filling.waits_ms = std::max(filling.waits_ms, ms(now - lane->fill.began));
    return filling;
}

}  // namespace dael
