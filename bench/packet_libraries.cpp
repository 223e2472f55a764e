// SPDX-License-Identifier: Apache-2.0
// What packets are sealed with where no keystream is there: other libraries, each called as one who
// knows it would, and batches of this one.
#include <openssl/evp.h>

#include <cstring>

#include <daelstrom/gcm.hpp>

#include "bench/packets.hpp"

#ifdef DAEL_WITH_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif
#ifdef DAEL_WITH_TOMCRYPT
#include <daelstrom_tomcrypt.h>
#include <tomcrypt.h>
#endif

namespace dael::bench {
namespace {

constexpr std::size_t kTagBytes = 16;

// The packet's IV, counted, and its nonce.
gcm::Nonce count_iv(const SaPacket& packet, std::uint64_t& next) noexcept {
    gcm::Nonce nonce;
    std::memcpy(nonce.data(), kSalt.data(), kSalt.size());
    const std::uint64_t number = next++;
    for (std::size_t i = 0; i < 8; ++i) nonce[11 - i] = static_cast<std::uint8_t>(number >> 8 * i);
    std::memcpy(packet.iv, nonce.data() + kSalt.size(), 8);
    return nonce;
}

[[maybe_unused]] Error absent(const std::string& what) {
    return {Code::unsupported, what};
}

}  // namespace

Result<Sealer> memcpy_sealer() {
    return Sealer{"memcpy", [](std::span<const SaPacket> packets) -> Result<> {
                      for (const SaPacket& packet : packets)
                          std::memcpy(packet.out, packet.in, packet.size);
                      return {};
                  }};
}

Result<Sealer> evp_sealer(std::span<const std::uint8_t> key) {
    const std::shared_ptr<EVP_CIPHER_CTX> context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    const auto* cipher =
        EVP_get_cipherbyname(("AES-" + std::to_string(key.size() * 8) + "-GCM").c_str());
    if (!context || EVP_EncryptInit_ex(context.get(), cipher, nullptr, key.data(), nullptr) != 1)
        return Error{Code::internal, "OpenSSL: EVP_EncryptInit_ex failed"};
    return Sealer{
        "OpenSSL EVP",
        [context, next = std::uint64_t{1}](std::span<const SaPacket> packets) mutable -> Result<> {
            EVP_CIPHER_CTX* const c = context.get();
            for (const SaPacket& packet : packets) {
                const auto nonce = count_iv(packet, next);
                int size = 0;
                if (EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, nonce.data()) != 1 ||
                    EVP_EncryptUpdate(c, nullptr, &size, packet.aad,
                                      static_cast<int>(packet.aad_size)) != 1 ||
                    EVP_EncryptUpdate(c, packet.out, &size, packet.in,
                                      static_cast<int>(packet.size)) != 1 ||
                    EVP_EncryptFinal_ex(c, packet.out + size, &size) != 1 ||
                    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, kTagBytes, packet.tag) != 1)
                    return Error{Code::internal, "OpenSSL: a packet failed"};
            }
            return {};
        }};
}

#ifdef DAEL_WITH_IPSEC_MB

namespace {

struct Imb {
    std::shared_ptr<IMB_MGR> manager{alloc_mb_mgr(0), free_mb_mgr};
    aes_gcm_enc_dec_t seal = nullptr;
    alignas(64) gcm_key_data key;
    gcm_context_data context;
    std::uint64_t key_size = 0, next = 1;

    explicit Imb(std::span<const std::uint8_t> raw) : key_size(raw.size()) {
        IMB_MGR& m = *manager;
        init_mb_mgr_auto(&m, nullptr);
        (raw.size() == 16   ? m.gcm128_pre
         : raw.size() == 24 ? m.gcm192_pre
                            : m.gcm256_pre)(raw.data(), &key);
        seal = raw.size() == 16 ? m.gcm128_enc : raw.size() == 24 ? m.gcm192_enc : m.gcm256_enc;
    }

