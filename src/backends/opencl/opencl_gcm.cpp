// SPDX-License-Identifier: Apache-2.0
// GCM on the device: keys and batches in device memory, and the kernels that a batch takes.
#include <algorithm>
#include <optional>

#include "backends/opencl/gcm_memory.hpp"
#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::opencl {
namespace {

// Copies of more keys than this are not kept on the host.
constexpr std::size_t kMostHostKeys = 4096;
// Teams of a work-group that hashes, and what its table and their exchange take.
constexpr unsigned kMostHashTeams = 16;
constexpr std::size_t kHashMemory = 40 * 1024;

// No tables for AES.
Tuning without_tables(unsigned teams) {
    return {.tables = -1, .teams = teams};
}

// DAEL_HELD and kSquad of gcm_ctr.cl. Counter caching is for T-tables, and a squad must lie in one
// work-group.
unsigned values_held(const Tuning& tuning) {
    return tuning.tables > 0 ? std::max(tuning.held, 8 / std::min(8u, tuning.teams)) : 0;
}
unsigned squad_teams(const Tuning& tuning) {
    const unsigned held = values_held(tuning);
    return held == 0 ? 1 : 8 / held;
}

unsigned hash_teams(const Tuning& tuning) {
    return std::min(tuning.teams, kMostHashTeams);
}

std::optional<Place> merged(const std::optional<Place>& known, const std::optional<Place>& more) {
    return known ? known : more;
}
bool compatible(const std::optional<Place>& a, const std::optional<Place>& b) {
    return !a || !b || a->same_memory(*b);
}

std::string keyed(bool many_keys) {
    return " -DDAEL_KEYED=" + std::to_string(many_keys);
}

}  // namespace

Result<std::unique_ptr<core::PreparedKeys>> OpenClDevice::prepare_keys(std::span<const Key> keys) {
    if (keys.empty()) return Error{Code::invalid_argument, "a set of no keys; give one or more"};
    if (keys.size() > 0xffffffffu)
        return Error{Code::limit, "a set takes at most 2^32 - 1 keys; divide it"};
    auto prepared = std::make_unique<GcmKeys>();
    prepared->device = this;
    std::vector<GcmSchedule> schedules(keys.size());
    const std::size_t bytes = schedules.size() * sizeof(GcmSchedule);
    const core::WipeAtEnd wiper(schedules.data(), bytes);
    for (std::size_t i = 0; i < keys.size(); ++i) {
        prepared->rounds_of.push_back(static_cast<std::uint8_t>(keys[i].rounds()));
        std::memcpy(&schedules[i].keys, keys[i].schedule().encrypt.data(), sizeof(RoundKeys));
        schedules[i].rounds = static_cast<std::uint32_t>(keys[i].rounds());
    }
    auto made = SecretBuffer::create(**context_, setup_, bytes);
    if (!made) return std::move(made).error();
    prepared->schedules = std::move(*made);
    DAEL_TRY(checked(
        setup_.enqueueWriteBuffer(prepared->schedules.get(), CL_TRUE, 0, bytes, schedules.data()),
        "clEnqueueWriteBuffer"));
    auto powers =
        SecretBuffer::create(**context_, setup_, keys.size() * kGcmPowers * sizeof(Uint4));
    if (!powers) return std::move(powers).error();
    prepared->powers = std::move(*powers);

    const auto count = static_cast<std::uint32_t>(keys.size());
    for (const int rounds : {10, 12, 14}) {
        if (std::ranges::count(prepared->rounds_of, rounds) == 0) continue;
        const auto kernel = tag_kernel("gcm_powers", rounds);
        if (!kernel) return kernel.error();
        const auto groups = std::min(count, static_cast<unsigned>(info_.multiprocessors) * 8);
        DAEL_TRY(launch(**kernel, setup_, groups, 1, prepared->schedules.get(), count,
                        prepared->powers.get()));
    }
    DAEL_TRY(checked(setup_.finish(), "clFinish"));
    if (keys.size() <= kMostHostKeys)
        for (const Key& key : keys) {
            auto copy = key.duplicate();
            if (!copy) return std::move(copy).error();
            prepared->host.push_back(std::move(*copy));
        }
    return std::unique_ptr<core::PreparedKeys>(std::move(prepared));
}

