// SPDX-License-Identifier: Apache-2.0
// Kernels: choosing, shaping and launching them. Memory and order are in cuda_memory.cpp.
#include "backends/cuda/cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cuda/cuda_error.hpp"
#include "core/key_schedule.hpp"
#include "modes/counter.hpp"

namespace dael::cuda {
namespace {

using core::Operation;
using core::Segment;

// From this size on, one CTR message goes to the kernel with counter caching, whose set-up pays
// from about one group of 256 blocks for every team of warps.
constexpr std::size_t kStreamFrom = std::size_t{4} << 20;

bool serial_mode(Mode mode, Direction direction) {
    return !parallel_within_message(mode, direction);
}

bool inverse_cipher(Mode mode, Direction direction) {
    return direction == Direction::decrypt && (mode == Mode::ecb || mode == Mode::cbc);
}

RoundKeys round_keys(const Operation& operation) {
    const core::KeySchedule& schedule = operation.key->schedule();
    RoundKeys keys{};
    std::memcpy(keys.w,
                inverse_cipher(operation.mode, operation.direction) ? schedule.decrypt.data()
                                                                    : schedule.encrypt.data(),
                sizeof keys.w);
    return keys;
}

Words4 words(const Block& block) {
    Words4 w;
    std::memcpy(&w, block.data(), sizeof w);
    return w;
}

DeviceSegment device_segment(const Segment& s) {
    return {s.in, s.out, s.size, words(s.iv), s.skip};
}

Kernel find(Mode mode, Direction direction, int rounds, const Layout& layout) {
    const int tables = inverse_cipher(mode, direction) ? layout.inverse : layout.forward;
    switch (mode) {
        case Mode::ecb:
            return ecb_kernel(direction == Direction::decrypt, rounds, tables);
        case Mode::ctr:
            return ctr_kernel(rounds, tables);
        case Mode::ofb:
            return serial_kernel(Serial::ofb, rounds, tables);
        case Mode::cbc:
            return direction == Direction::decrypt
                       ? cbc_decrypt_kernel(rounds, tables)
                       : serial_kernel(Serial::cbc_encrypt, rounds, tables);
        case Mode::cfb:
            return direction == Direction::decrypt
                       ? cfb_decrypt_kernel(rounds, tables)
                       : serial_kernel(Serial::cfb_encrypt, rounds, tables);
    }
    return {};
}

bool chained(Mode mode) {
    return mode == Mode::cbc || mode == Mode::cfb;
}

bool can_stream(const Segment& s) {
    const auto address =
        reinterpret_cast<std::uintptr_t>(s.in) | reinterpret_cast<std::uintptr_t>(s.out);
    return s.size >= kStreamFrom && s.skip == 0 && address % 16 == 0;
}

// "driver API 13.0, runtime 13.0"
std::string driver_versions() {
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    const auto text = [](int v) {
        return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10);
    };
    return "driver API " + text(driver) + ", runtime " + text(runtime);
}

// Descriptors and shares in device memory. Holds addresses and IVs, no secrets.
class Prepared final : public core::PreparedBatch {
  public:
    explicit Prepared(int device) : device_(device) {}
    ~Prepared() override {
        const CurrentDevice current(device_);
        const BesideCaptures beside;
        (void)cudaFree(list);  // once no kernel is under way, as cudaFree does
        (void)cudaFree(starts);
    }
    Mode mode{};
    Direction direction{};
    std::uint32_t count = 0;
    unsigned grid = 0;
    bool synchronise = false;
    DeviceSegment* list = nullptr;
    WarpStart* starts = nullptr;

