// SPDX-License-Identifier: Apache-2.0
// AEGIS by the registers of aegis_registers.hpp, after which each form includes it, for its target
// and in its namespace (hence no #pragma once). Names and steps are RFC 10032's.
//
// The form says which registers which variant has: Lanes1, Lanes2 and Lanes4 for one message of as
// many parallel states, and Beside for messages of one state side by side, one in each lane.

// Registers side by side, as one vector of blocks.
template <class Register, std::size_t kCount>
struct Lanes {
    static constexpr std::size_t kBlocks = kCount * Register::kBlocks;
    Register r[kCount];

    static DAEL_AEGIS_INLINE Lanes of(const Xmm (&blocks)[kBlocks]) noexcept {
        Lanes all;
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kCount; ++i) {
            Xmm its[Register::kBlocks];
#pragma GCC unroll 4
            for (std::size_t k = 0; k < Register::kBlocks; ++k)
                its[k] = blocks[Register::kBlocks * i + k];
            all.r[i] = Register::of(its);
        }
        return all;
    }
    DAEL_AEGIS_INLINE void to(Xmm (&blocks)[kBlocks]) const noexcept {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kCount; ++i) {
            Xmm its[Register::kBlocks];
            r[i].to(its);
#pragma GCC unroll 4
            for (std::size_t k = 0; k < Register::kBlocks; ++k)
                blocks[Register::kBlocks * i + k] = its[k];
        }
    }
    static DAEL_AEGIS_INLINE Lanes all(Xmm block) noexcept {
        Xmm blocks[kBlocks];
#pragma GCC unroll 4
        for (Xmm& b : blocks) b = block;
        return of(blocks);
    }
    static DAEL_AEGIS_INLINE Lanes load(const std::uint8_t* from) noexcept {
        Lanes all;
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kCount; ++i)
            all.r[i] = Register::load(from + kBlockSize * Register::kBlocks * i);
        return all;
    }
    DAEL_AEGIS_INLINE void store(std::uint8_t* to) const noexcept {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < kCount; ++i)
            r[i].store(to + kBlockSize * Register::kBlocks * i);
    }
};
#define DAEL_AEGIS_EACH(expression)                                                            \
    Lanes<Register, kCount> result;                                                            \
    _Pragma("GCC unroll 4") for (std::size_t i = 0; i < kCount; ++i) result.r[i] = expression; \
    return result
template <class Register, std::size_t kCount>
DAEL_AEGIS_INLINE Lanes<Register, kCount> operator^(const Lanes<Register, kCount>& a,
                                                    const Lanes<Register, kCount>& b) noexcept {
    DAEL_AEGIS_EACH(a.r[i] ^ b.r[i]);
}
template <class Register, std::size_t kCount>
DAEL_AEGIS_INLINE Lanes<Register, kCount> aes_round(const Lanes<Register, kCount>& in,
                                                    const Lanes<Register, kCount>& key) noexcept {
    DAEL_AEGIS_EACH(aes_round(in.r[i], key.r[i]));
}
template <class Register, std::size_t kCount>
DAEL_AEGIS_INLINE Lanes<Register, kCount> xor3(const Lanes<Register, kCount>& a,
                                               const Lanes<Register, kCount>& b,
                                               const Lanes<Register, kCount>& c) noexcept {
    DAEL_AEGIS_EACH(xor3(a.r[i], b.r[i], c.r[i]));
}
template <class Register, std::size_t kCount>
DAEL_AEGIS_INLINE Lanes<Register, kCount> and_xor(const Lanes<Register, kCount>& a,
                                                  const Lanes<Register, kCount>& b,
                                                  const Lanes<Register, kCount>& c) noexcept {
    DAEL_AEGIS_EACH(and_xor(a.r[i], b.r[i], c.r[i]));
}
#undef DAEL_AEGIS_EACH

