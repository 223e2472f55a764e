// SPDX-License-Identifier: Apache-2.0
#include "bench/libraries.hpp"

#ifdef DAEL_WITH_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif

namespace dael::bench {

#ifdef DAEL_WITH_IPSEC_MB

namespace {

// Jobs keep lengths in 16 bits where messages share a vector.
constexpr std::uint64_t kLargestJob = 32 << 10;

IMB_CIPHER_MODE cipher_mode(Mode mode) {
    switch (mode) {
        case Mode::ecb:
            return IMB_CIPHER_ECB;
        case Mode::cbc:
            return IMB_CIPHER_CBC;
        case Mode::ctr:
            return IMB_CIPHER_CNTR;
        case Mode::cfb:
        case Mode::ofb:
            break;
    }
    return IMB_CIPHER_NULL;
}

// Null when there is no memory or the machine lacks the level.
IMB_MGR* new_manager(const std::string& isa) {
    IMB_MGR* const manager = alloc_mb_mgr(0);
    if (!manager) return nullptr;
    if (isa == "sse")
        init_mb_mgr_sse(manager);
    else if (isa == "avx2")
        init_mb_mgr_avx2(manager);
    else
        init_mb_mgr_avx512(manager);
    if (imb_get_errno(manager) == 0) return manager;
    free_mb_mgr(manager);
    return nullptr;
}

}  // namespace

struct IpsecMb::State {
    IMB_MGR* manager = nullptr;
    Mode mode{};
    Direction direction{};
    std::uint64_t key_bytes = 0;
    alignas(64) std::uint8_t encrypt_keys[16 * 15];
    alignas(64) std::uint8_t decrypt_keys[16 * 15];

    ~State() {
        if (manager) free_mb_mgr(manager);
    }
    void fill(IMB_JOB& job, const Message& message) const {
        job.cipher_mode = cipher_mode(mode);
        job.cipher_direction = direction == Direction::encrypt ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
        job.chain_order =
            direction == Direction::encrypt ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
        job.hash_alg = IMB_AUTH_NULL;
        job.enc_keys = encrypt_keys;
        job.dec_keys = decrypt_keys;
        job.key_len_in_bytes = key_bytes;
        job.src = message.in;
        job.dst = message.out;
        job.cipher_start_src_offset_in_bytes = 0;
        job.msg_len_to_cipher_in_bytes = message.size;
        job.iv = message.iv.data();
        job.iv_len_in_bytes = takes_iv(mode) ? kBlockSize : 0;
    }
};

IpsecMb::IpsecMb(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
IpsecMb::~IpsecMb() = default;

std::unique_ptr<IpsecMb> IpsecMb::open(const std::string& isa, Mode mode, Direction direction,
                                       const TestKey& key, std::uint64_t size) {
    if (cipher_mode(mode) == IMB_CIPHER_NULL || size > kLargestJob) return nullptr;
    auto state = std::make_unique<State>();
    state->manager = new_manager(isa);
    if (!state->manager) return nullptr;
    state->mode = mode;
    state->direction = direction;
    state->key_bytes = key.bytes().size();
    const auto* raw = key.bytes().data();
    switch (key.key.bits()) {
        case 128:
            IMB_AES_KEYEXP_128(state->manager, raw, state->encrypt_keys, state->decrypt_keys);
            break;
        case 192:
            IMB_AES_KEYEXP_192(state->manager, raw, state->encrypt_keys, state->decrypt_keys);
            break;
        case 256:
            IMB_AES_KEYEXP_256(state->manager, raw, state->encrypt_keys, state->decrypt_keys);
            break;
    }
    return std::unique_ptr<IpsecMb>(new IpsecMb(std::move(state)));
}

Result<> IpsecMb::run(std::span<const Message> messages) {
    IMB_MGR* const manager = state_->manager;
    std::size_t done = 0;
    for (const Message& message : messages) {
        state_->fill(*IMB_GET_NEXT_JOB(manager), message);
        for (const IMB_JOB* job = IMB_SUBMIT_JOB(manager); job;
             job = IMB_GET_COMPLETED_JOB(manager))
            done += job->status == IMB_STATUS_COMPLETED;
    }
    while (const IMB_JOB* job = IMB_FLUSH_JOB(manager)) done += job->status == IMB_STATUS_COMPLETED;
    if (done != messages.size())
        return Error{Code::internal, imb_get_strerror(imb_get_errno(manager))};
    return {};
}

struct IpsecMbGcm::State {
    IMB_MGR* manager = nullptr;
    aes_gcm_enc_dec_t call = nullptr;
    alignas(64) gcm_key_data key;
    gcm_context_data context;

    ~State() {
        if (manager) free_mb_mgr(manager);
    }
};

IpsecMbGcm::IpsecMbGcm(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
IpsecMbGcm::~IpsecMbGcm() = default;

std::unique_ptr<IpsecMbGcm> IpsecMbGcm::open(const std::string& isa, const TestKey& key) {
    auto state = std::make_unique<State>();
    IMB_MGR* const manager = state->manager = new_manager(isa);
    if (!manager) return nullptr;
    const auto* raw = key.bytes().data();
    switch (key.key.bits()) {
        case 128:
            IMB_AES128_GCM_PRE(manager, raw, &state->key);
            state->call = manager->gcm128_enc;
            break;
        case 192:
            IMB_AES192_GCM_PRE(manager, raw, &state->key);
            state->call = manager->gcm192_enc;
            break;
        case 256:
            IMB_AES256_GCM_PRE(manager, raw, &state->key);
            state->call = manager->gcm256_enc;
            break;
    }
    return std::unique_ptr<IpsecMbGcm>(new IpsecMbGcm(std::move(state)));
}

// What the macro IMB_AES128_GCM_ENC stands for.
Result<> IpsecMbGcm::seal(std::span<const GcmMessage> messages) {
    State& s = *state_;
    for (const GcmMessage& m : messages)
        s.call(&s.key, &s.context, m.out, m.in, m.size, m.nonce.data(), m.aad, m.aad_size, m.tag,
               kTagSize);
    return {};
}

#else

struct IpsecMbGcm::State {};
IpsecMbGcm::IpsecMbGcm(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
IpsecMbGcm::~IpsecMbGcm() = default;
std::unique_ptr<IpsecMbGcm> IpsecMbGcm::open(const std::string&, const TestKey&) {
    return nullptr;
}
Result<> IpsecMbGcm::seal(std::span<const GcmMessage>) {
    return Error{Code::unsupported, "this build has no libipsec-mb"};
}

struct IpsecMb::State {};
IpsecMb::IpsecMb(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
IpsecMb::~IpsecMb() = default;
std::unique_ptr<IpsecMb> IpsecMb::open(const std::string&, Mode, Direction, const TestKey&,
                                       std::uint64_t) {
    return nullptr;
}
Result<> IpsecMb::run(std::span<const Message>) {
    return Error{Code::unsupported, "this build has no libipsec-mb"};
}

#endif

}  // namespace dael::bench