Result<Kernel*> OpenClDevice::tag_kernel(const std::string& entry, int rounds) {
    const auto refused = std::to_string(static_cast<int>(Code::authentication));
    return kernel("gcm_tag", entry, rounds, false, without_tables(1),
                  keyed(true) + " -DDAEL_AUTHENTICATION=" + refused);
}

Result<core::FieldElement> OpenClDevice::hash_subkey(const GcmKeys& keys, std::uint32_t key) const {
    Uint4 words;
    const core::WipeAtEnd wiper(words);
    DAEL_TRY(checked(
        setup_.enqueueReadBuffer(keys.powers.get(), CL_TRUE, (key * kGcmPowers + 1) * sizeof words,
                                 sizeof words, &words),
        "clEnqueueReadBuffer"));
    return to_element(words);
}

Result<> OpenClDevice::add_message(GcmBatch& batch, const core::GcmSegment& segment,
                                   std::uint32_t result) {
    GcmItem item{};
    item.size = segment.size;
    item.aad_size = segment.aad_size;
    item.key = segment.key;
    item.result = result;
    GcmPart wanted;
    wanted.rounds = batch.keys.rounds_of[segment.key];
    const auto find = [&](const void* address, std::uint64_t size, std::optional<Place>& place,
                          std::uint64_t& offset) -> Result<> {
        if (size == 0) return {};
        auto found = addresses_.find(address, size);
        if (!found) return std::move(found).error();
        place = *found;
        offset = found->offset;
        return {};
    };
    DAEL_TRY(find(segment.in, segment.size, wanted.in, item.in));
    DAEL_TRY(find(segment.out, segment.size, wanted.out, item.out));
    DAEL_TRY(find(segment.aad, segment.aad_size, wanted.aad, item.aad));
    DAEL_TRY(find(segment.tag, batch.tag_size, wanted.tag, item.tag));

    Block counter{};
    if (segment.iv_size == kNonceSize) {
        std::copy_n(segment.iv, kNonceSize, counter.begin());
        counter.back() = batch.tag_size == 0 ? 0 : 1;
    } else {
        auto h = hash_subkey(batch.keys, segment.key);
        if (!h) return std::move(h).error();
        const core::WipeAtEnd wiper(*h);
        counter = modes::initial_counter(*h, {segment.iv, segment.iv_size});
    }
    item.counter = to_uint4(counter);

    auto part = std::ranges::find_if(batch.parts, [&](const GcmPart& known) {
        return known.rounds == wanted.rounds && compatible(known.in, wanted.in) &&
               compatible(known.out, wanted.out) && compatible(known.aad, wanted.aad) &&
               compatible(known.tag, wanted.tag);
    });
    if (part == batch.parts.end()) {
        wanted.only_key = segment.key;
        wanted.many_keys = segment.key >= batch.keys.host.size();
        part = batch.parts.insert(part, std::move(wanted));
    } else {
        part->in = merged(part->in, wanted.in);
        part->out = merged(part->out, wanted.out);
        part->aad = merged(part->aad, wanted.aad);
        part->tag = merged(part->tag, wanted.tag);
        part->many_keys |= part->only_key != segment.key;
    }
    part->items.push_back(item);
    return {};
}