// `kMessages` messages whose states go through their steps together; of more than one, each has a
// lane.
template <bool k256, class L, std::size_t kMessages>
struct States {
    static_assert(kMessages == 1 || kMessages == L::kBlocks);
    static constexpr std::size_t kStates = L::kBlocks / kMessages;  // of a message: RFC's D
    static constexpr std::size_t kPiece = kBlockSize * kStates;     // bytes of a message in an L
    static constexpr std::size_t kInputs = k256 ? 1 : 2;            // of Update
    static constexpr std::size_t kRate = kPiece * kInputs;
    static constexpr std::size_t kParts = k256 ? 6 : 8;
    using In = const std::uint8_t* [kMessages];
    using Out = std::uint8_t* [kMessages];

    L s[kParts];

    // ---------------------------------------------------------------- bytes of the messages

    static DAEL_AEGIS_INLINE L load(const In& from, std::size_t at) noexcept {
        if constexpr (kMessages == 1) {
            return L::load(from[0] + at);
        } else {
            Xmm blocks[kMessages];
#pragma GCC unroll 4
            for (std::size_t i = 0; i < kMessages; ++i) blocks[i] = Xmm::load(from[i] + at);
            return L::of(blocks);
        }
    }
    static DAEL_AEGIS_INLINE void store(const L& data, const Out& to, std::size_t at) noexcept {
        if constexpr (kMessages == 1) {
            data.store(to[0] + at);
        } else {
            Xmm blocks[kMessages];
            data.to(blocks);
#pragma GCC unroll 4
            for (std::size_t i = 0; i < kMessages; ++i) blocks[i].store(to[i] + at);
        }
    }
    // Of what there is from byte `at` on, `size` bytes, which may be none: what block `i` has.
    static DAEL_AEGIS_INLINE std::size_t within(std::size_t size, std::size_t i) noexcept {
        const std::size_t before = kBlockSize * (i % kStates);
        return size <= before ? 0 : size - before < kBlockSize ? size - before : kBlockSize;
    }
    static DAEL_AEGIS_INLINE L load_part(const In& from, std::size_t at,
                                         std::size_t size) noexcept {
        Xmm blocks[L::kBlocks];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < L::kBlocks; ++i) {
            const std::size_t bytes = within(size, i);
            blocks[i] =
                bytes == 0
                    ? Xmm::zero()
                    : Xmm::load_part(from[i / kStates] + at + kBlockSize * (i % kStates), bytes);
        }
        return L::of(blocks);
    }
    static DAEL_AEGIS_INLINE void store_part(const L& data, const Out& to, std::size_t at,
                                             std::size_t size) noexcept {
        Xmm blocks[L::kBlocks];
        data.to(blocks);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < L::kBlocks; ++i)
            if (const std::size_t bytes = within(size, i); bytes != 0)
                blocks[i].store_part(to[i / kStates] + at + kBlockSize * (i % kStates), bytes);
    }
    // `size` bytes of each message, and zeros.
    static DAEL_AEGIS_INLINE L first(const L& data, std::size_t size) noexcept {
        Xmm blocks[L::kBlocks];
        data.to(blocks);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < L::kBlocks; ++i) blocks[i] = blocks[i].first(within(size, i));
        return L::of(blocks);
    }

    // ---------------------------------------------------------------- the cipher

    // Each part is that before it, with itself for the round key. The message is added afterwards,
    // which is the same, and when decrypting comes in time.
    DAEL_AEGIS_INLINE void update(const L (&m)[kInputs]) noexcept {
        const L last = s[kParts - 1];
#pragma GCC unroll 8
        for (std::size_t i = kParts - 1; i > 0; --i) s[i] = aes_round(s[i - 1], s[i]);
        s[0] = aes_round(last, s[0]) ^ m[0];
        if constexpr (!k256) s[4] = s[4] ^ m[1];
    }
    // Data with the keystream of this step.
    DAEL_AEGIS_INLINE void mix(const L (&in)[kInputs], L (&out)[kInputs]) const noexcept {
        if constexpr (k256) {
            out[0] = and_xor(s[2], s[3], xor3(s[1], s[4], s[5] ^ in[0]));
        } else {
            out[0] = and_xor(s[2], s[3], xor3(s[6], s[1], in[0]));
            out[1] = and_xor(s[6], s[7], xor3(s[2], s[5], in[1]));
        }
    }

    // The context of each state: its number, and the highest one (ctx).
    static DAEL_AEGIS_INLINE L contexts() noexcept {
        Xmm blocks[L::kBlocks];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < L::kBlocks; ++i)
            blocks[i] = {_mm_cvtsi32_si128(static_cast<int>(i % kStates | (kStates - 1) << 8))};
        return L::of(blocks);
    }
    template <class Of>
    static DAEL_AEGIS_INLINE L gathered(Of of) noexcept {
        Xmm blocks[L::kBlocks];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < L::kBlocks; ++i) blocks[i] = Xmm::load(of[i / kStates]);
        return L::of(blocks);
    }
    struct Begin {
        const std::uint8_t* key[kMessages];
        const std::uint8_t* key_rest[kMessages];  // AEGIS-256: the second halves
        const std::uint8_t* nonce[kMessages];
        const std::uint8_t* nonce_rest[kMessages];
    };
    DAEL_AEGIS_INLINE void begin(const Begin& b) noexcept {
        const L c0 = L::all(Xmm::load(dael::aegis::kC0.data())),
                c1 = L::all(Xmm::load(dael::aegis::kC1.data()));
        const L key = gathered(b.key), nonce = gathered(b.nonce);
        if constexpr (k256) {
            const L key1 = gathered(b.key_rest), nonce1 = gathered(b.nonce_rest);
            const L inputs[4] = {key, key1, key ^ nonce, key1 ^ nonce1};
            s[0] = inputs[2];
            s[1] = inputs[3];
            s[2] = c1;
            s[3] = c0;
            s[4] = key ^ c0;
            s[5] = key1 ^ c1;
            for (int i = 0; i < dael::aegis::kBegin256; ++i) {
#pragma GCC unroll 4
                for (const L& input : inputs) {
                    const L m[1] = {input};
                    update(m);
                }
            }
        } else {
            s[0] = s[4] = key ^ nonce;
            s[1] = s[3] = c1;
            s[2] = c0;
            s[5] = s[7] = key ^ c0;
            s[6] = key ^ c1;
            const L m[2] = {nonce, key};
            for (int i = 0; i < dael::aegis::kBegin128; ++i) {
                if constexpr (kStates > 1) {
                    s[3] = s[3] ^ contexts();
                    s[7] = s[7] ^ contexts();
                }
                update(m);
            }
        }
    }
    // All of a message's AAD, or a part of it that is a multiple of the rate.
    DAEL_AEGIS_INLINE void absorb(const In& aad, std::size_t size) noexcept {
        std::size_t at = 0;
        for (; size - at >= kRate; at += kRate) {
            L m[kInputs];
#pragma GCC unroll 2
            for (std::size_t k = 0; k < kInputs; ++k) m[k] = load(aad, at + kPiece * k);
            update(m);
        }
        if (at == size) return;
        L m[kInputs];
        load_rest(aad, at, size, m);
        update(m);
    }
    template <Direction direction>
    DAEL_AEGIS_INLINE void crypt(const In& in, const Out& out, std::size_t size) noexcept {
#pragma GCC unroll 2
        for (std::size_t at = 0; at < size; at += kRate) {
            L data[kInputs], result[kInputs];
#pragma GCC unroll 2
            for (std::size_t k = 0; k < kInputs; ++k) data[k] = load(in, at + kPiece * k);
            mix(data, result);
#pragma GCC unroll 2
            for (std::size_t k = 0; k < kInputs; ++k) store(result[k], out, at + kPiece * k);
            update(direction == Direction::encrypt ? data : result);
        }
    }
    // The last bytes, less than the rate and more than none: from byte `at` to `size`.
    template <Direction direction>
    DAEL_AEGIS_INLINE void crypt_rest(const In& in, const Out& out, std::size_t at,
                                      std::size_t size) noexcept {
        L data[kInputs], result[kInputs];
        load_rest(in, at, size, data);
        mix(data, result);
#pragma GCC unroll 2
        for (std::size_t k = 0; k < kInputs; ++k) {
            const std::size_t here = at + kPiece * k;
            if (here < size) store_part(result[k], out, here, size - here);
            // DecPartial: zeros follow the plaintext.
            result[k] = first(result[k], here < size ? size - here : 0);
        }
        update(direction == Direction::encrypt ? data : result);
    }
    DAEL_AEGIS_INLINE void load_rest(const In& from, std::size_t at, std::size_t size,
                                     L (&to)[kInputs]) const noexcept {
#pragma GCC unroll 2
        for (std::size_t k = 0; k < kInputs; ++k) {
            const std::size_t here = at + kPiece * k;
            to[k] = load_part(from, here, here < size ? size - here : 0);
        }
    }
    // Finalize. Sizes in bytes; tags of 16 bytes or 32.
    DAEL_AEGIS_INLINE void finish(std::uint64_t aad_size, std::uint64_t size, const Out& tags,
                                  std::size_t tag_size) noexcept {
        const L t =
            s[k256 ? 3 : 2] ^ L::all({_mm_set_epi64x(static_cast<long long>(8 * size),
                                                     static_cast<long long>(8 * aad_size))});
        L m[kInputs];
#pragma GCC unroll 2
        for (L& input : m) input = t;
        for (int i = 0; i < dael::aegis::kEnd; ++i) update(m);
        L left, right;
        if constexpr (k256) {
            left = xor3(s[0], s[1], s[2]);
            right = xor3(s[3], s[4], s[5]);
        } else {
            left = xor3(s[0], s[1], s[2] ^ s[3]);
            right = xor3(s[4], s[5], s[6]);
            if (tag_size == kMaxTag) right = right ^ s[7];
        }
        Xmm lefts[L::kBlocks], rights[L::kBlocks];
        left.to(lefts);
        right.to(rights);
#pragma GCC unroll 4
        for (std::size_t i = 0; i < L::kBlocks; i += kStates) {
#pragma GCC unroll 4
            for (std::size_t k = 1; k < kStates; ++k) {
                lefts[i] = lefts[i] ^ lefts[i + k];
                rights[i] = rights[i] ^ rights[i + k];
            }
            std::uint8_t* const tag = tags[i / kStates];
            if (tag_size == kMaxTag) {
                lefts[i].store(tag);
                rights[i].store(tag + kBlockSize);
            } else {
                (lefts[i] ^ rights[i]).store(tag);
            }
        }
    }

    // ---------------------------------------------------------------- in memory

    DAEL_AEGIS_INLINE void save(std::uint8_t* to) const noexcept {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kParts; ++i) s[i].store(to + kBlockSize * L::kBlocks * i);
    }
    // Of more than one message's: `from` is its lane's, in what save() wrote of `kSaved` blocks.
    template <std::size_t kSaved = L::kBlocks>
    DAEL_AEGIS_INLINE void restore(const std::uint8_t* from) noexcept {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kParts; ++i) s[i] = L::load(from + kBlockSize * kSaved * i);
    }
};

