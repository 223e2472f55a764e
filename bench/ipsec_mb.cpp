// SPDX-License-Identifier: Apache-2.0
#include "bench/libraries.hpp"

#ifdef DAEL_WITH_IPSEC_MB
#include <intel-ipsec-mb.h>

#include <daelstrom/gcm.hpp>
#endif

namespace dael::bench {

#ifdef DAEL_WITH_IPSEC_MB

namespace {

// Jobs keep lengths in 16 bits where messages share a vector.
constexpr std::uint64_t kLargestJob = 32 << 10;

IMB_CIPHER_MODE cipher_mode(Mode mode) {
    return mode == Mode::ecb   ? IMB_CIPHER_ECB
           : mode == Mode::cbc ? IMB_CIPHER_CBC
           : mode == Mode::ctr ? IMB_CIPHER_CNTR
                               : IMB_CIPHER_NULL;
}

// Null when there is no memory or the machine lacks the level.
std::shared_ptr<IMB_MGR> new_manager(const std::string& level) {
    std::shared_ptr<IMB_MGR> manager(alloc_mb_mgr(0), [](IMB_MGR* m) {
        if (m) free_mb_mgr(m);
    });
    if (!manager) return nullptr;
    if (level == "sse")
        init_mb_mgr_sse(manager.get());
    else if (level == "avx2")
        init_mb_mgr_avx2(manager.get());
    else
        init_mb_mgr_avx512(manager.get());
    return imb_get_errno(manager.get()) == 0 ? manager : nullptr;
}

struct Jobs {
    std::shared_ptr<IMB_MGR> manager;
    Cipher cipher;
    std::uint64_t key_size = 0;
    alignas(64) std::uint8_t encrypt_keys[16 * 15];
    alignas(64) std::uint8_t decrypt_keys[16 * 15];

    void expand(std::span<const std::uint8_t> key) {
        key_size = key.size();
        const auto expand = key_size == 16   ? manager->keyexp_128
                            : key_size == 24 ? manager->keyexp_192
                                             : manager->keyexp_256;
        expand(key.data(), encrypt_keys, decrypt_keys);
    }

    void fill(IMB_JOB& job, const Message& message) const {
        const bool encrypts = cipher.direction == Direction::encrypt;
        job.cipher_mode = cipher_mode(cipher.mode);
        job.cipher_direction = encrypts ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
        job.chain_order = encrypts ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
        job.hash_alg = IMB_AUTH_NULL;
        job.enc_keys = encrypt_keys;
        job.dec_keys = decrypt_keys;
        job.key_len_in_bytes = key_size;
        job.src = message.in;
        job.dst = message.out;
        job.cipher_start_src_offset_in_bytes = 0;
        job.msg_len_to_cipher_in_bytes = message.size;
        job.iv = message.start.data();
        job.iv_len_in_bytes = takes_iv(cipher.mode) ? kBlockSize : 0;
    }

    Result<> run(std::span<const Message> messages) const {
        IMB_MGR* const m = manager.get();
        std::size_t done = 0;
        for (const Message& message : messages) {
            fill(*IMB_GET_NEXT_JOB(m), message);
            for (const IMB_JOB* job = IMB_SUBMIT_JOB(m); job; job = IMB_GET_COMPLETED_JOB(m))
                done += job->status == IMB_STATUS_COMPLETED;
        }
        while (const IMB_JOB* job = IMB_FLUSH_JOB(m)) done += job->status == IMB_STATUS_COMPLETED;
        if (done != messages.size())
            return Error{Code::internal, imb_get_strerror(imb_get_errno(m))};
        return {};
    }
};

struct Gcm {
    std::shared_ptr<IMB_MGR> manager;
    aes_gcm_enc_dec_t call = nullptr;
    alignas(64) gcm_key_data key;
    gcm_context_data context;

    void expand(std::span<const std::uint8_t> raw) {
        const IMB_MGR& m = *manager;
        const auto make_ready = raw.size() == 16   ? m.gcm128_pre
                                : raw.size() == 24 ? m.gcm192_pre
                                                   : m.gcm256_pre;
        make_ready(raw.data(), &key);
        call = raw.size() == 16 ? m.gcm128_enc : raw.size() == 24 ? m.gcm192_enc : m.gcm256_enc;
    }

    // What the macro IMB_AES128_GCM_ENC stands for.
    Result<> seal(std::span<const Message> messages) {
        for (const Message& m : messages)
            call(&key, &context, m.out, m.in, m.size, m.start.data(), m.aad, m.aad_size, m.tag,
                 gcm::kTagSize);
        return {};
    }
};

}  // namespace

Call ipsec_mb(const std::string& level, const Work& work) {
    const bool seals = work.is(Mode::gcm) && work.cipher.direction == Direction::encrypt;
    if (!seals && (cipher_mode(work.cipher.mode) == IMB_CIPHER_NULL || work.size > kLargestJob))
        return {};
    auto manager = new_manager(level);
    if (!manager) return {};
    const auto key = key_bytes(work);
    if (seals) {
        const auto gcm = std::make_shared<Gcm>();
        gcm->manager = std::move(manager);
        gcm->expand(key);
        return [gcm](std::span<const Message> messages) { return gcm->seal(messages); };
    }
    const auto jobs = std::make_shared<Jobs>();
    jobs->manager = std::move(manager);
    jobs->cipher = work.cipher;
    jobs->expand(key);
    return [jobs](std::span<const Message> messages) { return jobs->run(messages); };
}

#else

Call ipsec_mb(const std::string&, const Work&) {
    return {};
}

#endif

}  // namespace dael::bench