    void one_by_one(std::span<const SaPacket> packets) {
        for (const SaPacket& packet : packets) {
            const auto nonce = count_iv(packet, next);
            seal(&key, &context, packet.out, packet.in, packet.size, nonce.data(), packet.aad,
                 packet.aad_size, packet.tag, kTagBytes);
        }
    }

    Result<> burst(std::span<const SaPacket> packets) {
        IMB_MGR* const m = manager.get();
        std::array<IMB_JOB*, kBurst> jobs{};
        std::array<gcm::Nonce, kBurst> nonces;
        const auto count = static_cast<std::uint32_t>(packets.size());
        if (IMB_GET_NEXT_BURST(m, count, jobs.data()) != count) return failed();
        for (std::size_t i = 0; i < count; ++i) {
            const SaPacket& packet = packets[i];
            nonces[i] = count_iv(packet, next);
            IMB_JOB& job = *jobs[i];
            job.cipher_mode = IMB_CIPHER_GCM;
            job.cipher_direction = IMB_DIR_ENCRYPT;
            job.chain_order = IMB_ORDER_CIPHER_HASH;
            job.hash_alg = IMB_AUTH_AES_GMAC;
            job.enc_keys = &key;
            job.dec_keys = &key;
            job.key_len_in_bytes = key_size;
            job.src = packet.in;
            job.dst = packet.out;
            job.cipher_start_src_offset_in_bytes = 0;
            job.msg_len_to_cipher_in_bytes = packet.size;
            job.hash_start_src_offset_in_bytes = 0;
            job.msg_len_to_hash_in_bytes = packet.size;
            job.iv = nonces[i].data();
            job.iv_len_in_bytes = nonces[i].size();
            job.auth_tag_output = packet.tag;
            job.auth_tag_output_len_in_bytes = kTagBytes;
            job.u.GCM.aad = packet.aad;
            job.u.GCM.aad_len_in_bytes = packet.aad_size;
        }
        if (IMB_SUBMIT_BURST(m, count, jobs.data()) != count) return failed();
        return {};
    }

    Error failed() const {
        return {Code::internal,
                "libipsec-mb: " + std::string(imb_get_strerror(imb_get_errno(manager.get())))};
    }
};

}  // namespace

Result<Sealer> ipsec_mb_sealer(std::span<const std::uint8_t> key, bool bursts) {
    const auto imb = std::make_shared<Imb>(key);
    if (bursts)
        return Sealer{"libipsec-mb, bursts",
                      [imb](std::span<const SaPacket> packets) { return imb->burst(packets); }};
    return Sealer{"libipsec-mb", [imb](std::span<const SaPacket> packets) -> Result<> {
                      imb->one_by_one(packets);
                      return {};
                  }};
}

#else

Result<Sealer> ipsec_mb_sealer(std::span<const std::uint8_t>, bool) {
    return absent("this build has no libipsec-mb");
}

#endif

#ifdef DAEL_WITH_TOMCRYPT

namespace {

// Plain, it is at its best with one state, whose tables (64 KiB) are made once.
struct PlainTomCrypt {
    struct Free {
        void operator()(gcm_state* state) const noexcept { std::free(state); }
    };
    std::unique_ptr<gcm_state, Free> state{
        static_cast<gcm_state*>(std::aligned_alloc(16, (sizeof(gcm_state) + 15) / 16 * 16))};
    std::uint64_t next = 1;

    int seal(const SaPacket& packet) {
        const auto nonce = count_iv(packet, next);
        unsigned long tag = kTagBytes;
        int error = gcm_reset(state.get());
        if (!error) error = gcm_add_iv(state.get(), nonce.data(), nonce.size());
        if (!error) error = gcm_add_aad(state.get(), packet.aad, packet.aad_size);
        if (!error)
            error = gcm_process(state.get(), const_cast<std::uint8_t*>(packet.in), packet.size,
                                packet.out, GCM_ENCRYPT);
        return error ? error : gcm_done(state.get(), packet.tag, &tag);
    }
};

Error tomcrypt_failed(int error) {
    return {Code::internal, "LibTomCrypt: " + std::string(error_to_string(error))};
}

}  // namespace