using S128L = States<false, Lanes1, 1>;
using S256 = States<true, Lanes1, 1>;
using SX2 = States<false, Lanes2, 1>;
using SX4 = States<false, Lanes4, 1>;
using Beside128L = States<false, Beside, Beside::kBlocks>;
using Beside256 = States<true, Beside, Beside::kBlocks>;

// ---------------------------------------------------------------- whole messages

template <class S>
DAEL_AEGIS_INLINE typename S::Begin begins(const Job* jobs) noexcept {
    typename S::Begin b;
    constexpr std::size_t kMessages = sizeof b.key / sizeof b.key[0];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kMessages; ++i) {
        b.key[i] = jobs[i].key;
        b.key_rest[i] = jobs[i].key + kBlockSize;
        b.nonce[i] = jobs[i].message->start.data();
        b.nonce_rest[i] = jobs[i].message->start_rest.data();
    }
    return b;
}

// From byte `at` on, which is a multiple of the rate, to the tag.
template <class S, Direction direction>
DAEL_AEGIS_INLINE void to_the_end(S& state, const Job& job, std::size_t at,
                                  std::size_t tag_size) noexcept {
    const Message& m = *job.message;
    const std::size_t whole = m.size / S::kRate * S::kRate;
    if (at != whole) state.template crypt<direction>({m.in + at}, {m.out + at}, whole - at);
    if (whole != m.size) state.template crypt_rest<direction>({m.in}, {m.out}, whole, m.size);
    state.finish(m.aad_size, m.size, {job.tag}, tag_size);
}

