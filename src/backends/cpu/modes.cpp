// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/modes.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <daelstrom/key.hpp>

#include "core/key_schedule.hpp"
#include "modes/counter.hpp"

namespace dael::cpu {
namespace {

// ECB and CBC encryption keep a job's length in 16 bits; this is the most whole blocks in them.
constexpr std::size_t kShortJob = 65520;
// CTR and CBC decryption know no limit. One all the same, far from where 32-bit arithmetic might
// hide, and so short that tests go past it.
constexpr std::size_t kLongJob = std::size_t{16} << 20;

// Keystream without input is made in pieces of this.
constexpr std::size_t kInCache = std::size_t{16} << 10;

alignas(64) constexpr std::array<std::uint8_t, Workspace::kScratch> kZeros{};

constexpr std::size_t whole_blocks(std::size_t size) noexcept {
    return (size + kBlockSize - 1) / kBlockSize * kBlockSize;
}

// out = in ^ keystream. `out` may be `in`.
void exclusive_or(std::uint8_t* out, const std::uint8_t* in, const std::uint8_t* keystream,
                  std::size_t size) noexcept {
    for (std::size_t i = 0; i < size; ++i) out[i] = in[i] ^ keystream[i];
}

void copy_block(Block& to, const std::uint8_t* from) noexcept {
    std::memcpy(to.data(), from, kBlockSize);
}

// A workspace at work on the messages whose keys are of one size, as the library's bursts want it.
class Modes {
  public:
    Modes(Workspace& workspace, std::span<const Key> keys, std::span<const Message> messages,
          int key_bytes) noexcept
        : ws_(workspace), keys_(keys), messages_(messages), key_bytes_(key_bytes) {}

    Result<> ecb(IMB_CIPHER_DIRECTION direction);
    Result<> cbc_decrypt();
    Result<> cfb_decrypt();
    Result<> ctr();
    Result<> cbc_encrypt();
    Result<> cfb_encrypt();
    Result<> ofb();

    // Wipes what CFB and OFB leave behind.
    Result<> wipe_keystream();

  private:
    // Calls work(message, key) for each.
    template <class Work>
    Result<> each(Work work) {
        for (const Message& message : messages_)
            if (const auto& key = keys_[message.key].schedule(); key.key_bytes == key_bytes_)
                DAEL_TRY(work(message, key));
        return {};
    }
    void set_job(IMB_JOB& job, const core::KeySchedule& key, const std::uint8_t* src,
                 std::uint8_t* dst, std::size_t size) const noexcept;
    // Notes that `size` bytes of a lane's scratch are to hold keystream.
    void keystream_in(std::size_t lane, std::size_t size) noexcept {
        keystream_lanes_ = std::max(keystream_lanes_, lane + 1);
        keystream_bytes_ = std::max(keystream_bytes_, size);
    }
    // Adds a job to the burst and returns its IV, to be filled in.
    Block& add(const core::KeySchedule& key, const std::uint8_t* src, std::uint8_t* dst,
               std::size_t size) noexcept;
    Result<> burst(IMB_CIPHER_MODE cipher, IMB_CIPHER_DIRECTION direction);
    Result<> ecb_job(IMB_CIPHER_DIRECTION direction, const core::KeySchedule& key,
                     const std::uint8_t* src, std::uint8_t* dst, std::size_t size);
    Result<> ctr_head(const Message& message, const core::KeySchedule& key, std::size_t size);
    bool better_staged() const noexcept;
    Result<> overwrite_chains();

    template <class Prepare, class Finish>
    Result<> side_by_side(std::size_t most, std::size_t piece, Prepare prepare, Finish finish);