  private:
    int device_;
};

template <class T>
Result<> upload(const SetUp& set_up, T*& device_memory, const std::vector<T>& items) {
    void* memory = nullptr;
    const std::size_t size = items.size() * sizeof(T);
    DAEL_TRY(checked(cudaMalloc(&memory, size), "cudaMalloc"));
    device_memory = static_cast<T*>(memory);
    return set_up.upload(memory, items.data(), size);
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

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(int index, int tables, bool use_tensor_cores,
                                                     bool later) {
    cudaDeviceProp properties{};
    DAEL_TRY(checked(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties"));
    const Layout layout = layout_for(properties.sharedMemPerBlockOptin, tables ? tables : 4);
    if (tables && layout.forward != tables)
        return Error{Code::invalid_argument,
                     "cuda: tables=" + std::to_string(tables) + " takes " +
                         std::to_string(tables * 32) + " KiB of shared memory, and " +
                         properties.name + " has " +
                         std::to_string(properties.sharedMemPerBlockOptin / 1024) +
                         "; leave it out for all tables that fit"};
    core::DeviceInfo info;
    info.name = properties.name;
    info.architecture = "sm_" + std::to_string(properties.major * 10 + properties.minor);
    info.memory = properties.totalGlobalMem;
    info.multiprocessors = properties.multiProcessorCount;
    info.driver = driver_versions();
    std::unique_ptr<CudaDevice> device(new CudaDevice(
        index, layout, std::move(info), properties.cooperativeLaunch != 0, use_tensor_cores));
    if (!later) DAEL_TRY(device->load(ctr_kernel(10, layout.forward)));
    return device;
}

Result<> CudaDevice::load(const Kernel& kernel) {
    const std::lock_guard lock(mutex_);
    if (loaded_.contains(kernel.function)) return {};
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    const BesideCaptures beside;
    cudaFuncAttributes attributes{};
    const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel.function);
    switch (status) {
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorInvalidDeviceFunction:
        case cudaErrorInvalidKernelImage:
        case cudaErrorUnsupportedPtxVersion:
            (void)cudaGetLastError();
            return Error{Code::backend_absent,
                         "cuda: this build has no code for " + info_.name + ", " +
                             info_.architecture + " (" + cudaGetErrorName(status) +
                             "); it takes a GPU from Turing (sm_75) on, and a build for it: "
                             "DAELSTROM_CUDA_ARCHITECTURES"};
        default:
            DAEL_TRY(checked(status, "cudaFuncGetAttributes"));
    }
    DAEL_TRY(
        checked(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(kernel.shape.dynamic)),
                "cudaFuncSetAttribute"));
    loaded_.insert(kernel.function);
    return {};
}

unsigned CudaDevice::grid_for(std::uint64_t units) const {
    // Few units are spread over many multiprocessors, down to four warps on each.
    const std::uint64_t wanted = std::max<std::uint64_t>(1, (units + 3) / 4);
    return static_cast<unsigned>(std::min<std::uint64_t>(wanted, info_.multiprocessors));
}

Result<> CudaDevice::launch(const Kernel& kernel, unsigned grid, bool cooperative, void** arguments,
                            Stream stream) {
    if (cooperative && !cooperative_)
        return Error{Code::unsupported,
                     "cuda: this GPU cannot decrypt CBC or CFB in place; pass another "
                     "buffer for the output"};
    const CurrentDevice current(index_);
    DAEL_TRY(current.result());
    DAEL_TRY(load(kernel));
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = cooperative;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(grid);
    config.blockDim = dim3(kernel.shape.threads);
    config.dynamicSmemBytes = kernel.shape.dynamic;
    config.stream = static_cast<cudaStream_t>(stream.handle);
    config.attrs = &attribute;
    config.numAttrs = cooperative ? 1 : 0;
    return checked(cudaLaunchKernelExC(&config, kernel.function, arguments), "cudaLaunchKernelExC");
}

Result<> CudaDevice::run(const Operation& operation, const Segment& segment, Stream stream) {
    if (segment.size == 0) return {};
    if (serial_mode(operation.mode, operation.direction))
        return core::sequential_within_message("cuda", operation);
    if (operation.mode == Mode::ctr && can_stream(segment))
        return run_stream(operation, segment, stream);

    BlocksWork work{device_segment(segment), nullptr, nullptr,
                    chained(operation.mode) && segment.in == segment.out};
    const Kernel kernel =
        find(operation.mode, operation.direction, operation.key->rounds(), layout_);
    const unsigned grid = grid_for((work.one.blocks() + 31) / 32);
    RoundKeys keys = round_keys(operation);
    auto result = launch(kernel, grid, work.synchronise, &work, keys, stream);
    wipe(&keys, sizeof keys);
    return result;
}

// A long message in CTR, one launch for each stretch in which the counter's low 32 bits do not wrap
// (64 GiB).
Result<> CudaDevice::run_stream(const Operation& operation, const Segment& segment, Stream stream) {
    const Kernel kernel = ctr_stream_kernel(operation.key->rounds(), layout_.forward);
    RoundKeys keys = round_keys(operation);
    Result<> result;
    Block counter = segment.iv;
    for (std::size_t done = 0; done < segment.size && result;) {
        const std::uint64_t blocks = modes::blocks_before_wrap32(counter);
        const std::size_t size = static_cast<std::size_t>(
            std::min<std::uint64_t>(segment.size - done, blocks * kBlockSize));
        const StreamWork work{segment.in + done, segment.out + done, size, words(counter)};
        const std::uint64_t groups = size / (256 * kBlockSize) + 2;
        result = launch(kernel, grid_for(2 * groups), false, &work, keys, stream);
        counter = modes::counter_add(counter, blocks);
        done += size;
    }
    wipe(&keys, sizeof keys);
    return result;
}

Result<std::unique_ptr<core::PreparedBatch>> CudaDevice::prepare(
    Mode mode, Direction direction, std::span<const Segment> segments) {
    const SetUp set_up(index_);
    DAEL_TRY(set_up.result());
    auto batch = std::make_unique<Prepared>(index_);
    batch->mode = mode;
    batch->direction = direction;

    std::vector<DeviceSegment> list;
    list.reserve(segments.size());
    for (const Segment& segment : segments) {
        if (segment.size == 0) continue;
        list.push_back(device_segment(segment));
        batch->synchronise |=
            chained(mode) && direction == Direction::decrypt && segment.in == segment.out;
    }
    if (list.size() > 0xffffffffu)
        return Error{Code::limit, "a batch takes at most 2^32 - 1 messages; divide it"};
    batch->count = static_cast<std::uint32_t>(list.size());
    if (list.empty()) return std::unique_ptr<core::PreparedBatch>(std::move(batch));

    const Kernel kernel = find(mode, direction, 10, layout_);  // all key sizes share the shape
    if (serial_mode(mode, direction)) {
        // Lanes of a warp wait for the longest of their messages: put like beside like.
        std::stable_sort(list.begin(), list.end(),
                         [](const auto& a, const auto& b) { return a.size > b.size; });
        batch->grid = grid_for((list.size() + 31) / 32 * 4);
    } else {
        const std::uint64_t units = std::accumulate(
            list.begin(), list.end(), std::uint64_t{0},
            [](std::uint64_t sum, const DeviceSegment& s) { return sum + (s.blocks() + 31) / 32; });
        batch->grid = grid_for(units);
        const std::uint64_t warps =
            std::uint64_t{batch->grid} * (kernel.shape.threads / kernels::kLanes);
        DAEL_TRY(upload(set_up, batch->starts, share_out(list, units, warps)));
    }
    DAEL_TRY(upload(set_up, batch->list, list));
    return std::unique_ptr<core::PreparedBatch>(std::move(batch));
}

Result<> CudaDevice::run(const Operation& operation, const core::PreparedBatch& prepared,
                         Stream stream) {
    const auto* batch = dynamic_cast<const Prepared*>(&prepared);
    if (!batch || batch->mode != operation.mode || batch->direction != operation.direction)
        return Error{Code::invalid_argument,
                     "cuda: the batch was prepared for another backend, mode or direction"};
    if (batch->count == 0) return {};
    const Kernel kernel =
        find(operation.mode, operation.direction, operation.key->rounds(), layout_);
    RoundKeys keys = round_keys(operation);
    Result<> result;
    if (serial_mode(operation.mode, operation.direction)) {
        const SerialWork work{batch->list, batch->count};
        result = launch(kernel, batch->grid, false, &work, keys, stream);
    } else {
        const BlocksWork work{{}, batch->list, batch->starts, batch->synchronise};
        result = launch(kernel, batch->grid, batch->synchronise, &work, keys, stream);
    }
    wipe(&keys, sizeof keys);
    return result;
}

}  // namespace dael::cuda
