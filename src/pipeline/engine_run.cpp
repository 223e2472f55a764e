// SPDX-License-Identifier: Apache-2.0
// How an engine does a call on host memory: on the host's threads alone, or from one queue by a
// device, by several, by the host and devices together (work_queue.hpp); and what becomes of what
// one of them has failed at.
#include <algorithm>

#include "core/guard.hpp"
#include "core/keep_forever.hpp"
#include "core/process.hpp"
#include "modes/starts.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/key_set.hpp"
#include "pipeline/planner.hpp"
#include "pipeline/share.hpp"

namespace dael {

using pipeline::DevicePath;
using pipeline::Did;
using pipeline::Estimate;
using pipeline::Planner;
using pipeline::Request;
using pipeline::Survey;
using pipeline::Team;
using pipeline::Worker;
using pipeline::WorkQueue;

namespace {

// Sees to it that after an error no code says of a message what nobody vouches for: an exception,
// or a host backend that failed, leaves those of a call that are `internal` all.
struct Told {
    std::span<Code> codes;
    bool all = false;
    ~Told() {
        if (!all) std::ranges::fill(codes, Code::internal);
    }
    Error nothing_touched(Error error) {
        std::ranges::fill(codes, error.code);
        all = true;
        return error;
    }
};

// The caller must know, where there are words left to say it in.
Error with_loss(Result<Ran> ran) {
    Error error = std::move(ran).error();
    (void)core::guarded([&]() -> Result<> {
        error.message += "; data that was worked in place is lost, and codes say which";
        return {};
    });
    return error;
}

// Bytes a second.
double rate_of(const Estimate& estimate) noexcept {
    return std::max(estimate.rate, 1e-3) * 1e9;
}

// What another can do in the place of a device that has said so.
bool can_be_mended(Code code) noexcept {
    return code == Code::device || code == Code::backend_absent || code == Code::out_of_memory;
}

// Devices first, as they are numbered, then the host; whoever has done nothing is not named.
Ran named(std::span<Did> did) {
    std::ranges::stable_sort(did, {}, [](const Did& one) {
        return std::pair(one.worker.backend->device() == nullptr, one.worker.number);
    });
    std::uint64_t all = 0;
    for (const Did& one : did) all += one.bytes;
    Ran ran;
    std::string names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < did.size();) {
        const Worker& worker = did[i].worker;
        std::uint64_t bytes = 0;
        for (; i < did.size() && did[i].worker.number == worker.number; ++i) {
            bytes += did[i].bytes;
            ran.chunks += did[i].chunks;
            ran.threads = std::max(ran.threads, did[i].threads);
        }
        if (bytes == 0 && (i < did.size() || count != 0)) continue;
        names += (names.empty() ? "" : "+") + worker.name();
        ran.backend = worker.ran(1, 0).backend;
        if (count < ran.percent.size() && bytes != all)
            ran.percent[count] = static_cast<std::uint8_t>((bytes * 100 + all / 2) / all);
        ++count;
    }
    if (count > 1) ran.backend = core::lasting(names);
    return ran;
}

}  // namespace

Team pipeline::team_of(std::vector<Team::Member> all, std::span<const double> shares) {
    Team team;
    for (std::size_t i = 0; i < all.size(); ++i)
        (shares[i] > 0 ? team.members : team.reserve).push_back(all[i]);
    // Whoever is possible, where nobody is expected to be.
    if (team.members.empty()) team.members.swap(team.reserve);
    return team;
}

Result<Ran> Engine::State::run_on_host(const Worker& host, Request& request, KeySet::State* set,
                                       const Survey& survey) {
    // Only GCM gets more out of a key than its schedule; the tables of the others are made no
    // sooner than they are of use.
    if (set && request.cipher.mode == Mode::gcm) {
        DAEL_LET(ready, set->on(host));
        request.keys = ready;
    }
    DAEL_LET(threads,
             pipeline::run_on_host(*host.backend, pool_, request, survey, pool_.threads()));
    return host.ran(threads, 0);
}

Ran pipeline::ran_by(std::span<Did> did, bool replaced) {
    const auto all = core::guarded([&]() -> Result<Ran> { return named(did); });
    const Did& first = did.front();
    Ran ran = all ? *all : first.worker.ran(first.threads, first.chunks);
    ran.replaced = replaced;
    return ran;
}