    Workspace& ws_;
    const std::span<const Key> keys_;
    const std::span<const Message> messages_;
    const int key_bytes_;
    std::uint32_t burst_size_ = 0;
    std::size_t keystream_lanes_ = 0, keystream_bytes_ = 0;  // bytes: in the fullest of the lanes
    bool library_keeps_keystream_ = false;
};

// Sets every field that the library reads for AES; what else a job holds is of no use to it.
// Messages are valid by the time they come here, so the library need not check its jobs again.
void Modes::set_job(IMB_JOB& job, const core::KeySchedule& key, const std::uint8_t* src,
                    std::uint8_t* dst, std::size_t size) const noexcept {
    job.enc_keys = key.encrypt.data();
    job.dec_keys = key.decrypt.data();
    job.key_len_in_bytes = static_cast<std::uint64_t>(key_bytes_);
    job.src = src;
    job.dst = dst;
    job.cipher_start_src_offset_in_bytes = 0;
    job.msg_len_to_cipher_in_bytes = size;
}

Block& Modes::add(const core::KeySchedule& key, const std::uint8_t* src, std::uint8_t* dst,
                  std::size_t size) noexcept {
    IMB_JOB& job = ws_.jobs[burst_size_];
    Block& iv = ws_.ivs[burst_size_++];
    set_job(job, key, src, dst, size);
    job.iv = iv.data();
    job.iv_len_in_bytes = iv.size();
    return iv;
}

Result<> Modes::burst(IMB_CIPHER_MODE cipher, IMB_CIPHER_DIRECTION direction) {
    if (burst_size_ == 0) return {};
    const std::uint32_t jobs = std::exchange(burst_size_, 0);
    if (IMB_SUBMIT_CIPHER_BURST_NOCHECK(ws_.manager, ws_.jobs.data(), jobs, cipher, direction,
                                        static_cast<IMB_KEY_SIZE_BYTES>(key_bytes_)) == jobs)
        return {};
    return Error{Code::internal, std::string("libipsec-mb: submit_cipher_burst: ") +
                                     imb_get_strerror(imb_get_errno(ws_.manager))};
}

// ECB has no bursts in the library; its jobs are done when submitted.
Result<> Modes::ecb_job(IMB_CIPHER_DIRECTION direction, const core::KeySchedule& key,
                        const std::uint8_t* src, std::uint8_t* dst, std::size_t size) {
    IMB_JOB* job = IMB_GET_NEXT_JOB(ws_.manager);
    set_job(*job, key, src, dst, size);
    job->cipher_mode = IMB_CIPHER_ECB;
    job->cipher_direction = direction;
    job->hash_alg = IMB_AUTH_NULL;
    job->chain_order = IMB_ORDER_CIPHER_HASH;
    job = IMB_SUBMIT_JOB_NOCHECK(ws_.manager);
    if (job && job->status == IMB_STATUS_COMPLETED) return {};
    return Error{Code::internal, std::string("libipsec-mb: submit_job: ") +
                                     imb_get_strerror(imb_get_errno(ws_.manager))};
}

Result<> Modes::ecb(IMB_CIPHER_DIRECTION direction) {
    return each([&](const Message& m, const core::KeySchedule& key) -> Result<> {
        for (std::size_t done = 0; done < m.size; done += kShortJob)
            DAEL_TRY(ecb_job(direction, key, m.in + done, m.out + done,
                             std::min(kShortJob, m.size - done)));
        return {};
    });
}

Result<> Modes::cbc_decrypt() {
    auto all = each([this](const Message& m, const core::KeySchedule& key) -> Result<> {
        Block chain = m.start;
        for (std::size_t done = 0; done < m.size;) {
            const std::size_t size = std::min(kLongJob, m.size - done);
            add(key, m.in + done, m.out + done, size) = chain;
            copy_block(chain, m.in + done + size - kBlockSize);  // before it is overwritten
            done += size;
            if (burst_size_ == Workspace::kJobs) DAEL_TRY(burst(IMB_CIPHER_CBC, IMB_DIR_DECRYPT));
        }
        return {};
    });
    return all ? burst(IMB_CIPHER_CBC, IMB_DIR_DECRYPT) : std::move(all);
}

// P_j = C_j ^ CIPH(C_j-1) (SP 800-38A 6.3): ECB of the ciphertext, one block late.
Result<> Modes::cfb_decrypt() {
    std::uint8_t* const keystream = ws_.scratch_of(0);
    return each([&](const Message& m, const core::KeySchedule& key) -> Result<> {
        Block chain = m.start;
        for (std::size_t done = 0; done < m.size;) {
            const std::uint8_t* const in = m.in + done;
            const std::size_t size = std::min(Workspace::kScratch, m.size - done);
            const std::size_t late = whole_blocks(size) - kBlockSize;
            keystream_in(0, late + kBlockSize);
            std::memcpy(keystream, chain.data(), kBlockSize);
            std::memcpy(keystream + kBlockSize, in, late);
            if (size % kBlockSize == 0) copy_block(chain, in + late);
            DAEL_TRY(ecb_job(IMB_DIR_ENCRYPT, key, keystream, keystream, late + kBlockSize));
            exclusive_or(m.out + done, in, keystream, size);
            done += size;
        }
        return {};
    });
}

// The part of a CTR message that lies in a counter block already begun.
Result<> Modes::ctr_head(const Message& m, const core::KeySchedule& key, std::size_t size) {
    Block keystream{};
    add(key, keystream.data(), keystream.data(), keystream.size()) = m.start;
    DAEL_TRY(burst(IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT));
    if (m.in)
        exclusive_or(m.out, m.in, keystream.data() + m.skip, size);
    else if (size != 0)  // of no bytes `out` may be null, which memcpy() may not be given
        std::memcpy(m.out, keystream.data() + m.skip, size);
    wipe(keystream.data(), keystream.size());
    return {};
}

// The library takes a 16-byte counter block, but counts in its low 32 bits only: those wrap and
// carry nothing on. Cutting there makes it the 128-bit counter of SP 800-38A B.1. It wants an
// input; without one, the output is zeroed while it is in the cache, and enciphered in place.
Result<> Modes::ctr() {
    auto all = each([this](const Message& m, const core::KeySchedule& key) -> Result<> {
        Block counter = m.start;
        std::size_t done = 0;
        if (m.skip != 0) {
            DAEL_TRY(burst(IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT));
            done = std::min<std::size_t>(kBlockSize - m.skip, m.size);
            DAEL_TRY(ctr_head(m, key, done));
            counter = modes::counter_add(counter, 1);
        }
        const std::size_t most = m.in ? kLongJob : kInCache;
        while (done < m.size) {
            const std::uint64_t blocks =
                std::min<std::uint64_t>(modes::blocks_before_wrap32(counter), most / kBlockSize);
            const std::size_t size = std::min(blocks * kBlockSize, m.size - done);
            std::uint8_t* const out = m.out + done;
            if (!m.in) std::memset(out, 0, size);
            add(key, m.in ? m.in + done : out, out, size) = counter;
            done += size;
            if (done < m.size) counter = modes::counter_add(counter, blocks);
            if (!m.in || burst_size_ == Workspace::kJobs)
                DAEL_TRY(burst(IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT));
        }
        return {};
    });
    return all ? burst(IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT) : std::move(all);
}

// Takes up to `most` messages forward together, a piece of each in every burst of CBC encryption,
// which the library runs side by side in its vector lanes. prepare(lane, i) adds the job for
// lane.size bytes, finish(lane, i) leaves the chain value for the next piece.
template <class Prepare, class Finish>
Result<> Modes::side_by_side(std::size_t most, std::size_t piece, Prepare prepare, Finish finish) {
    auto& lanes = ws_.lanes;
    std::size_t active = 0;
    auto next = messages_.begin();
    while (true) {
        for (; active < most && next != messages_.end(); ++next) {
            const core::KeySchedule& key = keys_[next->key].schedule();
            if (next->size != 0 && key.key_bytes == key_bytes_)
                lanes[active++] = {&*next, &key, 0, 0, next->start};
        }
        if (active == 0) return {};
        for (std::size_t i = 0; i < active; ++i) {
            Lane& lane = lanes[i];
            lane.size = std::min(piece, lane.message->size - lane.done);
            prepare(lane, i);
        }
        DAEL_TRY(burst(IMB_CIPHER_CBC, IMB_DIR_ENCRYPT));
        for (std::size_t i = 0; i < active; ++i) {
            finish(lanes[i], i);
            lanes[i].done += lanes[i].size;
        }
        const auto end = lanes.begin() + static_cast<std::ptrdiff_t>(active);
        active = static_cast<std::size_t>(
            std::remove_if(lanes.begin(), end,
                           [](const Lane& lane) { return lane.done == lane.message->size; }) -
            lanes.begin());
    }
}

// Whether a few long messages would cross cache lines at every step. Sixteen streams that do so,
// often a multiple of 4 KiB apart as well, cost more than to go by way of scratch, where lanes lie
// well.
bool Modes::better_staged() const noexcept {
    constexpr std::size_t kCacheLine = 64, kLongEnough = 2048;
    return messages_.size() > 2 && std::ranges::any_of(messages_, [](const Message& m) {
               const auto in = reinterpret_cast<std::uintptr_t>(m.in);
               const auto out = reinterpret_cast<std::uintptr_t>(m.out);
               return m.size >= kLongEnough && (in | out) % kCacheLine != 0;
           });
}

Result<> Modes::cbc_encrypt() {
    if (better_staged())
        return side_by_side(
            Workspace::kLanes, Workspace::kScratch,
            [this](Lane& lane, std::size_t i) {
                std::memcpy(ws_.scratch_of(i), lane.in(), lane.size);
                add(*lane.key, ws_.scratch_of(i), ws_.scratch_of(i), lane.size) = lane.chain;
            },
            [this](Lane& lane, std::size_t i) {
                std::memcpy(lane.out(), ws_.scratch_of(i), lane.size);
                copy_block(lane.chain, lane.out() + lane.size - kBlockSize);
            });
    return side_by_side(
        Workspace::kJobs, kShortJob,
        [this](Lane& lane, std::size_t) {
            add(*lane.key, lane.in(), lane.out(), lane.size) = lane.chain;
        },
        [](Lane& lane, std::size_t) {
            copy_block(lane.chain, lane.out() + lane.size - kBlockSize);
        });
}

// C_j = P_j ^ D_j with D_j = CIPH(C_j-1) (SP 800-38A 6.3). So D_1 = CIPH(IV) and D_j+1 = CIPH(P_j ^
// D_j): the D are the CBC encryption of IV, P_1, P_2, ... under an IV of zero.
Result<> Modes::cfb_encrypt() {
    library_keeps_keystream_ = true;
    return side_by_side(
        Workspace::kLanes, Workspace::kScratch,
        [this](Lane& lane, std::size_t i) {
            const std::size_t late = whole_blocks(lane.size) - kBlockSize;
            keystream_in(i, late + kBlockSize);
            std::memcpy(ws_.scratch_of(i), lane.chain.data(), kBlockSize);
            std::memcpy(ws_.scratch_of(i) + kBlockSize, lane.in(), late);
            add(*lane.key, ws_.scratch_of(i), ws_.scratch_of(i), late + kBlockSize) = Block{};
        },
        [this](Lane& lane, std::size_t i) {
            exclusive_or(lane.out(), lane.in(), ws_.scratch_of(i), lane.size);
            if (lane.size == Workspace::kScratch)
                copy_block(lane.chain, lane.out() + lane.size - kBlockSize);
        });
}

// O_j = CIPH(O_j-1) (SP 800-38A 6.4): the CBC encryption of zeros.
Result<> Modes::ofb() {
    library_keeps_keystream_ = true;
    return side_by_side(
        Workspace::kLanes, Workspace::kScratch,
        [this](Lane& lane, std::size_t i) {
            keystream_in(i, whole_blocks(lane.size));
            add(*lane.key, kZeros.data(), ws_.scratch_of(i), whole_blocks(lane.size)) = lane.chain;
        },
        [this](Lane& lane, std::size_t i) {
            exclusive_or(lane.out(), lane.in(), ws_.scratch_of(i), lane.size);
            copy_block(lane.chain, ws_.scratch_of(i) + whole_blocks(lane.size) - kBlockSize);
        });
}

Result<> Modes::wipe_keystream() {
    auto result = library_keeps_keystream_ ? overwrite_chains() : Result<>{};
    ws_.wipe_keystream(keystream_lanes_, keystream_bytes_);
    return result;
}

// The library remembers the last block of each lane's output, here a block of keystream, as the IV
// of a next job. A block for every lane under a key of zeros takes its place.
Result<> Modes::overwrite_chains() {
    static constexpr core::KeySchedule kNoKey{};
    for (std::size_t lane = 0; lane < Workspace::kLanes; ++lane)
        add(kNoKey, kZeros.data(), ws_.scratch_of(lane), kBlockSize) = Block{};
    return burst(IMB_CIPHER_CBC, IMB_DIR_ENCRYPT);
}

Result<> dispatch(Modes& modes, const Cipher& cipher) {
    const bool encrypt = cipher.direction == Direction::encrypt;
    switch (cipher.mode) {
        case Mode::ecb:
            return modes.ecb(encrypt ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT);
        case Mode::cbc:
            return encrypt ? modes.cbc_encrypt() : modes.cbc_decrypt();
        case Mode::cfb:
            return encrypt ? modes.cfb_encrypt() : modes.cfb_decrypt();
        case Mode::ofb:
            return modes.ofb();
        case Mode::ctr:
        case Mode::gcm_ctr:
            return modes.ctr();
        default:
            break;
    }
    return Error{Code::unsupported, "cpu: no " + std::string(name(cipher.mode))};
}

}  // namespace

Result<> run(Workspace& workspace, const Cipher& cipher, std::span<const Key> keys,
             std::span<const Message> messages) {
    unsigned sizes = 0;  // a bit for each eight bytes that any key has
    for (const Message& m : messages) sizes |= 1u << keys[m.key].schedule().key_bytes / 8;
    for (const int key_bytes : {16, 24, 32}) {
        if (!(sizes >> key_bytes / 8 & 1)) continue;
        Modes modes(workspace, keys, messages, key_bytes);
        auto result = dispatch(modes, cipher);
        auto wiped = modes.wipe_keystream();
        DAEL_TRY(std::move(result));
        DAEL_TRY(std::move(wiped));
    }
    return {};
}

}  // namespace dael::cpu