Result<> OpenClDevice::finish_part(GcmPart& part, const Tuning& tuning, GcmSteps steps) {
    const unsigned teams = hash_teams(tuning);
    const unsigned held = values_held(tuning);
    const auto units = static_cast<unsigned>(info_.multiprocessors);
    const GcmPlan plan = plan_gcm(
        part.items, {units, teams, units * tuning.groups * tuning.teams / squad_teams(tuning),
                     tuning.tables > 0 && limits_.local_memory >= kHashMemory});
    if (std::max({plan.hash.size(), plan.ctr.size(), std::size_t{plan.sums}}) >= kNoTarget)
        return Error{Code::limit, "the batch is too large for one call; divide it"};
    const auto put = [&](const auto& list, cl::Buffer& to, std::uint32_t& count) -> Result<> {
        count = static_cast<std::uint32_t>(list.size());
        if (list.empty()) return {};
        auto uploaded = upload(list.data(), list.size() * sizeof list[0]);
        if (!uploaded) return std::move(uploaded).error();
        to = std::move(*uploaded);
        return {};
    };
    const auto find = [&](Kernel*& to, Result<Kernel*> found) -> Result<> {
        if (!found) return std::move(found).error();
        to = *found;
        return {};
    };

    DAEL_TRY(put(part.items, part.list, part.count));
    part.items = {};
    if (steps != GcmSteps::encryption) {
        DAEL_TRY(put(plan.hash, part.hash_tiles, part.hash_count));
        DAEL_TRY(put(plan.divided, part.divided, part.divided_count));
        part.log_blocks = plan.log_blocks;
        auto sums = SecretBuffer::create(**context_, setup_, plan.sums * sizeof(Uint4));
        if (!sums) return std::move(sums).error();
        part.sums = std::move(*sums);
        const std::string table = " -DDAEL_GHASH_TABLE=" + std::to_string(plan.table);
        const auto ghash = [&](const char* entry) {
            return kernel("ghash", entry, 10, false, without_tables(teams), table);
        };
        DAEL_TRY(find(part.hash, ghash("ghash_tiles")));
        if (part.divided_count != 0) DAEL_TRY(find(part.combine, ghash("ghash_combine")));
    }
    if (steps == GcmSteps::all) DAEL_TRY(find(part.tags, tag_kernel("gcm_tags", part.rounds)));
    if (steps == GcmSteps::hashing || plan.ctr.empty()) return {};
    DAEL_TRY(put(plan.ctr, part.ctr_tiles, part.ctr_count));
    return find(part.ctr,
                kernel(held == 0 ? "gcm_ctr" : "gcm_ctr_cached", "gcm_ctr", part.rounds, false,
                       tuning, keyed(part.many_keys) + " -DDAEL_HELD=" + std::to_string(held)));
}

Result<const GcmKeys*> OpenClDevice::keys_for_batch(const core::PreparedKeys& prepared,
                                                    std::size_t count) const {
    const auto* keys = dynamic_cast<const GcmKeys*>(&prepared);
    if (!keys || keys->device != this)
        return Error{Code::invalid_argument, "opencl: the keys were prepared for another device"};
    if (count > 0xfffffffeu)
        return Error{Code::limit, "a batch takes at most 2^32 - 2 messages; divide it"};
    return keys;
}

Result<std::uint32_t*> OpenClDevice::allocate_results(std::size_t count, std::uint8_t value) {
    const std::size_t bytes = count * sizeof(std::uint32_t);
    const auto codes = allocate(bytes);
    if (!codes) return codes.error();
    auto filled = fill(*codes, value, bytes, Stream{setup_()});
    if (filled) filled = wait(Stream{setup_()});
    if (filled) return static_cast<std::uint32_t*>(*codes);
    release(*codes);
    return std::move(filled).error();
}

Result<std::unique_ptr<GcmBatch>> OpenClDevice::make_gcm(const core::PreparedKeys& prepared,
                                                         std::span<const core::GcmSegment> segments,
                                                         GcmSteps steps) {
    const auto keys = keys_for_batch(prepared, segments.size());
    if (!keys) return keys.error();
    auto batch = std::make_unique<GcmBatch>(*this, **keys);
    batch->tuning = tuning();
    if (segments.empty()) return batch;
    batch->tag_size = static_cast<std::uint32_t>(segments[0].tag_size);
    if (batch->tag_size != 0)
        DAEL_TRY(modes::check_tag_size(batch->tag_size));
    else
        steps = GcmSteps::encryption;
    for (std::uint32_t i = 0; i < segments.size(); ++i)
        DAEL_TRY(add_message(*batch, segments[i], i));
    for (GcmPart& part : batch->parts) DAEL_TRY(finish_part(part, batch->tuning, steps));
    if (steps == GcmSteps::hashing) return batch;
    // In counter mode alone nobody writes them again.
    const auto codes = allocate_results(segments.size(), batch->tag_size == 0 ? kAllOk : kNotRun);
    if (!codes) return codes.error();
    batch->codes = *codes;
    batch->codes_size = segments.size() * sizeof(std::uint32_t);
    const auto place = addresses_.find(batch->codes, batch->codes_size);
    if (!place) return place.error();
    batch->codes_place = *place;
    return batch;
}