Result<> Engine::State::check_path(const DevicePath& path, const Request& request, bool batch,
                                   const Survey& survey) const {
    if (forked()) return core::opened_before_fork(path.name());
    const core::Can can = path.backend->can(request.cipher, request.keys.list.front().bits());
    // Messages without a byte need nothing of a device, so no mode refuses them. One message that
    // is sequential is refused by itself, since the host does it better; a batch is taken, of one
    // too.
    if (survey.bytes != 0 &&
        (can.answer == core::Can::no || (can.answer == core::Can::batches && !batch)))
        return core::cannot(path.name(), request.cipher, can);
    return {};
}

Result<Team> Engine::State::team_for(const std::optional<Worker>& host, const Request& request,
                                     bool batch, const Survey& survey, Job job) {
    Team all;
    if (host && !Planner::device_considered(job)) return all;
    std::optional<Error> refused;
    std::vector<Estimate> estimates;
    const bool alone = paths_.size() == 1 && !host;
    const bool in_place = pipeline::in_place(request.messages);
    for (const bool failed : {false, true}) {  // those that have only where there is nobody else
        if (!all.members.empty() || (failed && host)) break;
        for (const auto& path : paths_) {
            if (path->failed && !failed) continue;
            if (auto able = check_path(*path, request, batch, survey); !able) {
                if (!refused) refused = std::move(able).error();
                continue;
            }
            std::optional<pipeline::Direct> direct;
            if (!alone) direct = pipeline::direct_copies(path->device, request.messages);
            job.from = direct && *direct && !in_place ? Job::From::pinned : Job::From::host;
            estimates.push_back(device_estimate(path->rates, job, 0));
            all.members.push_back({*path, path.get(), rate_of(estimates.back()), direct});
        }
    }
    if (all.members.empty() && !host)
        return refused ? std::move(*refused) : Error{Code::device, "every device has failed"};
    if (all.members.empty() || alone) return all;
    if (host) {
        job.from = Job::From::host;
        estimates.push_back(host_estimate(host->number, job));
        all.members.push_back({*host, nullptr, rate_of(estimates.back())});
    }
    return pipeline::team_of(
        std::move(all.members),
        pipeline::together(estimates, static_cast<double>(pipeline::total_bytes(job))).shares);
}

Team Engine::State::choose(const Worker& host, std::span<const Message> messages, Job& job) {
    if (!Planner::device_considered(job) || forked()) return {};
    const bool were_opened = opened();
    if (were_opened && paths_.empty()) return {};
    const Estimate by_host = host_estimate(host.number, job);
    if (!started_) {
        const DeviceRates& rates = were_opened ? paths_.front()->rates : expected_;
        const Estimate estimate = device_estimate(rates, job, start_seconds(rates));
        if (!estimate.possible) return {};
        if (estimate.seconds >= by_host.seconds) {
            const double running = device_estimate(rates, job, 0).seconds;
            missed_seconds_.fetch_add(std::max(0.0, by_host.seconds - running));
            return {};
        }
        if (paths().empty()) return {};
    }
    std::vector<Estimate> estimates;
    std::vector<Team::Member> all;
    std::size_t best = 0;
    bool direct = false, any_reached = false;
    const auto add = [&](const Worker& worker, DevicePath* path, const Estimate& estimate,
                         std::optional<pipeline::Direct> its = {}) {
        if (!all.empty() && estimate.seconds < estimates[best].seconds) best = all.size();
        all.push_back({worker, path, rate_of(estimate), its});
        estimates.push_back(estimate);
    };
    add(host, nullptr, by_host);
    for (const auto& path : paths()) {
        if (path->failed) continue;
        const bool reached = pipeline::in_reach(path->device, job.cipher, messages);
        std::optional<pipeline::Direct> its;
        if (!reached) its = pipeline::direct_copies(path->device, messages);
        const bool its_direct = reached || *its;
        direct |= its_direct;
        any_reached |= reached;
        job.from = its_direct ? Job::From::pinned : Job::From::host;
        const Estimate estimate = device_estimate(path->rates, job, start_seconds(path->rates),
                                                  reached ? path->device.reach() : 0);
        if (!estimate.possible) continue;
        if (path->backend->can(job.cipher, job.key_bits).answer == core::Can::no) continue;
        add(*path, path.get(), estimate, its);
    }
    const std::uint64_t bytes = pipeline::total_bytes(job);
    // What is in place and page-locked would go through staging buffers, if it were several's.
    if (bytes >= pipeline::kLeastForSeveral && !any_reached &&
        !(direct && pipeline::in_place(messages))) {
        const auto several = pipeline::together(estimates, static_cast<double>(bytes),
                                                planner_.memory(bytes, pool_.threads()));
        if (several.members() > 1 &&
            several.seconds < pipeline::kWorthSeveral * estimates[best].seconds)
            return pipeline::team_of(std::move(all), several.shares);
    }
    if (best == 0) return {};
    return {{all[best]}, {all[0]}};
}

