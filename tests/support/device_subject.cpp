// SPDX-License-Identifier: Apache-2.0
#include "support/device_subject.hpp"

#include "modes/gcm.hpp"
#include "modes/segment.hpp"
#include "modes/xts.hpp"

namespace dael::test {
namespace {

constexpr std::size_t kAlignment = 256;  // what device allocations have
constexpr std::size_t kGuard = 64;

// Frees device memory when a test's call ends, whichever way.
class DeviceBuffer {
  public:
    DeviceBuffer(core::Device& device, void* memory) : device_(device), memory_(memory) {}
    ~DeviceBuffer() { device_.release(memory_); }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;
    std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory_); }

  private:
    core::Device& device_;
    void* memory_;
};

class DeviceSubject final : public Subject {
  public:
    explicit DeviceSubject(std::unique_ptr<core::Backend> backend)
        : backend_(std::move(backend)), device_(*backend_->device()) {}

    bool supports(Mode, Direction, std::size_t) const override { return true; }

    Result<> run(const Key& key, Mode mode, Direction direction,
                 std::span<const Message> messages) override {
        for (const Message& message : messages)  // what only the host's addresses show: overlaps
            DAEL_TRY(modes::check(mode, message));
        return on_device(messages, [&](std::span<const Message> moved) -> Result<> {
            std::vector<core::Segment> segments;
            for (const Message& message : moved) {
                DAEL_TRY(modes::check(mode, message));
                segments.push_back(modes::to_segment(message));
            }
            return launch({mode, direction, &key}, segments);
        });
    }
    bool supports_xts() const override { return true; }
    Result<> xts(const XtsKey& key, Direction direction, const XtsSectors& sectors, HostIn in,
                 HostOut out) override {
        DAEL_TRY(modes::check(sectors, in.data(), out.data(), in.size()));
        const Message message{in.data(), out.data(), in.size(), {}, 0};
        return on_device(std::span(&message, 1), [&](std::span<const Message> moved) -> Result<> {
            const Message& m = moved.front();
            DAEL_TRY(modes::check(sectors, m.in, m.out, m.size));
            return device_.xts({direction, &key, sectors.size},
                               modes::to_segment(sectors, m.in, m.out, m.size), {});
        });
    }