template <class S, Direction direction>
DAEL_AEGIS void one(const Job& job, std::size_t tag_size) noexcept {
    S state;
    state.begin(begins<S>(&job));
    if (job.message->aad_size != 0) state.absorb({job.message->aad}, job.message->aad_size);
    to_the_end<S, direction>(state, job, 0, tag_size);
}

// Messages with AAD of one size, side by side. Where their own sizes differ, each goes on alone
// after what the shortest has; its state is in memory then, which is wiped.
template <class S, class Alone, Direction direction>
DAEL_AEGIS void beside(const Job* jobs, std::size_t tag_size) noexcept {
    constexpr std::size_t kMessages = Beside::kBlocks;
    typename S::In in, aad;
    typename S::Out out, tags;
    std::size_t least = jobs[0].message->size, most = least;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kMessages; ++i) {
        const Message& m = *jobs[i].message;
        in[i] = m.in;
        aad[i] = m.aad;
        out[i] = m.out;
        tags[i] = jobs[i].tag;
        least = m.size < least ? m.size : least;
        most = m.size > most ? m.size : most;
    }
    S states;
    states.begin(begins<S>(jobs));
    const std::size_t aad_size = jobs[0].message->aad_size;
    if (aad_size != 0) states.absorb(aad, aad_size);
    const std::size_t whole = least / S::kRate * S::kRate;
    if (whole != 0) states.template crypt<direction>(in, out, whole);
    if (least == most) {
        if (whole != least) states.template crypt_rest<direction>(in, out, whole, least);
        states.finish(aad_size, least, tags, tag_size);
        return;
    }
    State saved;
    states.save(saved.bytes.data());
    for (std::size_t i = 0; i < kMessages; ++i) {
        Alone state;
        state.template restore<kMessages>(saved.bytes.data() + kBlockSize * i);
        to_the_end<Alone, direction>(state, jobs[i], whole, tag_size);
    }
    wipe(&saved, sizeof saved);
}

