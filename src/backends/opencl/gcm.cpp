// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/gcm.hpp"

#include <algorithm>

#include "backends/opencl/kept.hpp"

namespace dael::opencl {
namespace {

// Teams of a work-group that hashes, and what its table and their exchange take.
constexpr unsigned kMaxHashTeams = 16;
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
    return std::min(tuning.teams, kMaxHashTeams);
}

std::string keyed(bool many_keys) {
    return " -DDAEL_KEYED=" + std::to_string(many_keys);
}

}  // namespace

Result<Kernel*> KernelsByRounds::of(int rounds) {
    Kernel*& known = found_[static_cast<std::size_t>(rounds - 10) / 2];
    if (!known) {
        DAEL_LET(kernel, find_(rounds));
        known = kernel;
    }
    return known;
}

Result<Kernel*> OpenClDevice::tag_kernel(const std::string& entry, int rounds) {
    const auto refused = std::to_string(static_cast<int>(Code::authentication));
    return kernel("gcm_tag", entry, rounds, false, without_tables(1),
                  keyed(true) + " -DDAEL_AUTHENTICATION=" + refused);
}

Result<std::unique_ptr<core::Prepared>> OpenClDevice::prepare_gcm(
    const Cipher& cipher, const OpenClKeys& keys, std::span<const Message> messages) {
    const bool tags = authenticates(cipher.mode);
    DAEL_LET(batch, GcmBatch::create(*this, keys, cipher, messages,
                                     tags ? GcmSteps::all : GcmSteps::encryption));
    return std::unique_ptr<core::Prepared>(std::move(batch));
}

Result<std::unique_ptr<GcmBatch>> GcmBatch::create(OpenClDevice& device, const OpenClKeys& keys,
                                                   const Cipher& cipher,
                                                   std::span<const Message> messages,
                                                   GcmSteps steps) {
    std::unique_ptr<GcmBatch> batch(new GcmBatch(device, keys, cipher, device.tuning()));
    if (messages.size() > 0xfffffffeu)
        return Error{Code::limit, "a batch takes at most 2^32 - 2 messages; divide it"};
    for (std::uint32_t i = 0; i < messages.size(); ++i) DAEL_TRY(batch->add(messages[i], i, steps));
    for (GcmPart& part : batch->parts_) DAEL_TRY(batch->finish(part, steps));
    if (messages.empty()) return batch;
    if (steps == GcmSteps::all) {
        DAEL_TRY(batch->make_results(messages.size()));
    } else if (steps == GcmSteps::encryption) {
        // One that no message waits for: compilers may read it all the same.
        const std::uint32_t none = 0;
        DAEL_LET(buffer, device.memory().upload(&none, sizeof none));
        batch->codes_region_.buffer = std::move(buffer);
    }
    return batch;
}

GcmBatch::~GcmBatch() {
    if (!ends.wait()) keep_sums();  // which are not wiped before
    if (codes_) device.memory().release(codes_);
}