    Result<> gcm(Direction direction, std::span<const Key> keys,
                 std::span<const core::GcmSegment> messages, std::span<Code> results) override {
        for (const auto& message : messages) DAEL_TRY(modes::check(message, keys.size()));
        std::size_t end = 0;
        const auto place = [&end](const std::uint8_t* host, std::size_t size) {
            const std::size_t at = (end + kGuard + kAlignment - 1) / kAlignment * kAlignment +
                                   reinterpret_cast<std::uintptr_t>(host) % 16;
            end = at + size + kGuard;
            return at;
        };
        struct Places {
            std::size_t in, out, aad, tag;
        };
        std::vector<Places> places;
        for (const auto& m : messages) {
            const std::size_t in = place(m.in, m.size);
            places.push_back({in, m.in == m.out ? in : place(m.out, m.size),
                              place(m.aad, m.aad_size), place(m.tag, m.tag_size)});
        }
        Bytes image(end, Poisoned::kPoison);
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const auto& m = messages[i];
            std::copy_n(m.in, m.size, image.data() + places[i].in);
            std::copy_n(m.aad, m.aad_size, image.data() + places[i].aad);
            std::copy_n(m.tag, m.tag_size, image.data() + places[i].tag);
        }
        auto memory = device_.allocate(std::max<std::size_t>(end, 1));
        if (!memory) return std::move(memory).error();
        const DeviceBuffer buffer(device_, *memory);
        DAEL_TRY(device_.copy_in(buffer.data(), image.data(), end, {}));
        std::vector<core::GcmSegment> moved(messages.begin(), messages.end());
        for (std::size_t i = 0; i < moved.size(); ++i) {
            moved[i].in = buffer.data() + places[i].in;
            moved[i].out = buffer.data() + places[i].out;
            moved[i].aad = buffer.data() + places[i].aad;
            moved[i].tag = buffer.data() + places[i].tag;
        }
        const auto prepared = device_.prepare_keys(keys);
        if (!prepared) return prepared.error();
        const auto batch = device_.prepare_gcm(**prepared, moved);
        if (!batch) return batch.error();
        DAEL_TRY(device_.gcm(direction, **batch, {}));
        std::vector<std::uint32_t> codes(messages.size());
        DAEL_TRY(device_.copy_out(codes.data(), (*batch)->results(), codes.size() * 4, {}));
        Bytes after(end);
        DAEL_TRY(device_.copy_out(after.data(), buffer.data(), end, {}));
        DAEL_TRY(device_.wait(Stream{}));
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const auto& m = messages[i];
            const auto take = [&](std::size_t at, std::size_t size, std::uint8_t* to) {
                std::copy_n(after.data() + at, size, to);
                std::copy_n(after.data() + at, size, image.data() + at);  // for the comparison
            };
            results[i] = static_cast<Code>(codes[i]);
            take(places[i].out, m.size, m.out);
            if (direction == Direction::encrypt) take(places[i].tag, m.tag_size, m.tag);
        }
        if (const auto stray = difference(image, after); !stray.empty())
            return Error{Code::internal, "the device wrote outside of the output: " + stray};
        return {};
    }

  private:
    // Takes the messages to device memory, calls `work` with where they lie there, and brings the
    // outputs back. Nothing else may have changed.
    template <class Work>
    Result<> on_device(std::span<const Message> messages, Work work) {
        // Where each message's input and output lie in one piece of device memory.
        std::vector<std::size_t> in_at, out_at;
        std::size_t end = 0;
        const auto place = [&end](const std::uint8_t* host, std::size_t size) {
            const std::size_t at = (end + kGuard + kAlignment - 1) / kAlignment * kAlignment +
                                   reinterpret_cast<std::uintptr_t>(host) % 16;
            end = at + size + kGuard;
            return at;
        };
        for (const Message& message : messages) {
            in_at.push_back(place(message.in, message.size));
            out_at.push_back(message.in == message.out ? in_at.back()
                                                       : place(message.out, message.size));
        }
        Bytes image(end, Poisoned::kPoison);
        for (std::size_t i = 0; i < messages.size(); ++i)
            std::copy_n(messages[i].in, messages[i].size, image.data() + in_at[i]);

        auto memory = device_.allocate(std::max<std::size_t>(end, 1));
        if (!memory) return std::move(memory).error();
        const DeviceBuffer buffer(device_, *memory);
        DAEL_TRY(device_.copy_in(buffer.data(), image.data(), end, {}));
        std::vector<Message> moved(messages.begin(), messages.end());
        for (std::size_t i = 0; i < messages.size(); ++i) {
            moved[i].in = buffer.data() + in_at[i];
            moved[i].out = buffer.data() + out_at[i];
        }
        DAEL_TRY(work(moved));

        Bytes after(end);
        DAEL_TRY(device_.copy_out(after.data(), buffer.data(), end, {}));
        DAEL_TRY(device_.wait(Stream{}));
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const auto* result = after.data() + out_at[i];
            std::copy_n(result, messages[i].size, messages[i].out);
            std::copy_n(result, messages[i].size, image.data() + out_at[i]);  // for the comparison
        }
        if (const auto stray = difference(image, after); !stray.empty())
            return Error{Code::internal, "the device wrote outside of the output: " + stray};
        return {};
    }

    Result<> launch(const core::Operation& operation, std::span<const core::Segment> segments) {
        if (segments.size() == 1 && parallel_within_message(operation.mode, operation.direction))
            return device_.run(operation, segments[0], {});
        auto batch = device_.prepare(operation.mode, operation.direction, segments);
        if (!batch) return std::move(batch).error();
        DAEL_TRY(device_.run(operation, **batch, {}));
        return device_.wait(Stream{});  // the batch must outlive its work
    }

    std::unique_ptr<core::Backend> backend_;
    core::Device& device_;
};

}  // namespace

std::unique_ptr<Subject> device_subject(std::unique_ptr<core::Backend> backend) {
    return std::make_unique<DeviceSubject>(std::move(backend));
}

}  // namespace dael::test
