// SPDX-License-Identifier: Apache-2.0
// How an engine does a call on host memory: on the host's threads alone, or from one queue by a
// device, by several, by the host and devices together (work_queue.hpp); and what becomes of what
// one of them has failed at.
#include <algorithm>

#include "core/guard.hpp"
#include "core/process.hpp"
#include "modes/starts.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/key_set.hpp"
#include "pipeline/share.hpp"

namespace dael {

using pipeline::DevicePath;
using pipeline::Estimate;
using pipeline::Planner;
using pipeline::Request;
using pipeline::Survey;
using pipeline::Team;
using pipeline::Transferred;
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

// What another can do in the place of a device that has said so.
bool can_be_mended(Code code) noexcept {
    return code == Code::device || code == Code::backend_absent || code == Code::out_of_memory;
}

}  // namespace

std::vector<bool> pipeline::worth_having(std::span<const double> rates,
                                         std::span<const double> setups, double bytes) {
    std::vector<bool> worth(rates.size(), true);
    for (std::size_t left = rates.size(); left > 1; --left) {
        double all = 0;
        std::size_t last = rates.size();
        for (std::size_t i = 0; i < rates.size(); ++i) {
            if (!worth[i]) continue;
            all += rates[i];
            if (last == rates.size() || setups[i] > setups[last]) last = i;
        }
        if (setups[last] < bytes / all) break;
        worth[last] = false;
    }
    return worth;
}

Result<Ran> Engine::State::run_on_host(const Worker& host, Request& request, KeySet::State* set,
                                       const Survey& survey) {
    // Only modes that authenticate get more out of a key than its schedule; the tables of the
    // others are made no sooner than they are of use.
    if (set && authenticates(request.cipher.mode)) {
        DAEL_LET(ready, set->on(host));
        request.keys = ready;
    }
    DAEL_LET(threads,
             pipeline::run_on_host(*host.backend, pool_, request, survey, pool_.threads()));
    return host.ran(threads, 0);
}

