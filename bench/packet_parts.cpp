// SPDX-License-Identifier: Apache-2.0
// Where the time of a packet goes (the thesis' figures 4.5 and 4.6): each part by itself, on the
// same bytes in the first cache. What is left between the parts and the whole is what joins them.
#include <openssl/evp.h>

#include <cstring>

#include <daelstrom/ctr.hpp>
#include <daelstrom/gcm.hpp>

#include "bench/packets.hpp"

#ifdef DAEL_WITH_IPSEC_MB
#include <intel-ipsec-mb.h>
#endif
#ifdef DAEL_WITH_TOMCRYPT
#include <tomcrypt.h>
#endif

namespace dael::bench {
namespace {

using measure::Heat;

constexpr std::size_t kPartsOf = 1024;
// GCM hashes a block of AAD, the data and a block of lengths, and encrypts a block for the tag.
constexpr std::size_t kHashed = 16 + kPartsOf + 16;

// Work on memory of its own: `packets` packets a pass.
struct Part {
    std::string name;
    std::function<Result<>(std::size_t packet)> work;
    std::function<Result<>()> check;
};

struct Scratch {
    measure::HostBuffer in, keystream, out;
    std::array<std::uint8_t, 16> hash{};
    std::vector<std::uint8_t> key;

    std::uint8_t* at(const measure::HostBuffer& buffer, std::size_t packet) const {
        return buffer.data() + packet * kHashed;
    }
};
constexpr std::size_t kPackets = kHotPackets / kPartsOf;

// As wide as the processor's registers, or several of them.
using Vector = std::uint64_t __attribute__((vector_size(64)));

// One call of EVP, without padding or tag.
Result<> evp(const std::string& name, std::span<const std::uint8_t> key, const std::uint8_t* iv,
             const std::uint8_t* aad, std::size_t aad_size, const std::uint8_t* in,
             std::size_t size, std::uint8_t* out, std::uint8_t* tag) {
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
        EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
    const auto* cipher =
        EVP_get_cipherbyname(("AES-" + std::to_string(key.size() * 8) + "-" + name).c_str());
    int some = 0;
    Block rest;
    bool done = context && EVP_EncryptInit_ex(context.get(), cipher, nullptr, key.data(), iv) == 1;
    if (done && aad)
        done =
            EVP_EncryptUpdate(context.get(), nullptr, &some, aad, static_cast<int>(aad_size)) == 1;
    if (done && in)
        done = EVP_EncryptUpdate(context.get(), out, &some, in, static_cast<int>(size)) == 1;
    if (done && tag)
        done = EVP_EncryptFinal_ex(context.get(), rest.data(), &some) == 1 &&
               EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
    if (!done) return Error{Code::internal, "OpenSSL: " + name + " failed"};
    return {};
}

// GHASH of the first packet: GMAC over it, less the mask of its tag (SP 800-38D 7.1). GMAC hashes
// the block of lengths behind it, so the packet's last block is that.
Result<std::array<std::uint8_t, 16>> ghash(const Scratch& scratch) {
    std::array<std::uint8_t, 16> tag, mask;
    Block j0{};
    j0[15] = 1;
    const std::array<std::uint8_t, 12> nonce{};
    DAEL_TRY(evp("GCM", scratch.key, nonce.data(), scratch.in.data(), kHashed - 16, nullptr, 0,
                 nullptr, tag.data()));
    DAEL_TRY(evp("ECB", scratch.key, nullptr, nullptr, 0, j0.data(), 16, mask.data(), nullptr));
    for (std::size_t i = 0; i < 16; ++i) tag[i] ^= mask[i];
    return tag;
}

Error wrong(const std::string& who) {
    return {Code::internal, who + ": not what OpenSSL makes; the figure would be worthless"};
}

void add_plain_parts(std::vector<Part>& parts, const std::shared_ptr<Scratch>& s) {
    parts.push_back({"memcpy",
                     [s](std::size_t i) -> Result<> {
                         std::memcpy(s->at(s->out, i), s->at(s->in, i), kPartsOf);
                         return {};
                     },
                     [s]() -> Result<> {
                         if (std::memcmp(s->out.data(), s->in.data(), kPartsOf) != 0)
                             return wrong("memcpy");
                         return {};
                     }});
    parts.push_back({"XOR with keystream",
                     [s](std::size_t i) -> Result<> {
                         for (std::size_t k = 0; k < kPartsOf; k += sizeof(Vector)) {
                             Vector data, mask;
                             std::memcpy(&data, s->at(s->in, i) + k, sizeof data);
                             std::memcpy(&mask, s->at(s->keystream, i) + k, sizeof mask);
                             data ^= mask;
                             std::memcpy(s->at(s->out, i) + k, &data, sizeof data);
                         }
                         return {};
                     },
                     [s]() -> Result<> {
                         for (std::size_t k = 0; k < kPartsOf; ++k)
                             if ((s->in.data()[k] ^ s->keystream.data()[k]) != s->out.data()[k])
                                 return wrong("XOR");
                         return {};
                     }});
}

#ifdef DAEL_WITH_IPSEC_MB
void add_ipsec_mb_parts(std::vector<Part>& parts, const std::shared_ptr<Scratch>& s) {
    struct Imb {
        std::shared_ptr<IMB_MGR> manager{alloc_mb_mgr(0), free_mb_mgr};
        alignas(64) gcm_key_data key;
        alignas(64) std::uint8_t encrypts[16 * 15], decrypts[16 * 15];
        Block iv{};
    };
    const auto imb = std::make_shared<Imb>();
    IMB_MGR& m = *imb->manager;
    init_mb_mgr_auto(&m, nullptr);
    const bool small = s->key.size() == 16;
    (small ? m.gcm128_pre : m.gcm256_pre)(s->key.data(), &imb->key);
    (small ? m.keyexp_128 : m.keyexp_256)(s->key.data(), imb->encrypts, imb->decrypts);
    parts.push_back({"GHASH, libipsec-mb",
                     [imb, s](std::size_t i) -> Result<> {
                         s->hash = {};
                         imb->manager->ghash(&imb->key, s->at(s->in, i), kHashed, s->hash.data(),
                                             s->hash.size());
                         return {};
                     },
                     [s]() -> Result<> {
                         DAEL_LET(right, ghash(*s));
                         if (s->hash != right) return wrong("GHASH, libipsec-mb");
                         return {};
                     }});
    parts.push_back({"AES-CTR, libipsec-mb",
                     [imb, s](std::size_t i) -> Result<> {
                         IMB_JOB job{};
                         job.enc_keys = imb->encrypts;
                         job.dec_keys = imb->decrypts;
                         job.key_len_in_bytes = s->key.size();
                         job.cipher_mode = IMB_CIPHER_CNTR;
                         job.cipher_direction = IMB_DIR_ENCRYPT;
                         job.src = s->at(s->in, i);
                         job.dst = s->at(s->out, i);
                         job.msg_len_to_cipher_in_bytes = kPartsOf + 16;  // with the tag's mask
                         job.iv = imb->iv.data();
                         job.iv_len_in_bytes = imb->iv.size();
                         if (IMB_SUBMIT_CIPHER_BURST_NOCHECK(
                                 imb->manager.get(), &job, 1, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT,
                                 static_cast<IMB_KEY_SIZE_BYTES>(s->key.size())) != 1)
                             return Error{Code::internal, "libipsec-mb: AES-CTR failed"};
                         return {};
                     },
                     [imb, s]() -> Result<> {
                         std::vector<std::uint8_t> right(kPartsOf + 16);
                         DAEL_TRY(evp("CTR", s->key, imb->iv.data(), nullptr, 0, s->in.data(),
                                      right.size(), right.data(), nullptr));
                         if (std::memcmp(right.data(), s->out.data(), right.size()) != 0)
                             return wrong("AES-CTR, libipsec-mb");
                         return {};
                     }});
}
#else
void add_ipsec_mb_parts(std::vector<Part>&, const std::shared_ptr<Scratch>&) {}
#endif

#ifdef DAEL_WITH_TOMCRYPT
void add_tomcrypt_parts(std::vector<Part>& parts, const std::shared_ptr<Scratch>& s) {
    struct Tom {
        std::shared_ptr<gcm_state> state{
            static_cast<gcm_state*>(std::aligned_alloc(16, (sizeof(gcm_state) + 15) / 16 * 16)),
            std::free};
        symmetric_key key;
    };
    const auto tom = std::make_shared<Tom>();
    const int index = find_cipher("plain aes");  // of the contestant in the first benchmark
    if (index < 0 || !tom->state) return;
    gcm_init(tom->state.get(), index, s->key.data(), static_cast<int>(s->key.size()));
    aes_desc.setup(s->key.data(), static_cast<int>(s->key.size()), 0, &tom->key);
    parts.push_back({"GHASH, LibTomCrypt",
                     [tom, s](std::size_t i) -> Result<> {
                         s->hash = {};
                         for (std::size_t at = 0; at < kHashed; at += 16) {
                             for (std::size_t k = 0; k < 16; ++k)
                                 s->hash[k] ^= s->at(s->in, i)[at + k];
                             gcm_mult_h(tom->state.get(), s->hash.data());
                         }
                         return {};
                     },
                     [s]() -> Result<> {
                         DAEL_LET(right, ghash(*s));
                         if (s->hash != right) return wrong("GHASH, LibTomCrypt");
                         return {};
                     }});
    parts.push_back({"AES, LibTomCrypt",
                     [tom, s](std::size_t i) -> Result<> {
                         for (std::size_t at = 0; at < kPartsOf + 16; at += 16)
                             aes_desc.ecb_encrypt(s->at(s->in, i) + at, s->at(s->out, i) + at,
                                                  &tom->key);
                         return {};
                     },
                     [s]() -> Result<> {
                         std::vector<std::uint8_t> right(kPartsOf + 16);
                         DAEL_TRY(evp("ECB", s->key, nullptr, nullptr, 0, s->in.data(),
                                      right.size(), right.data(), nullptr));
                         if (std::memcmp(right.data(), s->out.data(), right.size()) != 0)
                             return wrong("AES, LibTomCrypt");
                         return {};
                     }});
}
#else
void add_tomcrypt_parts(std::vector<Part>&, const std::shared_ptr<Scratch>&) {}
#endif

Result<Heat> race_parts(const PacketSuite& shared, const Point& point) {
    const auto scratch = std::make_shared<Scratch>();
    scratch->key = packet_key(point.number("bits"));
    measure::Team alone(1);
    std::uint64_t seed = 20;
    for (auto* buffer : {&scratch->in, &scratch->keystream, &scratch->out}) {
        DAEL_LET(memory, measure::HostBuffer::allocate(kPackets * kHashed));
        *buffer = std::move(memory);
        measure::fill_random(alone, buffer->data(), buffer->size(), ++seed);
    }
    // What GMAC hashes behind its data: the lengths of AAD and of nothing, in bits.
    std::uint8_t* const lengths = scratch->in.data() + kHashed - 16;
    std::memset(lengths, 0, 16);
    for (std::size_t i = 0; i < 8; ++i)
        lengths[7 - i] = static_cast<std::uint8_t>(std::uint64_t{(kHashed - 16) * 8} >> 8 * i);

    std::vector<Part> parts;
    add_plain_parts(parts, scratch);
    add_ipsec_mb_parts(parts, scratch);
    add_tomcrypt_parts(parts, scratch);
    Heat heat;
    std::vector<std::size_t> against;
    for (const Part& part : parts) {
        const auto pass = [work = part.work]() -> Result<> {
            for (std::size_t i = 0; i < kPackets; ++i) DAEL_TRY(work(i));
            return {};
        };
        Point row{{"backend", part.name}};
        row.set(point).set("messages", std::uint64_t{kPackets}).set("threads", std::uint64_t{1});
        const auto sampler = measure::wall_clock(pass, shared.sampling);
        const auto entry = heat.enter(
            part.name,
            [sampler] {
                const OnCore pinned(0);
                return sampler();
            },
            [=]() -> Result<> {
                std::memset(scratch->out.data(), 0xa5, kPartsOf);
                DAEL_TRY(part.work(0));
                return part.check();
            },
            row, static_cast<double>(kPackets * kPartsOf), against);
        heat.describe(entry, [](double seconds) {
            return per_packet(seconds / static_cast<double>(kPackets));
        });
        if (against.empty()) against.push_back(entry);
    }
    return heat;
}

}  // namespace

Benchmark packets_parts(std::shared_ptr<PacketSuite> shared) {
    return {"parts of a packet",
            {at_place("parts"), measure::axis("bits", std::vector<int>{128, 256}),
             measure::Axis{Mix::of(kPartsOf).point()}},
            {},
            [shared](const Point& point) { return race_parts(*shared, point); }};
}

}  // namespace dael::bench
