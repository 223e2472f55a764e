// SPDX-License-Identifier: Apache-2.0
// Ciphers on the device made of threads: OpenSSL's, run where and when a kernel would.
#include <algorithm>
#include <cstring>
#include <utility>

#include <daelstrom/gcm.hpp>

#include "modes/counter.hpp"
#include "modes/traits.hpp"
#include "support/host_device_parts.hpp"

namespace dael::test {
namespace {

bool sequential(const Cipher& cipher) {
    return !parallel_within_message(cipher.mode, cipher.direction);
}

}  // namespace

core::Can HostDeviceBackend::can(const Cipher& cipher, int key_bits) const {
    if (cipher.mode == device_.options().lacks) return {core::Can::no, "use the backend 'auto'"};
    if (cipher.mode == Mode::xts && key_bits == 192)
        return {core::Can::no, "XTS has no AES-192; use another key"};
    if (sequential(cipher)) return {core::Can::batches, "one message alone is sequential"};
    return {};
}

Result<std::unique_ptr<core::KeyTables>> HostDevice::tables(std::span<const Key> keys) {
    DAEL_TRY(attempt("tables"));
    auto tables = std::make_unique<Tables>(*this);
    DAEL_LET(maths, maths_->tables(keys));
    tables->held->maths = std::move(maths);
    for (const Key& key : keys) tables->held->copies.push_back(std::move(*key.duplicate()));
    return std::unique_ptr<core::KeyTables>(std::move(tables));
}

Result<> HostDevice::Tables::replace(std::uint32_t index, const Key& key, Stream stream) {
    DAEL_TRY(device.attempt("replace"));
    auto copy = std::make_shared<Key>(std::move(*key.duplicate()));
    ++held->in_use;
    device.enqueue(stream, {}, [its = held, index, copy] {
        if (!its->maths->replace(index, *copy, {})) its->device.violation("a key was not replaced");
        its->copies[index] = std::move(*copy);
        --its->in_use;
    });
    // As kernels that come after the first do: the key is there, what GHASH needs of it is not.
    auto hashed = device.attempt("replace the hash key");
    if (!hashed) torn = true;
    return hashed;
}

Result<const HostDevice::Tables*> HostDevice::own(const core::KeyList& keys) const {
    const auto* tables = dynamic_cast<const Tables*>(keys.tables);
    if (!tables || &tables->device != this) return core::made_for_another(name(), "keys");
    return tables;
}

Result<std::unique_ptr<core::Pieces>> HostDevice::begin(const Cipher& cipher,
                                                        const core::KeyList& keys,
                                                        std::uint32_t key, const Start& start) {
    DAEL_TRY(attempt("begin"));
    DAEL_LET(tables, own(keys));
    return maths_->begin(cipher, tables->held->keys(), key, start);
}

// Where a message's memory must lie, if it has any.
void HostDevice::check_message(const Cipher& cipher, const Message& m, const std::string& call) {
    const bool reached = call == "run_in_reach";
    if (reached && (m.size > options_.reach || (reinterpret_cast<std::uintptr_t>(m.in) |
                                                reinterpret_cast<std::uintptr_t>(m.out)) %
                                                       kBlockSize !=
                                                   0))
        violation("a message that is out of reach");
    const auto check = [&](const std::uint8_t* bytes, const char* which) {
        if (!bytes || m.size == 0) return;
        if (reached)
            check_pinned_range(bytes, m.size, call + which);
        else
            check_device_range(bytes, m.size, call + which);
    };
    check(m.in, "'s in");
    check(m.out, "'s out");
    if (!authenticates(cipher.mode)) return;
    if (m.aad_size != 0) check_device_range(m.aad, m.aad_size, call + "'s aad");
    check_device_range(m.tag, cipher.tag, call + "'s tag");
}

// What a kernel would make of one valid message. A device verifies before it writes: what does not
// authenticate leaves its output as it was.
Code HostDevice::compute(Cipher cipher, const core::KeyList& keys, Message message) {
    if (cipher.mode == Mode::gcm_ctr) cipher.mode = Mode::ctr;
    std::vector<std::uint8_t> apart;
    std::uint8_t* const out = message.out;
    if (authenticates(cipher.mode)) {
        apart.resize(message.size);
        message.out = apart.data();
    }
    Code code = Code::ok;
    if (!maths_->run(cipher, keys, std::span(&message, 1), std::span(&code, 1))) {
        violation("a kernel failed: " + std::string(dael::name(cipher.mode)));
        return Code::internal;
    }
    if (code == Code::ok)
        std::ranges::copy(apart, out);
    else if ((is_aegis(cipher.mode) || cipher.mode == Mode::gcm_siv) && message.in != out)
        std::memset(out, 0, message.size);  // which decrypt before they know
    return code;
}

// Takes what it needs of the key at the call, as a kernel's parameters do: the caller may drop the
// key as soon as the launch returns.
Result<> HostDevice::run(const Cipher& cipher, const core::KeyList& keys, const Message& message,
                         Stream stream) {
    return run_one(cipher, keys, message, stream, "run");
}

Result<> HostDevice::run_in_reach(const Cipher& cipher, const core::KeyList& keys,
                                  const Message& message, Stream stream) {
    return run_one(cipher, keys, message, stream, "run_in_reach");
}

Result<> HostDevice::run_one(const Cipher& cipher, const core::KeyList& keys,
                             const Message& message, Stream stream, const char* call) {
    DAEL_TRY(attempt(call));
    if (sequential(cipher)) return core::sequential_within_message(name(), cipher);
    if (!modes::takes(cipher, message, keys.list.size()))
        violation(std::string(call) + " of an invalid message");
    check_message(cipher, message, call);
    auto key = std::make_shared<Key>(std::move(*keys.list[message.key].duplicate()));
    Message alone = message;
    alone.key = 0;
    enqueue(stream, {{alone.in, alone.size}, {alone.out, alone.size, true}},
            [this, key, cipher, alone] {
                ++kernels_;
                compute(cipher, {std::span(key.get(), 1), nullptr}, alone);
            });
    return {};
}

Result<> HostDevice::check_host_list(const Cipher& cipher, const Tables& tables,
                                     const Messages& messages) {
    const std::span list(messages.list, messages.count);
    bool one_key = true, wraps = false;
    for (const Message& m : list) {
        if (!modes::takes(cipher, m, tables.held->copies.size()))
            violation("prepare of an invalid message");
        check_message(cipher, m, "prepare");
        one_key = one_key && m.key == list.front().key;
        wraps = wraps || (m.skip + m.size + 15) / 16 > modes::blocks_before_wrap32(m.start);
    }
    const bool takes_keys = authenticates(cipher.mode) || cipher.mode == Mode::gcm_ctr ||
                            (cipher.mode == Mode::ctr && !wraps) ||
                            (cipher.mode == Mode::cbc && modes::encrypts(cipher));
    if (!one_key && !takes_keys)
        return Error{Code::unsupported, name() + ": one key for a batch in this mode"};
    return {};
}

Result<> HostDevice::check_device_list(const Cipher& cipher, const Messages& messages) {
    if (!options_.reads_lists || (!authenticates(cipher.mode) && cipher.mode != Mode::gcm_ctr &&
                                  (cipher.mode != Mode::cbc || !modes::encrypts(cipher))))
        return Error{Code::unsupported, name() + ": no lists in device memory in this mode"};
    check_device_range(messages.list, messages.count * sizeof(Message), "prepare's list");
    if (messages.number)
        check_device_range(messages.number, sizeof *messages.number, "prepare's number");
    if (messages.nonces) {
        check_device_range(messages.nonces, sizeof *messages.nonces, "prepare's nonces");
        if (cipher.mode == Mode::cbc || !modes::encrypts(cipher))
            violation("prepare with nonces that nothing is encrypted under");
    }
    return {};
}

Result<std::unique_ptr<core::Prepared>> HostDevice::prepare(const Cipher& cipher,
                                                            const core::KeyList& keys,
                                                            const Messages& messages) {
    DAEL_TRY(attempt("prepare"));
    DAEL_LET(tables, own(keys));
    const bool on_host = messages.place == Place::host;
    DAEL_TRY(on_host ? check_host_list(cipher, *tables, messages)
                     : check_device_list(cipher, messages));
    auto batch = std::make_shared<HeldBatch>(*this, cipher, messages, tables->held);
    if (on_host) batch->copied.assign(messages.list, messages.list + messages.count);
    if (!on_host || authenticates(cipher.mode)) {
        DAEL_LET(codes, allocate(messages.count * sizeof(std::uint32_t)));
        batch->codes = static_cast<std::uint32_t*>(codes);
        const std::lock_guard lock(mutex_);
        codes_.insert(codes);
    }
    return std::unique_ptr<core::Prepared>(std::make_unique<PreparedBatch>(std::move(batch)));
}

HostDevice::PreparedBatch::~PreparedBatch() {
    const std::lock_guard lock(held->mutex);
    if (held->done != held->launched && held->device.given_up_ == 0)
        held->device.violation("a batch destroyed while it runs");
}

HostDevice::HeldBatch::~HeldBatch() {
    if (codes) {
        std::memset(codes, 0, given.count * sizeof *codes);
        {
            const std::lock_guard lock(device.mutex_);
            device.codes_.erase(codes);
        }
        device.release(codes);
    }
    --device.batches_;
}

Result<> HostDevice::PreparedBatch::outcome() const {
    if (held->device.options_.silent_failures)
        return Error{Code::device, "a kernel of the batch failed"};
    return {};
}

Result<> HostDevice::run(core::Prepared& prepared, Stream stream) {
    DAEL_TRY(attempt("run batch"));
    const auto batch = static_cast<PreparedBatch&>(prepared).held;
    Uses uses{{batch->codes, batch->codes ? batch->given.count * sizeof *batch->codes : 0, true}};
    if (batch->given.place == Place::device)
        uses.push_back({batch->given.list, batch->given.count * sizeof(Message)});
    ++batch->tables->in_use;
    std::uint64_t turn = 0;
    {
        const std::lock_guard lock(batch->mutex);
        turn = batch->launched++;
    }
    try {
        enqueue(stream, std::move(uses), [this, batch, turn] {
            std::unique_lock lock(batch->mutex);
            wait_until(batch->turn, lock, [&] { return batch->done == turn; });
            execute(*batch);
            --batch->tables->in_use;
            ++batch->done;
            batch->turn.notify_all();
        });
    } catch (...) {  // no memory
        const std::lock_guard lock(batch->mutex);
        --batch->launched;
        --batch->tables->in_use;
        throw;
    }
    return {};
}

// All that the caller may drop at once is taken at the call: the list, and AAD of the host's.
Result<> HostDevice::run(const Cipher& cipher, const core::KeyList& keys,
                         std::span<const Message> messages, const LaunchOptions& options,
                         Stream stream) {
    DAEL_TRY(attempt("run list"));
    DAEL_LET(tables, own(keys));
    if (!options_.reads_lists) return core::Device::run(cipher, keys, messages, options, stream);
    if (messages.size() > kMaxLaunched) violation("run of a list that is too long");
    auto list = std::make_shared<std::vector<Message>>(messages.begin(), messages.end());
    auto aad = std::make_shared<std::vector<std::vector<std::uint8_t>>>();
    for (Message& m : *list) {
        if (!modes::takes(cipher, m, tables->held->copies.size()))
            violation("run of an invalid message");
        if (options.host_aad) {
            aad->emplace_back(m.aad, m.aad + m.aad_size);
            m.aad = nullptr;
        }
        Message where = m;
        if (options.host_aad) where.aad_size = 0;
        check_message(cipher, where, "run list");
        if (options.host_aad) m.aad = aad->back().data();
    }
    if (options.codes && !is_pinned(options.codes, messages.size() * sizeof *options.codes))
        check_device_range(options.codes, messages.size() * sizeof *options.codes, "codes");
    ++tables->held->lent;
    try {
        enqueue(stream, {}, [this, list, aad, cipher, its = tables->held, codes = options.codes] {
            ++kernels_;
            for (std::size_t i = 0; i < list->size(); ++i) {
                const Code code = compute(cipher, its->keys(), (*list)[i]);
                if (codes) codes[i] = static_cast<std::uint32_t>(code);
            }
            --its->lent;
        });
    } catch (...) {  // no memory
        --tables->held->lent;
        throw;
    }
    return {};
}

void HostDevice::execute(HeldBatch& batch) {
    ++kernels_;
    const bool on_host = batch.given.place == Place::host;
    std::uint32_t count = batch.given.count;
    if (batch.given.number) count = std::min(count, *batch.given.number);
    const Message* const list = on_host ? batch.copied.data() : batch.given.list;
    if (DeviceNonces* const nonces = batch.given.nonces) {
        for (std::uint32_t i = 0; i < count; ++i, ++nonces->next) {
            gcm::Nonce nonce;
            std::ranges::copy(nonces->fixed, nonce.begin());
            for (std::size_t b = 0; b < 8; ++b)
                nonce[4 + b] = static_cast<std::uint8_t>(nonces->next >> (56 - 8 * b));
            Message& message = const_cast<Message&>(list[i]);
            gcm::set_start(message, nonce.data());
            if (is_aegis(batch.cipher.mode)) message.start[15] = 0, message.start_rest = {};
        }
    }
    const core::KeyList keys = batch.tables->keys();
    const auto longer = [most = batch.given.longest](const Message& m) {
        return most != 0 && (m.size > most || m.aad_size > most - m.size);
    };
    for (std::uint32_t i = 0; i < count; ++i) {
        Code code = longer(list[i]) ? Code::limit
                                    : modes::check(batch.cipher, list[i], keys.list.size()).code();
        if (code == Code::ok) {
            if (!on_host) check_message(batch.cipher, list[i], "a message of a list");
            code = compute(batch.cipher, keys, list[i]);
        }
        if (batch.codes) batch.codes[i] = static_cast<std::uint32_t>(code);
    }
}

}  // namespace dael::test