Result<Sealer> tomcrypt_sealer(std::span<const std::uint8_t> key, bool plugged) {
    if (plugged) {
        const int index = daelstrom_tomcrypt_register();
        if (index < 0) return Error{Code::internal, "LibTomCrypt's table of ciphers is full"};
        return Sealer{
            "LibTomCrypt with the plug-in",
            [index, raw = std::vector(key.begin(), key.end()),
             next = std::uint64_t{1}](std::span<const SaPacket> packets) mutable -> Result<> {
                for (const SaPacket& packet : packets) {
                    const auto nonce = count_iv(packet, next);
                    unsigned long tag = kTagBytes;
                    if (const int error = gcm_memory(
                            index, raw.data(), raw.size(), nonce.data(), nonce.size(), packet.aad,
                            packet.aad_size, const_cast<std::uint8_t*>(packet.in), packet.size,
                            packet.out, packet.tag, &tag, GCM_ENCRYPT))
                        return tomcrypt_failed(error);
                }
                return {};
            }};
    }
    // Beside the plug-in, under an ID of its own.
    ltc_cipher_descriptor plain = aes_desc;
    plain.name = "plain aes";
    plain.ID = 200;
    const int index = register_cipher(&plain);
    const auto tomcrypt = std::make_shared<PlainTomCrypt>();
    if (index < 0 || !tomcrypt->state)
        return Error{Code::internal, "LibTomCrypt: no place or no memory"};
    if (const int error =
            gcm_init(tomcrypt->state.get(), index, key.data(), static_cast<int>(key.size())))
        return tomcrypt_failed(error);
    return Sealer{"LibTomCrypt", [tomcrypt](std::span<const SaPacket> packets) -> Result<> {
                      for (const SaPacket& packet : packets)
                          if (const int error = tomcrypt->seal(packet))
                              return tomcrypt_failed(error);
                      return {};
                  }};
}

#else

Result<Sealer> tomcrypt_sealer(std::span<const std::uint8_t>, bool) {
    return absent("this build has no LibTomCrypt (Debian: libtomcrypt-dev)");
}

#endif

Result<Sealer> batch_sealer(std::span<const std::uint8_t> raw) {
    struct HostBatch {
        Engine engine;
        KeySet keys;
        std::vector<Message> messages;
        std::vector<Code> codes;
        std::uint64_t next = 1;
    };
    auto opened = Engine::open({.backend = "cpu", .threads = 1});
    if (!opened) opened = Engine::open({.backend = "openssl", .threads = 1});
    if (!opened) return std::move(opened).error();
    DAEL_LET(key, Key::import(raw));
    DAEL_LET(keys, opened->keys({&key, 1}));
    const auto batch =
        std::make_shared<HostBatch>(HostBatch{std::move(*opened), std::move(keys), {}, {}, 1});
    return Sealer{"daelstrom, batches", [batch](std::span<const SaPacket> packets) -> Result<> {
                      HostBatch& b = *batch;
                      b.messages.resize(packets.size());
                      b.codes.resize(packets.size());
                      for (std::size_t i = 0; i < packets.size(); ++i) {
                          const SaPacket& packet = packets[i];
                          b.messages[i] = {.in = packet.in,
                                           .out = packet.out,
                                           .size = packet.size,
                                           .aad = packet.aad,
                                           .aad_size = packet.aad_size,
                                           .tag = packet.tag,
                                           .start = gcm::start(count_iv(packet, b.next))};
                      }
                      DAEL_TRY(b.engine.run(gcm::sealing(), b.keys, b.messages, b.codes));
                      for (const Code code : b.codes)
                          if (code != Code::ok) return Error{code, "a packet of the batch failed"};
                      return {};
                  }};
}

}  // namespace dael::bench
