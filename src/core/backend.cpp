// SPDX-License-Identifier: Apache-2.0
// What a backend answers for what it does not have.
#include "core/device.hpp"

namespace dael::core {
namespace {

Error without_gcm(std::string_view name) {
    return {Code::unsupported, std::string(name) +
                                   ": this backend has no GCM for data in this memory; use the "
                                   "backend 'auto' or 'openssl', or 'cuda' on a GPU"};
}

Error without_keyed_cbc(std::string_view name) {
    return {Code::unsupported, std::string(name) +
                                   ": this device has no CBC encryption with a key for each "
                                   "message; use the backend 'auto' on data in host memory"};
}

Error without_xts(std::string_view name) {
    return {Code::unsupported, std::string(name) +
                                   ": this backend has no XTS for data in this memory; use the "
                                   "backend 'auto' or 'openssl', or 'cuda' on a GPU"};
}

}  // namespace

Error opened_before_fork(std::string_view name) {
    return {Code::device, std::string(name) +
                              ": opened before fork(), and of no use after it; use this backend in "
                              "the child alone, or after exec()"};
}

Error sequential_within_message(std::string_view name, const Operation& operation) {
    return {Code::unsupported,
            std::string(name) + ": " + std::string(dael::name(operation.mode)) + " " +
                std::string(dael::name(operation.direction)) +
                "ion is sequential within a message; give many messages as a batch, or use a CPU "
                "backend"};
}

Result<std::unique_ptr<PreparedKeys>> Backend::prepare_keys(std::span<const Key>) {
    return without_gcm(name());
}

Result<> Backend::gcm(Direction, const PreparedKeys&, std::span<const GcmSegment>,
                      std::span<Code>) {
    return without_gcm(name());
}

Result<std::unique_ptr<GcmStream>> Backend::gcm_stream(Direction, const PreparedKeys&,
                                                       std::uint32_t,
                                                       std::span<const std::uint8_t>) {
    return without_gcm(name());
}

Result<> Backend::xts(const XtsOperation&, const Segment&) {
    return without_xts(name());
}

Result<> Device::use_shape(const std::string& shape) {
    return Error{
        Code::invalid_argument,
        info().name + ": this device's kernels have no other shape, such as '" + shape + "'"};
}

namespace {
Error named_by_address(const DeviceInfo& info) {
    return {Code::unsupported,
            info.name + ": this device's memory is named by its address; nothing is to be adopted"};
}
}  // namespace

Result<DeviceOut> Device::adopt(void*) {
    return named_by_address(info());
}
Result<> Device::adopt_shared(void*, std::size_t) {
    return named_by_address(info());
}
Result<> Device::forget(const void*) {
    return named_by_address(info());
}
Result<Stream> Device::adopt_queue(void*) {
    return named_by_address(info());
}

Result<std::unique_ptr<PreparedKeys>> Device::prepare_keys(std::span<const Key>) {
    return without_gcm(info().name);
}

Result<std::unique_ptr<PreparedGcm>> Device::prepare_gcm(const PreparedKeys&,
                                                         std::span<const GcmSegment>) {
    return without_gcm(info().name);
}

Result<std::unique_ptr<PreparedGcm>> Device::prepare_gcm(const PreparedKeys&, const GcmMessage*,
                                                         std::uint32_t, std::size_t) {
    return without_gcm(info().name);
}

Result<std::unique_ptr<GcmStream>> Device::gcm_stream(Direction, const PreparedKeys&, std::uint32_t,
                                                      std::span<const std::uint8_t>) {
    return without_gcm(info().name);
}

Result<> Device::gcm(Direction, const PreparedGcm&, Stream) {
    return without_gcm(info().name);
}

Result<std::unique_ptr<PreparedKeyed>> Device::prepare_cbc_encrypt(const PreparedKeys&,
                                                                   std::span<const KeyedMessage>) {
    return without_keyed_cbc(info().name);
}

Result<std::unique_ptr<PreparedKeyed>> Device::prepare_cbc_encrypt(const PreparedKeys&,
                                                                   const KeyedMessage*,
                                                                   std::uint32_t) {
    return without_keyed_cbc(info().name);
}

Result<> Device::cbc_encrypt(const PreparedKeyed&, Stream) {
    return without_keyed_cbc(info().name);
}

Result<> Device::xts(const XtsOperation&, const Segment&, Stream) {
    return without_xts(info().name);
}

}  // namespace dael::core