Result<std::unique_ptr<core::PreparedGcm>> OpenClDevice::prepare_gcm(
    const core::PreparedKeys& keys, std::span<const core::GcmSegment> segments) {
    auto batch = make_gcm(keys, segments, GcmSteps::all);
    if (!batch) return std::move(batch).error();
    return std::unique_ptr<core::PreparedGcm>(std::move(*batch));
}

Result<std::unique_ptr<core::PreparedGcm>> OpenClDevice::prepare_gcm(const core::PreparedKeys&,
                                                                     const GcmMessage*,
                                                                     std::uint32_t, std::size_t) {
    return lists_lie_on_the_host();
}

Result<> OpenClDevice::hash(const GcmBatch& batch, const GcmPart& part, bool opening,
                            const cl::CommandQueue& queue) {
    const unsigned teams = hash_teams(batch.tuning);
    const auto units = static_cast<unsigned>(info_.multiprocessors);
    const auto groups = [&](std::uint32_t wanted) {
        return std::min(wanted, units * batch.tuning.groups);
    };
    DAEL_TRY(launch(batch.ends, *part.hash, queue, groups((part.hash_count + teams - 1) / teams),
                    teams, part.aad.value_or(Place{}),
                    (opening ? part.in : part.out).value_or(Place{}), cl_uint{opening}, part.list,
                    part.hash_tiles, part.hash_count, batch.keys.powers.get(), part.sums.get()));
    if (part.divided_count == 0) return {};
    return launch(batch.ends, *part.combine, queue, groups(part.divided_count), teams, part.list,
                  part.divided, part.divided_count, part.log_blocks, batch.keys.powers.get(),
                  part.sums.get());
}

Result<> OpenClDevice::crypt(const GcmBatch& batch, const GcmPart& part, bool opening,
                             const cl::CommandQueue& queue) {
    if (part.ctr_count == 0) return {};
    RoundKeys key{};
    const core::WipeAtEnd wiper(key);
    if (!part.many_keys)
        std::memcpy(&key, batch.keys.host[part.only_key].schedule().encrypt.data(), sizeof key);
    return launch(batch.ends, *part.ctr, queue, groups_for(part.ctr_count, batch.tuning),
                  batch.tuning.teams, *part.in, *part.out, part.list, part.ctr_tiles,
                  part.ctr_count, batch.keys.schedules.get(), batch.codes_place, cl_uint{opening},
                  Secret{key});
}

Result<> OpenClDevice::gcm(Direction direction, const core::PreparedGcm& prepared, Stream stream) {
    const auto* batch = dynamic_cast<const GcmBatch*>(&prepared);
    if (!batch || &batch->device != this)
        return Error{Code::invalid_argument, "opencl: the batch was prepared for another device"};
    const cl::CommandQueue queue = queue_of(stream);
    const bool opening = direction == Direction::decrypt;
    batch->ends.clear();
    // Not ok until the tag's kernel says so.
    if (batch->tag_size != 0) DAEL_TRY(fill(batch->codes, kNotRun, batch->codes_size, stream));
    for (const GcmPart& part : batch->parts) {
        if (batch->tag_size == 0) {  // there is no tag to wait for
            DAEL_TRY(crypt(*batch, part, false, queue));
            continue;
        }
        if (!opening) DAEL_TRY(crypt(*batch, part, false, queue));
        DAEL_TRY(hash(*batch, part, opening, queue));
        const auto groups = groups_for_items(part.count, batch->tuning);
        DAEL_TRY(launch(batch->ends, *part.tags, queue, groups, 1, *part.tag, part.list, part.count,
                        batch->tag_size, cl_uint{opening}, batch->keys.schedules.get(),
                        batch->keys.powers.get(), part.sums.get(), batch->codes_place));
        if (opening) DAEL_TRY(crypt(*batch, part, true, queue));
    }
    return {};
}

}  // namespace dael::opencl