template <class S, class Alone, Direction direction>
DAEL_AEGIS void run_list(std::span<const Job> jobs, std::size_t tag_size) noexcept {
    constexpr std::size_t kMessages = Beside::kBlocks;
    for (std::size_t i = 0; i < jobs.size();) {
        bool alike = kMessages > 1 && jobs.size() - i >= kMessages;
        for (std::size_t k = 1; alike && k < kMessages; ++k)
            alike = jobs[i + k].message->aad_size == jobs[i].message->aad_size;
        if (alike) {
            beside<S, Alone, direction>(jobs.data() + i, tag_size);
            i += kMessages;
        } else {
            one<Alone, direction>(jobs[i], tag_size);
            ++i;
        }
    }
}
template <class S, Direction direction>
DAEL_AEGIS void run_each(std::span<const Job> jobs, std::size_t tag_size) noexcept {
    for (const Job& job : jobs) one<S, direction>(job, tag_size);
}
template <Direction direction>
void run_all(Mode mode, std::span<const Job> jobs, std::size_t tag_size) noexcept {
    switch (mode) {
        case Mode::aegis128l:
            return run_list<Beside128L, S128L, direction>(jobs, tag_size);
        case Mode::aegis256:
            return run_list<Beside256, S256, direction>(jobs, tag_size);
        case Mode::aegis128x2:
            return run_each<SX2, direction>(jobs, tag_size);
        case Mode::aegis128x4:
            return run_each<SX4, direction>(jobs, tag_size);
        default:
            return;
    }
}
void run(Mode mode, Direction direction, std::span<const Job> jobs, std::size_t tag_size) noexcept {
    if (direction == Direction::encrypt)
        run_all<Direction::encrypt>(mode, jobs, tag_size);
    else
        run_all<Direction::decrypt>(mode, jobs, tag_size);
}

