// SPDX-License-Identifier: Apache-2.0
// ECB, CBC, CFB, OFB, CTR and XTS under one key: single messages, and batches of them.
#include "backends/cuda/modes/modes.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cuda/device.hpp"
#include "core/key_schedule.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/counter.hpp"

namespace dael::cuda {
namespace {

// Up to this size a thread for each block and one table are sooner done.
constexpr std::size_t kSmallTo = std::size_t{256} << 10;

// Thread blocks that work on the host's memory, of 1024 threads and of the small kernel's 256. More
// ask for more at once than the bus serves well: a kernel that only copies takes 40 and 116 us for
// 1 and 4 MiB there and back with 64 blocks of 256 threads, and 48 and 144 with 528 (an H200).
constexpr unsigned kReachBlocks = 16, kReachSmallBlocks = 64;

bool serial_mode(const Cipher& cipher) {
    return !parallel_within_message(cipher.mode, cipher.direction);
}

bool inverse_cipher(const Cipher& cipher) {
    return cipher.direction == Direction::decrypt &&
           (cipher.mode == Mode::ecb || cipher.mode == Mode::cbc);
}

bool chained(const Cipher& cipher) {
    return cipher.direction == Direction::decrypt &&
           (cipher.mode == Mode::cbc || cipher.mode == Mode::cfb);
}

RoundKeys round_keys(const Cipher& cipher, const Key& key) {
    const core::KeySchedule& schedule = key.schedule();
    RoundKeys keys{};
    std::memcpy(keys.w, inverse_cipher(cipher) ? schedule.decrypt.data() : schedule.encrypt.data(),
                sizeof keys.w);
    return keys;
}

Words4 words(const Block& block) {
    Words4 w;
    std::memcpy(&w, block.data(), sizeof w);
    return w;
}

DeviceSegment device_segment(const Message& m) {
    return {m.in, m.out, m.size, words(m.start), m.skip};
}

Kernel find(const Cipher& cipher, int rounds, const Layout& layout) {
    const int tables = inverse_cipher(cipher) ? layout.inverse : layout.forward;
    const bool decrypt = cipher.direction == Direction::decrypt;
    switch (cipher.mode) {
        case Mode::ecb:
            return ecb_kernel(decrypt, rounds, tables);
        case Mode::cbc:
            return decrypt ? cbc_decrypt_kernel(rounds, tables)
                           : serial_kernel(Serial::cbc_encrypt, rounds, tables);
        case Mode::cfb:
            return decrypt ? cfb_decrypt_kernel(rounds, tables)
                           : serial_kernel(Serial::cfb_encrypt, rounds, tables);
        case Mode::ofb:
            return serial_kernel(Serial::ofb, rounds, tables);
        default:
            return ctr_kernel(rounds, tables);
    }
}

// The parts of a message in CTR in which the counter's low 32 bits do not wrap: each up to 64 GiB.
template <class Use>
Result<> for_each_stretch(const Message& message, Use use) {
    Message stretch = message;
    for (std::uint64_t left = message.size; left != 0; left -= stretch.size) {
        const std::uint64_t blocks = modes::blocks_before_wrap32(stretch.start);
        stretch.size = std::min(left, blocks * kBlockSize - stretch.skip);
        DAEL_TRY(use(stretch));
        if (stretch.in) stretch.in += stretch.size;
        stretch.out += stretch.size;
        stretch.start = modes::counter_add(stretch.start, blocks);
        stretch.skip = 0;
    }
    return {};
}

// Divides the segments' blocks evenly among warps, 32 blocks the smallest share.
std::vector<WarpStart> share_out(const std::vector<DeviceSegment>& list, std::uint64_t units,
                                 std::uint64_t warps) {
    std::vector<WarpStart> starts;
    starts.reserve(warps + 1);
    std::uint32_t segment = 0;
    std::uint64_t units_before = 0;  // in the segments before this one
    for (std::uint64_t warp = 0; warp <= warps; ++warp) {
        const std::uint64_t unit = units * warp / warps;
        while (segment < list.size()) {
            const std::uint64_t units_here = (list[segment].blocks() + 31) / 32;
            if (unit < units_before + units_here) break;
            units_before += units_here;
            ++segment;
        }
        starts.push_back({(unit - units_before) * 32, segment});
    }
    return starts;
}

// A launch for all messages, whose descriptors and shares are in device memory: addresses and IVs,
// no secrets.
class PlainBatch final : public PreparedBatch {
  public:
    using PreparedBatch::PreparedBatch;