Result<Team> Engine::State::team(const std::optional<Worker>& host, const Request& request,
                                 bool batch, const Survey& survey, Job& job) {
    if (find_devices_) return choose(*host, request.messages, job);
    if (paths_.empty()) return Team{};
    return team_for(host, request, batch, survey, job);
}

Result<int> Engine::State::run_through(DevicePath& path, Request request, KeySet::State* set,
                                       WorkQueue& queue, WorkQueue::Member& member,
                                       pipeline::TransferOptions options) {
    started_ = true;
    options.chunk = options_.chunk != 0 ? options_.chunk : path.rates.chunk;
    options.threads = pool_.threads();
    std::unique_ptr<core::KeyTables> own;
    if (set) {
        DAEL_LET(ready, set->on(path));
        DAEL_TRY(set->settle());
        request.keys = ready;
    } else if (authenticates(request.cipher.mode)) {
        DAEL_LET(tables, path.backend->tables(request.keys.list));
        own = std::move(tables);
        request.keys.tables = own.get();
    }
    auto threads = path.transfer.run(request, queue, member, options);
    if (path.transfer.given_up()) core::keep_forever(std::move(own));
    return threads;
}

Result<int> Engine::State::run_on_host(const Worker& host, Request request, KeySet::State* set,
                                       WorkQueue& queue, WorkQueue::Member& member) {
    if (set && request.cipher.mode == Mode::gcm) {
        DAEL_LET(ready, set->on(host));
        request.keys = ready;
    }
    return pipeline::run_on_host(*host.backend, pool_, request, queue, member, pool_.threads());
}

// In rounds: what those who fail give back, after the others had found the queue empty, is the next
// round's.
Result<Ran> Engine::State::run_together(Team team, const Request& request, KeySet::State* set,
                                        const Survey& survey, WorkQueue& queue) {
    pipeline::TransferOptions options;
    options.several = team.members.size() > 1;
    const bool replaceable = team.members.size() + team.reserve.size() > 1;
    options.patience = replaceable ? options_.patience : 0;
    options.one_key = !survey.one_key && !pipeline::takes_mixed_keys(request.cipher);
    std::vector<pipeline::Did> did;
    std::vector<Result<int>> results;
    std::optional<Error> failure;
    bool replaced = false;
    const auto work = [&](std::size_t i) -> Result<> {
        const Team::Member& its = team.members[i];
        WorkQueue::Member member(queue, its.rate);
        results[i] = core::guarded([&]() -> Result<int> {
            pipeline::TransferOptions mine = options;
            mine.direct = its.direct;
            return its.path ? run_through(*its.path, request, set, queue, member, mine)
                            : run_on_host(its.worker, request, set, queue, member);
        });
        did[did.size() - team.members.size() + i] = {its.worker, member.bytes(),
                                                     its.path ? member.chunks() : 0,
                                                     results[i] ? *results[i] : 1};
        return {};
    };
    do {
        const std::size_t count = team.members.size();
        results.assign(count, Error{Code::internal, "it never began"});
        for (const Team::Member& member : team.members) did.push_back({member.worker});
        if (count == 1)
            (void)work(0);
        else if (auto driven = drivers_.run(count, static_cast<int>(count), work);
                 !driven && !queue.all_done())
            return std::move(driven).error();
        for (std::size_t i = count; i-- > 0;) {
            if (results[i]) continue;
            Error error = std::move(results[i]).error();
            DevicePath* const path = team.members[i].path;
            if (path && error.code != Code::out_of_memory && can_be_mended(error.code)) {
                path->failed.note(error);
                replaced = true;
            }
            if (!failure || !can_be_mended(error.code)) failure = std::move(error);
            team.members.erase(team.members.begin() + static_cast<std::ptrdiff_t>(i));
        }
        if (team.members.empty() && !team.reserve.empty() && can_be_mended(failure->code)) {
            team.members.push_back(team.reserve.back());
            team.reserve.pop_back();
        }
    } while (!queue.empty() && !team.members.empty());
    if (!queue.all_done()) {
        if (failure) return std::move(*failure);
        return Error{Code::internal, "a thread that was at work has ended"};
    }
    return pipeline::ran_by(did, replaced);
}