// ---------------------------------------------------------------- messages in pieces

template <class S>
struct InPieces {
    static DAEL_AEGIS void begin(const std::uint8_t* key, const Block& nonce,
                                 const Block& nonce_rest, State& saved) noexcept {
        S state;
        state.begin({{key}, {key + kBlockSize}, {nonce.data()}, {nonce_rest.data()}});
        state.save(saved.bytes.data());
    }
    static DAEL_AEGIS void absorb(State& saved, const std::uint8_t* aad,
                                  std::size_t size) noexcept {
        S state;
        state.restore(saved.bytes.data());
        state.absorb({aad}, size);
        state.save(saved.bytes.data());
    }
    template <Direction direction>
    static DAEL_AEGIS void crypt(State& saved, const std::uint8_t* in, std::uint8_t* out,
                                 std::size_t size) noexcept {
        S state;
        state.restore(saved.bytes.data());
        state.template crypt<direction>({in}, {out}, size);
        state.save(saved.bytes.data());
    }
    static DAEL_AEGIS void keystream(const State& saved, std::uint8_t* to) noexcept {
        S state;
        state.restore(saved.bytes.data());
        constexpr std::size_t kInputs = S::kInputs, kPiece = S::kPiece;
        decltype(state.s[0] ^ state.s[0]) zeros[kInputs], z[kInputs];
        for (auto& input : zeros) input = input.all(Xmm::zero());
        state.mix(zeros, z);
        for (std::size_t k = 0; k < kInputs; ++k) S::store(z[k], {to}, kPiece * k);
    }
    static DAEL_AEGIS void finish(State& saved, std::uint64_t aad_size, std::uint64_t size,
                                  std::uint8_t* tag, std::size_t tag_size) noexcept {
        S state;
        state.restore(saved.bytes.data());
        state.finish(aad_size, size, {tag}, tag_size);
    }
};
template <class Run>
void with(Mode mode, Run run) noexcept {
    switch (mode) {
        case Mode::aegis128l:
            return run(InPieces<S128L>{});
        case Mode::aegis256:
            return run(InPieces<S256>{});
        case Mode::aegis128x2:
            return run(InPieces<SX2>{});
        case Mode::aegis128x4:
            return run(InPieces<SX4>{});
        default:
            return;
    }
}
void begin(Mode mode, const std::uint8_t* key, const Block& nonce, const Block& nonce_rest,
           State& state) noexcept {
    with(mode, [&](auto of) { of.begin(key, nonce, nonce_rest, state); });
}
void absorb(Mode mode, State& state, const std::uint8_t* aad, std::size_t size) noexcept {
    with(mode, [&](auto of) { of.absorb(state, aad, size); });
}
void crypt(Mode mode, Direction direction, State& state, const std::uint8_t* in, std::uint8_t* out,
           std::size_t size) noexcept {
    with(mode, [&](auto of) {
        if (direction == Direction::encrypt)
            of.template crypt<Direction::encrypt>(state, in, out, size);
        else
            of.template crypt<Direction::decrypt>(state, in, out, size);
    });
}
void keystream(Mode mode, const State& state, std::uint8_t* to) noexcept {
    with(mode, [&](auto of) { of.keystream(state, to); });
}
void finish(Mode mode, State& state, std::uint64_t aad_size, std::uint64_t size, std::uint8_t* tag,
            std::size_t tag_size) noexcept {
    with(mode, [&](auto of) { of.finish(state, aad_size, size, tag, tag_size); });
}

constexpr Form kForm{DAEL_AEGIS_BLOCKS != 4, run, begin, absorb, crypt, keystream, finish};

#undef DAEL_AEGIS
#undef DAEL_AEGIS_INLINE
#undef DAEL_AEGIS_TARGET
#undef DAEL_AEGIS_BLOCKS