    Result<> put(const SetUp& set_up, const core::KeyList& its_keys,
                 std::span<const Message> messages) {
        std::vector<DeviceSegment> list;
        list.reserve(messages.size());
        for (const Message& m : messages) {
            if (m.size == 0) continue;
            synchronise_ |= chained(cipher) && m.in == m.out;
            const auto put = [&](const Message& part) -> Result<> {
                list.push_back(device_segment(part));
                return {};
            };
            DAEL_TRY(makes_keystream(cipher.mode) ? for_each_stretch(m, put) : put(m));
        }
        count_ = static_cast<std::uint32_t>(list.size());
        DAEL_TRY(runs.prepare());
        if (list.empty()) return {};
        key_ = messages.front().key;
        DAEL_TRY(keys->keep(key_, its_keys.list[key_]));

        std::vector<WarpStart> starts;
        if (serial_mode(cipher)) {
            // Lanes of a warp wait for the longest of their messages: put like beside like.
            std::ranges::stable_sort(list, std::greater{}, &DeviceSegment::size);
            grid_ = device.grid_for((list.size() + 31) / 32 * 4);
        } else {
            const auto units = std::accumulate(list.begin(), list.end(), std::uint64_t{0},
                                               [](std::uint64_t sum, const DeviceSegment& s) {
                                                   return sum + (s.blocks() + 31) / 32;
                                               });
            const Kernel kernel = find(cipher, 10, device.layout());  // all sizes share the shape
            grid_ = device.grid_for(units);
            starts = share_out(list, units,
                               std::uint64_t{grid_} * (kernel.shape.threads / kernels::kLanes));
        }
        Places places;
        const std::size_t list_size = list.size() * sizeof list[0],
                          starts_size = starts.size() * sizeof(WarpStart);
        const std::size_t list_at = places.add(list_size), starts_at = places.add(starts_size);
        DAEL_TRY(block.allocate(places.size(), false));
        list_ = reinterpret_cast<const DeviceSegment*>(block.data() + list_at);
        starts_ = reinterpret_cast<const WarpStart*>(block.data() + starts_at);
        DAEL_TRY(set_up.upload(block.data() + list_at, list.data(), list_size));
        return set_up.upload(block.data() + starts_at, starts.data(), starts_size);
    }

  protected:
    Result<> launch(Stream stream) override {
        if (count_ == 0) return {};
        RoundKeys round_keys{};
        const core::WipeAtEnd wiped(round_keys);
        const Kernel kernel = keys->with(key_, [&](const Key& key) {
            round_keys = cuda::round_keys(cipher, key);
            return find(cipher, key.rounds(), device.layout());
        });
        if (serial_mode(cipher)) {
            const SerialWork work{list_, count_};
            return device.launch(kernel, grid_, false, &work, round_keys, stream);
        }
        const BlocksWork work{{}, list_, starts_, synchronise_};
        return device.launch(kernel, grid_, synchronise_, &work, round_keys, stream);
    }

  private:
    std::uint32_t key_ = 0, count_ = 0;
    unsigned grid_ = 0;
    bool synchronise_ = false;
    const DeviceSegment* list_ = nullptr;
    const WarpStart* starts_ = nullptr;
};

// A launch for each message.
class XtsBatch final : public PreparedBatch {
  public:
    using PreparedBatch::PreparedBatch;

    Result<> put(const core::KeyList& its_keys, std::span<const Message> messages) {
        messages_.assign(messages.begin(), messages.end());
        DAEL_TRY(runs.prepare());
        for (const Message& m : messages_) DAEL_TRY(keys->keep(m.key, its_keys.list[m.key]));
        return {};
    }

