// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/aead.hpp"

#include <algorithm>

#include "modes/aegis.hpp"

namespace dael::opencl {
namespace {

// Work-items of a group exchange blocks in local memory beside the tables: one each, and a team's
// key schedule and what it tells.
constexpr unsigned kMostTeams = 16;
// A state is some 100 registers. Measured on an H200, 1 KiB in AEGIS-128L: 8 teams make 443 GB/s of
// 65,536 messages and 532 of 262,144, 16 make 298 and 519, 4 make 423 and 486.
constexpr unsigned kMostAegisTeams = 8;
constexpr std::size_t kTeamBlocks = 15 + 1;

// A work-group to a message pays from so many blocks for each of its items on.
constexpr unsigned kWideRows = 4;

std::uint64_t blocks_of(const AeadItem& item) {
    return (item.size + item.aad_size) / kBlockSize;
}

// The number of rounds of the mode's one key size; 0 where it has several.
int fixed_rounds(Mode mode) {
    switch (mode) {
        case Mode::aegis256:
        case Mode::xaes256gcm:
            return 14;
        case Mode::aegis128l:
        case Mode::aegis128x2:
        case Mode::aegis128x4:
            return 10;
        default:
            return 0;
    }
}

}  // namespace

Result<std::unique_ptr<AeadBatch>> AeadBatch::create(OpenClDevice& device, const OpenClKeys& keys,
                                                     const Cipher& cipher,
                                                     std::span<const Message> messages) {
    std::unique_ptr<AeadBatch> batch(new AeadBatch(device, keys, cipher, device.tuning()));
    if (messages.size() > 0xfffffffeu)
        return Error{Code::limit, "a batch takes at most 2^32 - 2 messages; divide it"};
    for (std::uint32_t i = 0; i < messages.size(); ++i) DAEL_TRY(batch->add(messages[i], i));
    for (Part& part : batch->parts_) DAEL_TRY(batch->finish(part));
    if (!messages.empty()) DAEL_TRY(batch->make_results(messages.size()));
    return batch;
}

AeadBatch::~AeadBatch() {
    (void)ends.wait();
    if (codes_) device.memory().release(codes_);
}

Result<> AeadBatch::add(const Message& message, std::uint32_t result) {
    AeadItem item{};
    item.size = message.size;
    item.aad_size = message.aad_size;
    item.start = to_uint4(message.start);
    item.rest = to_uint4(message.start_rest);
    item.key = message.key;
    item.result = result;
    item.in_place = message.in == message.out;
    Buffers buffers;
    const OpenClMemory& memory = device.memory();
    DAEL_TRY(find_part(memory, message.in, message.size, buffers.in, item.in));
    DAEL_TRY(find_part(memory, message.out, message.size, buffers.out, item.out));
    DAEL_TRY(find_part(memory, message.aad, message.aad_size, buffers.aad, item.aad));
    DAEL_TRY(find_part(memory, message.tag, cipher.tag, buffers.tag, item.tag));
    auto part =
        std::ranges::find_if(parts_, [&](const Part& known) { return known.buffers.fit(buffers); });
    if (part == parts_.end())
        part = parts_.insert(part, Part{.buffers = std::move(buffers), .only_key = item.key});
    else
        part->buffers.add(buffers);
    part->many_keys |= part->only_key != item.key;
    part->items.push_back(item);
    return {};
}

Result<> AeadBatch::finish(Part& part) {
    // Items wait for those beside them, whose messages may be longer: put like beside like.
    std::ranges::stable_sort(part.items, std::ranges::greater{}, blocks_of);
    const auto longer = part.items.begin() + static_cast<std::ptrdiff_t>(count_wide(part));
    part.lists[wide].items.assign(part.items.begin(), longer);
    part.lists[narrow].items.assign(longer, part.items.end());
    part.items = {};
    for (List& list : part.lists) {
        list.count = static_cast<std::uint32_t>(list.items.size());
        if (list.count == 0) continue;
        DAEL_LET(uploaded, device.memory().upload(list.items.data(),
                                                  list.items.size() * sizeof list.items[0]));
        list.buffer = std::move(uploaded);
        list.items = {};
    }
    return find_kernels(part);
}

Result<> AeadBatch::find_kernels(const Part& part) {
    for (const int rounds : rounds_of(part))
        for (const Width width : {narrow, wide})
            if (part.lists[width].count != 0) DAEL_TRY(kernel(rounds, width));
    return {};
}

// How many of the messages, the longest, a work-group takes: those that would keep a team busy for
// longer than all teams are with the batch.
std::size_t AeadBatch::count_wide(const Part& part) const {
    if (is_aegis(cipher.mode)) return 0;
    if (const auto* asked = Programs::variant_asked())
        return asked->divided ? part.items.size() : 0;
    std::uint64_t all = 0;
    for (const AeadItem& item : part.items) all += blocks_of(item);
    const unsigned teams = shape().teams;
    const std::uint64_t mean =
        all / (std::uint64_t{device.compute_units()} * tuning.groups * teams);
    const std::uint64_t most =
        std::max<std::uint64_t>(2 * mean, std::uint64_t{kWideRows} * kLanes * teams);
    std::size_t count = 0;
    while (count < part.items.size() && blocks_of(part.items[count]) > most) ++count;
    return count;
}

// As many tables as fit beside what the kernels exchange.
Tuning AeadBatch::shape() const {
    Tuning made = tuning;
    made.teams = std::min(made.teams, is_aegis(cipher.mode) ? kMostAegisTeams : kMostTeams);
    const std::size_t items = std::size_t{made.teams} * kLanes;
    std::size_t others = 0;
    if (!is_aegis(cipher.mode))
        others = (items + made.teams * kTeamBlocks) * kBlockSize;
    else if (dael::aegis::degree(cipher.mode) > 1)
        others = items * kBlockSize;
    Limits left = device.limits();
    left.local_memory -= std::min(left.local_memory, others);
    made.tables = tables_that_fit(made.tables, left);
    return made;
}

Result<Kernel*> AeadBatch::kernel(int rounds, Width width) {
    const auto macro = [](const char* name, auto value) {
        return std::string(" -DDAEL_") + name + '=' + std::to_string(value);
    };
    std::string macros = macro("AUTHENTICATION", static_cast<int>(Code::authentication)) +
                         macro("INTERNAL", static_cast<int>(Code::internal));
    if (is_aegis(cipher.mode))
        return device.kernel("aegis", "aegis", rounds, false, shape(),
                             macros + macro("DEGREE", dael::aegis::degree(cipher.mode)));
    macros += macro("KEYED", 2) + macro("SIV", cipher.mode == Mode::gcm_siv) +
              macro("WIDE", width == wide);
    return device.kernel("derived", "derived", rounds, false, shape(), macros);
}

unsigned AeadBatch::groups(std::uint32_t messages, Width width) const {
    const Tuning made = shape();
    if (is_aegis(cipher.mode))
        return device.groups_for_items(messages * dael::aegis::degree(cipher.mode), made);
    return width == wide ? std::min(messages, device.compute_units() * made.groups)
                         : device.groups_for(messages, made);
}

Result<> AeadBatch::make_results(std::size_t count) {
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

// The numbers of rounds that there are among the part's keys now.
std::vector<int> AeadBatch::rounds_of(const Part& part) const {
    if (const int one = fixed_rounds(cipher.mode)) return {one};
    std::vector<int> rounds =
        part.many_keys ? keys.all_rounds() : std::vector{keys.rounds(part.only_key)};
    // A key of 192 bits may have been put in the place of another; any kernel says that of it.
    std::erase(rounds, 12);
    if (rounds.empty()) rounds.push_back(10);
    return rounds;
}

Result<> AeadBatch::launch(const cl::CommandQueue& queue) {
    // What can fail comes before the first launch.
    for (const Part& part : parts_) {
        for (const int rounds : rounds_of(part))
            for (const Width width : {narrow, wide})
                if (part.lists[width].count != 0)
                    DAEL_TRY(device.believe(cipher, rounds,
                                            {.tuning = tuning,
                                             .batch = true,
                                             .keys = part.many_keys,
                                             .divided = width == wide}));
        DAEL_TRY(find_kernels(part));
    }
    // Not ok until a kernel says so.
    if (codes_) DAEL_TRY(device.memory().fill(codes_, kNotRun, codes_size_, Stream{queue()}));
    const bool opens = cipher.direction == Direction::decrypt;
    for (const Part& part : parts_)
        for (const int rounds : rounds_of(part))
            for (const Width width : {wide, narrow}) {
                const List& list = part.lists[width];
                if (list.count == 0) continue;
                DAEL_LET(found, kernel(rounds, width));
                DAEL_TRY(device.launch(&ends, *found, queue, groups(list.count, width),
                                       shape().teams, part.buffers.in.value_or(Region{}),
                                       part.buffers.out.value_or(Region{}),
                                       part.buffers.aad.value_or(Region{}), *part.buffers.tag,
                                       list.buffer, list.count, cl_uint{cipher.tag}, cl_uint{opens},
                                       keys.schedules(), keys.powers(), codes_region_));
            }
    return {};
}

}  // namespace dael::opencl