// Devices first, as they are numbered, then the host; whoever has done nothing is not named.
Ran pipeline::ran_by(std::span<Did> did, bool replaced) {
    std::ranges::stable_sort(did, {}, [](const Did& one) {
        return std::pair(one.worker.backend->device() == nullptr, one.worker.number);
    });
    std::uint64_t all = 0;
    for (const Did& one : did) all += one.what.bytes;
    Ran ran;
    ran.replaced = replaced;
    std::string names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < did.size();) {
        const Worker& worker = did[i].worker;
        std::uint64_t bytes = 0;
        for (; i < did.size() && did[i].worker.number == worker.number; ++i) {
            bytes += did[i].what.bytes;
            ran.chunks += did[i].what.chunks;
            ran.threads = std::max(ran.threads, did[i].what.threads);
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
    Team team;
    if (host && !Planner::device_considered(job)) return team;
    std::optional<Error> refused;
    std::vector<double> rates, setups;
    const auto add = [&](const Worker& worker, DevicePath* path, const Estimate& estimate) {
        rates.push_back(std::max(estimate.rate, 1e-3) * 1e9);
        setups.push_back(estimate.setup_seconds);
        team.members.push_back({worker, path, rates.back()});
    };
    for (const bool failed : {false, true}) {  // those that have only where there is nobody else
        if (!team.members.empty() || (failed && host)) break;
        for (const auto& path : paths_) {
            if (path->failed && !failed) continue;
            if (auto able = check_path(*path, request, batch, survey); !able) {
                if (!refused) refused = std::move(able).error();
                continue;
            }
            const auto direct = paths_.size() == 1 && !host
                                    ? pipeline::Direct{}
                                    : pipeline::direct_copies(path->device, request.messages);
            job.from = direct.in && direct.out ? Job::From::pinned : Job::From::host;
            add(*path, path.get(), planner_.device(path->rates, job, 0));
        }
    }
    if (team.members.empty() && !host)
        return refused ? std::move(*refused) : Error{Code::device, "every device has failed"};
    if (team.members.empty()) return team;
    job.from = Job::From::host;
    if (host) add(*host, nullptr, planner_.host(host->number, job, pool_.threads()));
    const auto worth = pipeline::worth_having(rates, setups, static_cast<double>(survey.bytes));
    std::vector<Team::Member> all;
    all.swap(team.members);
    for (std::size_t i = 0; i < all.size(); ++i)
        (worth[i] ? team.members : team.reserve).push_back(all[i]);
    return team;
}

Result<Transferred> Engine::State::run_through(DevicePath& path, Request request,
                                               KeySet::State* set, WorkQueue& queue,
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
    return path.transfer.run(request, queue, options);
}

Result<Transferred> Engine::State::run_on_host(const Worker& host, Request request,
                                               KeySet::State* set, WorkQueue& queue, double rate) {
    if (set && authenticates(request.cipher.mode)) {
        DAEL_LET(ready, set->on(host));
        request.keys = ready;
    }
    WorkQueue::Member member(queue, rate);
    DAEL_LET(threads,
             pipeline::run_on_host(*host.backend, pool_, request, queue, member, pool_.threads()));
    return Transferred{member.bytes(), 0, threads};
}

// In rounds: what those who fail give back, after the others had found the queue empty, is the next
// round's.
Result<Ran> Engine::State::run_together(Team team, const Request& request, KeySet::State* set,
                                        const Survey& survey, WorkQueue& queue) {
    pipeline::TransferOptions options;
    options.several = team.members.size() > 1;
    options.one_key = !survey.one_key && !pipeline::takes_mixed_keys(request.cipher);
    std::vector<pipeline::Did> did;
    std::vector<Result<Transferred>> results;
    std::optional<Error> failure;
    bool replaced = false;
    const auto work = [&](std::size_t i) -> Result<> {
        results[i] = core::guarded([&]() -> Result<Transferred> {
            const auto& [worker, path, rate] = team.members[i];
            if (!path) return run_on_host(worker, request, set, queue, rate);
            pipeline::TransferOptions its = options;
            its.rate = rate;
            return run_through(*path, request, set, queue, its);
        });
        return {};
    };
    do {
        results.assign(team.members.size(), Error{Code::internal, "it never began"});
        if (results.size() == 1)
            (void)work(0);
        else
            DAEL_TRY(drivers_.run(results.size(), static_cast<int>(results.size()), work));
        for (std::size_t i = results.size(); i-- > 0;) {
            const Team::Member& member = team.members[i];
            if (results[i]) {
                did.push_back({member.worker, *results[i]});
                continue;
            }
            Error error = std::move(results[i]).error();
            if (member.path && error.code != Code::out_of_memory && can_be_mended(error.code)) {
                member.path->failed.note(error);
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
        DAEL_LET(chosen, choose_host({cipher, bits, message.size}));
        host = chosen;
    }
    host.backend = hosts_[host.number].get();
    if (set && !modes::takes(cipher, message, keys.list.size())) {
        code = modes::check(cipher, message, keys.list.size()).code();
        return host.ran(1, 0);
    }
    if (set && authenticates(cipher.mode)) {
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
        !survey.starts_distinct && pipeline::starts_repeat(messages, pool_))
        if (auto checked = modes::check_starts(messages); !checked)
            return told.nothing_touched(std::move(checked).error());
    Request request{cipher, {set ? std::span<const Key>(set->list) : keys}, messages, codes};
    Job job{cipher, request.keys.list.front().bits(), survey.bytes, messages.size()};
    if (messages.size() > 1) job.size /= messages.size();
    std::optional<Worker> host;
    if (!hosts_.empty()) {
        auto chosen = choose_host(job);
        if (chosen)
            host = *chosen;
        else if (find_devices_ || paths_.empty())
            return told.nothing_touched(std::move(chosen).error());
    }
    Team team;
    if (find_devices_) {
        if (DevicePath* const path = choose(*host, messages, job))
            team = {{{*path, path}}, {{*host}}};
    } else if (!paths_.empty()) {
        auto found = team_for(host, request, set != nullptr, survey, job);
        if (!found) return told.nothing_touched(std::move(found).error());
        team = std::move(*found);
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