void GcmBatch::keep_sums() noexcept try {
    std::vector<Ends> until{ends};
    std::vector<SecretBuffer> sums(parts_.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = std::move(parts_[i].sums);
    keep(std::move(until), std::move(sums));
} catch (...) {
    for (GcmPart& part : parts_) part.sums.lose();
}

Result<> GcmBatch::add(const Message& message, std::uint32_t result, GcmSteps steps) {
    if (steps == GcmSteps::encryption && message.size == 0) return {};
    GcmItem item{};
    item.size = message.size;
    item.aad_size = message.aad_size;
    item.key = message.key;
    item.result = steps == GcmSteps::all ? result : 0;
    item.skip = message.skip;
    GcmPart wanted;
    Buffers& buffers = wanted.buffers;
    const OpenClMemory& memory = device.memory();
    // Where there is no input, nothing is read in its place.
    wanted.keystream = message.size != 0 && message.in == nullptr;
    DAEL_TRY(find_part(memory, message.out, message.size, buffers.out, item.out));
    DAEL_TRY(find_part(memory, wanted.keystream ? message.out : message.in, message.size,
                       buffers.in, item.in));
    DAEL_TRY(find_part(memory, message.aad, message.aad_size, buffers.aad, item.aad));
    if (steps == GcmSteps::all)
        DAEL_TRY(find_part(memory, message.tag, cipher.tag, buffers.tag, item.tag));
    item.counter = to_uint4(message.start);
    // Kernels begin after J0; without a tag the start is the first counter itself.
    if (steps == GcmSteps::encryption)
        item.counter.w[3] = kernels::byte_swap(kernels::byte_swap(item.counter.w[3]) - 1);

    auto part = std::ranges::find_if(parts_, [&](const GcmPart& known) {
        return known.keystream == wanted.keystream && known.buffers.fit(buffers);
    });
    if (part == parts_.end()) {
        wanted.only_key = message.key;
        part = parts_.insert(part, std::move(wanted));
    } else {
        part->buffers.add(buffers);
        part->many_keys |= part->only_key != message.key;
    }
    part->items.push_back(item);
    return {};
}

Result<> GcmBatch::finish(GcmPart& part, GcmSteps steps) {
    const unsigned teams = hash_teams(tuning);
    const unsigned units = device.compute_units();
    const auto* const asked = Programs::variant_asked();
    const bool has_table = tuning.tables > 0 && device.limits().local_memory >= kHashMemory;
    const GcmPlan plan = plan_gcm(
        part.items, {units, teams, units * tuning.groups * tuning.teams / squad_teams(tuning),
                     asked ? asked->table : has_table, asked && asked->table});
    if (std::max({plan.hash.size(), plan.ctr.size(), std::size_t{plan.sums}}) >= kNoTarget)
        return Error{Code::limit, "the batch is too large for one call; divide it"};
    const auto put = [&](const auto& list, cl::Buffer& to, std::uint32_t& count) -> Result<> {
        count = static_cast<std::uint32_t>(list.size());
        if (list.empty()) return {};
        DAEL_LET(uploaded, device.memory().upload(list.data(), list.size() * sizeof list[0]));
        to = std::move(uploaded);
        return {};
    };

    DAEL_TRY(put(part.items, part.list, part.count));
    part.items = {};
    if (steps != GcmSteps::encryption) {
        DAEL_TRY(put(plan.hash, part.hash_tiles, part.hash_count));
        DAEL_TRY(put(plan.divided, part.divided, part.divided_count));
        part.log_blocks = plan.log_blocks;
        part.table = plan.table;
        DAEL_LET(sums, SecretBuffer::create(device.context(), device.order().setup(),
                                            plan.sums * sizeof(Uint4)));
        part.sums = std::move(sums);
        const std::string table = " -DDAEL_GHASH_TABLE=" + std::to_string(plan.table);
        const auto ghash = [&](const char* entry) {
            return device.kernel("ghash", entry, 10, false, without_tables(teams), table);
        };
        DAEL_LET(tiles, ghash("ghash_tiles"));
        part.hash = tiles;
        if (part.divided_count != 0) {
            DAEL_LET(combine, ghash("ghash_combine"));
            part.combine = combine;
        }
    }
    if (steps != GcmSteps::hashing && !plan.ctr.empty()) {
        DAEL_TRY(put(plan.ctr, part.ctr_tiles, part.ctr_count));
        const unsigned held = values_held(tuning);
        const std::string macros = keyed(part.many_keys) + " -DDAEL_HELD=" + std::to_string(held) +
                                   " -DDAEL_KEYSTREAM=" + std::to_string(part.keystream);
        part.ctr = KernelsByRounds([this, held, macros](int rounds) {
            return device.kernel(held == 0 ? "gcm_ctr" : "gcm_ctr_cached", "gcm_ctr", rounds, false,
                                 tuning, macros);
        });
    }
    if (steps == GcmSteps::all)
        part.tags =
            KernelsByRounds([this](int rounds) { return device.tag_kernel("gcm_tags", rounds); });
    return find_kernels(part);
}

// For keys of the sizes that there are now.
Result<> GcmBatch::find_kernels(GcmPart& part) {
    for (const int rounds : rounds_of(part)) {
        if (part.ctr_count != 0) DAEL_TRY(part.ctr.of(rounds));
        if (part.tags) DAEL_TRY(part.tags.of(rounds));
    }
    return {};
}

Result<> GcmBatch::make_results(std::size_t count) {
    codes_size_ = count * sizeof(std::uint32_t);
    DAEL_LET(memory, device.memory().allocate(codes_size_));
    codes_ = static_cast<std::uint32_t*>(memory);
    const Stream setup{device.order().setup()()};
    DAEL_TRY(device.memory().fill(codes_, kNotRun, codes_size_, setup));
    DAEL_TRY(device.order().wait(setup));
    DAEL_LET(region, device.memory().find(codes_, codes_size_));
    codes_region_ = std::move(region);
    return {};
}

// The numbers of rounds that there are among the part's keys now; of several keys perhaps more.
std::vector<int> GcmBatch::rounds_of(const GcmPart& part) const {
    if (part.many_keys) return keys.all_rounds();
    return {keys.rounds(part.only_key)};
}

Result<> GcmBatch::hash(const GcmPart& part, const cl::CommandQueue& queue) {
    const unsigned teams = hash_teams(tuning);
    const auto groups = [&](std::uint32_t wanted) {
        return std::min(wanted, device.compute_units() * tuning.groups);
    };
    DAEL_TRY(device.launch(&ends, *part.hash, queue, groups((part.hash_count + teams - 1) / teams),
                           teams, part.buffers.aad.value_or(Region{}),
                           (opens() ? part.buffers.in : part.buffers.out).value_or(Region{}),
                           cl_uint{opens()}, part.list, part.hash_tiles, part.hash_count,
                           keys.powers(), part.sums.get()));
    if (part.divided_count == 0) return {};
    return device.launch(&ends, *part.combine, queue, groups(part.divided_count), teams, part.list,
                         part.divided, part.divided_count, part.log_blocks, keys.powers(),
                         part.sums.get());
}

Result<> GcmBatch::crypt(GcmPart& part, const cl::CommandQueue& queue) {
    if (part.ctr_count == 0) return {};
    const KeyArgument key = keys.argument(part.only_key, false);  // read where there is one only
    for (const int rounds : part.many_keys ? keys.all_rounds() : std::vector<int>{key.rounds}) {
        DAEL_LET(kernel, part.ctr.of(rounds));
        DAEL_TRY(device.launch(&ends, *kernel, queue, device.groups_for(part.ctr_count, tuning),
                               tuning.teams, *part.buffers.in, *part.buffers.out, part.list,
                               part.ctr_tiles, part.ctr_count, keys.schedules(), codes_region_,
                               cl_uint{opens()}, Secret{key.data}));
    }
    return {};
}

Result<> GcmBatch::tags(GcmPart& part, const cl::CommandQueue& queue) {
    for (const int rounds : rounds_of(part)) {
        DAEL_LET(kernel, part.tags.of(rounds));
        DAEL_TRY(device.launch(&ends, *kernel, queue, device.groups_for_items(part.count, tuning),
                               1, *part.buffers.tag, part.list, part.count, cl_uint{cipher.tag},
                               cl_uint{opens()}, keys.schedules(), keys.powers(), part.sums.get(),
                               codes_region_));
    }
    return {};
}

Result<> GcmBatch::believe(const GcmPart& part) {
    for (const int rounds : rounds_of(part))
        DAEL_TRY(device.believe(cipher, rounds,
                                {.tuning = tuning,
                                 .batch = true,
                                 .keys = part.many_keys,
                                 .keystream = part.keystream,
                                 .table = part.table,
                                 .divided = part.divided_count != 0}));
    return {};
}

Result<> GcmBatch::launch(const cl::CommandQueue& queue) {
    // What can fail comes before the first launch.
    for (GcmPart& part : parts_) {
        DAEL_TRY(believe(part));
        DAEL_TRY(find_kernels(part));
    }
    // Not ok until the tag's kernel says so.
    if (codes_) DAEL_TRY(device.memory().fill(codes_, kNotRun, codes_size_, Stream{queue()}));
    for (GcmPart& part : parts_) {
        if (!codes_) {  // there is no tag to wait for
            DAEL_TRY(crypt(part, queue));
            continue;
        }
        if (!opens()) DAEL_TRY(crypt(part, queue));
        DAEL_TRY(hash(part, queue));
        DAEL_TRY(tags(part, queue));
        if (opens()) DAEL_TRY(crypt(part, queue));
    }
    return {};
}

Result<> GcmBatch::hash_only(const cl::CommandQueue& queue) {
    const std::lock_guard lock(mutex);
    DAEL_TRY(believe(parts_.front()));
    DAEL_TRY(ends.begin(queue));
    return hash(parts_.front(), queue);
}

}  // namespace dael::opencl