Result<Ran> Engine::State::run_short(const Cipher& cipher, const Key& key, KeySet::State* set,
                                     const Message& message, Code& code) {
    code = Code::internal;
    core::KeyList keys{set ? std::span<const Key>(set->list) : std::span(&key, 1)};
    const int bits = key.bits();
    Worker host{nullptr, short_hosts_[Planner::kind(cipher, bits)]};
    if (host.number == hosts_.size() || message.size == 0) {
        auto chosen = choose_host({cipher, bits, message.size});
        if (!chosen && !find_devices_ && !paths_.empty())  // what the host lacks a device may have
            return run(cipher, keys.list, set, {&message, 1}, {&code, 1});
        if (!chosen) return std::move(chosen).error();
        host = *chosen;
    }
    host.backend = hosts_[host.number].get();
    if (set && !modes::takes(cipher, message, keys.list.size())) {
        code = modes::check(cipher, message, keys.list.size()).code();
        return host.ran(1, 0);
    }
    if (set && cipher.mode == Mode::gcm) {
        DAEL_LET(ready, set->on(host));
        keys = ready;
    }
    Told told{{&code, 1}};
    code = Code::ok;
    DAEL_TRY(host.backend->run(pipeline::for_backend(cipher), keys, {&message, 1}, {&code, 1}));
    told.all = true;
    return host.ran(1, 0);
}

Result<Ran> Engine::State::run(const Cipher& cipher, std::span<const Key> keys, KeySet::State* set,
                               std::span<const Message> messages, std::span<Code> codes) {
    const Survey survey = pipeline::survey(cipher, messages, pool_);
    Told told{codes};
    if (modes::traits(cipher.mode).start_once && modes::encrypts(cipher) &&
        !survey.starts_distinct &&
        pipeline::starts_repeat(messages, pool_, has_start_rest(cipher.mode)))
        if (auto checked = modes::check_starts(messages, has_start_rest(cipher.mode)); !checked)
            return told.nothing_touched(std::move(checked).error());
    Request request{cipher, {set ? std::span<const Key>(set->list) : keys}, messages, codes};
    Job job{cipher, request.keys.list.front().bits(), survey.bytes, messages.size()};
    if (survey.bytes == 0 && !find_devices_) job.size = survey.weight;  // additional data alone
    if (messages.size() > 1) job.size /= messages.size();
    std::optional<Worker> host;
    if (!hosts_.empty()) {
        auto chosen = choose_host(job);
        if (chosen)
            host = *chosen;
        else if (find_devices_ || paths_.empty())
            return told.nothing_touched(std::move(chosen).error());
    }
    const bool batch = set != nullptr;
    auto found = team(host, request, batch, survey, job);
    if (!found) return told.nothing_touched(std::move(found).error());
    Team team = std::move(*found);
    // On a device a message that stays whole is one chunk, of which nothing overlaps.
    if (const auto parts = pipeline::in_parts(job);
        parts && survey.bytes != 0 &&
        (!team.members.empty() || host_estimate(host->number, job).threads > 1) &&
        modes::takes(cipher, messages[0], request.keys.list.size()) &&
        pipeline::can_be_in_parts(cipher, messages[0])) {
        told.all = true;
        return run_in_parts(cipher, keys, set, messages[0], parts->size, codes[0]);
    }
    if (team.members.empty()) {
        auto ran = run_on_host(*host, request, set, survey);
        told.all = static_cast<bool>(ran);
        return ran;
    }
    std::optional<WorkQueue> queue;
    auto ran = core::guarded([&] {
        queue.emplace(request, !survey.one_key && !pipeline::takes_mixed_keys(cipher));
        return run_together(std::move(team), request, set, survey, *queue);
    });
    if (!ran && !queue) return told.nothing_touched(std::move(ran).error());
    if (!ran) queue->tell(ran.code());
    told.all = true;
    return queue->lost() ? with_loss(std::move(ran)) : std::move(ran);
}

}  // namespace dael