  protected:
    Result<> launch(Stream stream) override {
        for (const Message& m : messages_)
            DAEL_TRY(keys->with(m.key, [&](const Key& key) {
                return device.run_xts(cipher, key, m, ~0u, stream);
            }));
        return {};
    }

  private:
    std::vector<Message> messages_;
};

}  // namespace

Result<> CudaDevice::run(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                         Stream stream) {
    if (authenticates(cipher.mode))
        return Error{Code::unsupported, "cuda: " + std::string(name(cipher.mode)) +
                                            " takes a batch, of one message too: prepare it"};
    if (message.size == 0) return {};
    const Key& key = keys.list[message.key];
    if (serial_mode(cipher)) return core::sequential_within_message("cuda", cipher);
    const bool small = makes_keystream(cipher.mode) && message.size <= kSmallTo;
    DAEL_TRY(believe(small ? Kind::ctr_small : kind_of(cipher), key.rounds()));
    if (cipher.mode == Mode::xts) return run_xts(cipher, key, message, ~0u, stream);
    if (small) return run_small(key, message, ~0u, stream);
    return run_blocks(cipher, key, message, ~0u, stream);
}

Result<> CudaDevice::run_in_reach(const Cipher& cipher, const core::KeyList& keys,
                                  const Message& message, Stream stream) {
    if (message.size == 0 || serial_mode(cipher)) return run(cipher, keys, message, stream);
    const Key& key = keys.list[message.key];
    DAEL_TRY(
        believe(makes_keystream(cipher.mode) ? Kind::ctr_small : kind_of(cipher), key.rounds()));
    if (cipher.mode == Mode::xts) return run_xts(cipher, key, message, kReachBlocks, stream);
    if (makes_keystream(cipher.mode)) return run_small(key, message, kReachSmallBlocks, stream);
    return run_blocks(cipher, key, message, kReachBlocks, stream);
}

Result<> CudaDevice::run_blocks(const Cipher& cipher, const Key& key, const Message& message,
                                unsigned most, Stream stream) {
    const Kernel kernel = find(cipher, key.rounds(), layout_);
    RoundKeys round_keys = cuda::round_keys(cipher, key);
    const core::WipeAtEnd wiped(round_keys);
    const auto launch_one = [&](const Message& m) {
        const BlocksWork work{device_segment(m), nullptr, nullptr,
                              chained(cipher) && m.in == m.out};
        return launch(kernel, std::min(most, grid_for((work.one.blocks() + 31) / 32)),
                      work.synchronise, &work, round_keys, stream);
    };
    return makes_keystream(cipher.mode) ? for_each_stretch(message, launch_one)
                                        : launch_one(message);
}

Result<> CudaDevice::run_small(const Key& key, const Message& message, unsigned most,
                               Stream stream) {
    const DeviceSegment work = device_segment(message);
    const Kernel kernel = ctr_small_kernel(key.rounds());
    const std::uint64_t threads = kernel.shape.threads;
    const auto grid = static_cast<unsigned>((work.blocks() + threads - 1) / threads);
    RoundKeys round_keys = cuda::round_keys({Mode::ctr}, key);
    const core::WipeAtEnd wiped(round_keys);
    return launch(kernel, std::min(most, grid), false, &work, round_keys, stream);
}

Result<std::unique_ptr<PreparedBatch>> prepare_plain(CudaDevice& device, const Cipher& cipher,
                                                     const core::KeyList& keys,
                                                     const Messages& messages) {
    DAEL_LET(tables, tables_of(keys, device));
    const SetUp set_up(device.index());
    DAEL_TRY(set_up.result());
    const std::span<const Message> list(messages.list, messages.count);
    if (!list.empty()) DAEL_TRY(device.believe(kind_of(cipher), tables->rounds(list.front().key)));
    if (cipher.mode == Mode::xts) {
        auto made = std::make_unique<XtsBatch>(device, tables, cipher);
        DAEL_TRY(made->put(keys, list));
        return std::unique_ptr<PreparedBatch>(std::move(made));
    }
    auto made = std::make_unique<PlainBatch>(device, tables, cipher);
    DAEL_TRY(made->put(set_up, keys, list));
    return std::unique_ptr<PreparedBatch>(std::move(made));
}

}  // namespace dael::cuda
