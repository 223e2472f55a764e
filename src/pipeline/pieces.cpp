// SPDX-License-Identifier: Apache-2.0
// A message in pieces: the order of calls, the limits, what is held back of blocks and sectors, and
// that no plaintext gets out before its tag is verified unless its caller says so. The maths of
// modes that authenticate is the backend's; the other modes' pieces go through the engine like any
// message.
#include <daelstrom/pieces.hpp>

#include <algorithm>
#include <vector>

#include "core/guard.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/chain.hpp"
#include "modes/gcm.hpp"
#include "pipeline/engine_state.hpp"

namespace dael {
namespace {

using core::guarded;

// The first pass decrypts as well, for want of a way to hash only, into this much memory.
constexpr std::size_t kScratch = std::size_t{16} << 10;
constexpr auto kMaxData = std::uint64_t{1} << 60;

Error out_of_order(const char* what) {
    return {Code::invalid_argument, what};
}

Result<> check_place(HostIn in, HostOut out, std::size_t written, bool holding) {
    if (!in.data() && !in.empty()) return Error{Code::invalid_argument, "the input is null"};
    if (!out.data() && !out.empty()) return Error{Code::invalid_argument, "the output is null"};
    if (out.size() < written)
        return Error{Code::invalid_argument, "output is " + std::to_string(out.size()) +
                                                 " bytes; this piece makes " +
                                                 std::to_string(written)};
    const auto from = reinterpret_cast<std::uintptr_t>(in.data());
    const auto to = reinterpret_cast<std::uintptr_t>(out.data());
    if (in.empty() || written == 0 || (from == to && !holding)) return {};
    if (from < to ? to - from < in.size() : from - to < written)
        return Error{Code::overlap,
                     holding
                         ? "input and output overlap; while a part of a block is held back they "
                           "must be apart"
                         : "input and output overlap; pass the same buffer to work in place, or "
                           "two apart"};
    return {};
}

}  // namespace

struct Pieces::State {
    enum class Phase { aad, first_pass, unverified, verified, data, spent };

    State(std::shared_ptr<Engine::State> its_engine, const Cipher& its_cipher,
          std::shared_ptr<const Key> its_key, const Start& start)
        : engine(std::move(its_engine)),
          cipher(its_cipher),
          key(std::move(its_key)),
          begin_at(start.first),
          chain(its_cipher, start.first) {}
    ~State() {
        wipe(holding.data(), holding.size());
        wipe(keystream.data(), keystream.size());
    }

    std::shared_ptr<Engine::State> engine;  // outlives what its backends made
    Cipher cipher;
    std::shared_ptr<const Key> key;  // with the tables that of clones too
    // Modes that authenticate.
    std::shared_ptr<const core::KeyTables> tables;
    std::unique_ptr<core::Pieces> first, second;  // the second: of two passes
    std::uint64_t aad_size = 0, first_size = 0;
    core::Tag tag;
    // The other modes.
    Block begin_at;  // the message's start
    modes::Chain chain;
    std::vector<std::uint8_t> holding;  // room for a unit
    std::size_t held = 0;
    Block keystream{};     // CFB, OFB: of the block that is begun
    std::size_t used = 0;  // bytes of it; 0: none is begun
    Block begun{};         // CFB: the ciphertext of the block that is begun

    Phase phase = Phase::aad;
    std::uint64_t size = 0;

    bool tagged() const noexcept { return authenticates(cipher.mode); }
    bool seals() const noexcept { return modes::encrypts(cipher); }
    // Block and sector modes hold back what does not fill one.
    std::size_t unit() const noexcept {
        return whole_blocks_only(cipher.mode) ? kBlockSize
               : cipher.mode == Mode::xts     ? cipher.sector
                                              : 1;
    }

    // A whole number of units, or a message's last bytes.
    Result<> run(const Cipher& how, const Message& message) {
        Code code = Code::internal;
        DAEL_TRY(modes::check(how, message, 1));
        auto ran = engine->run(how, std::span(key.get(), 1), nullptr, {&message, 1}, {&code, 1});
        if (!ran) return std::move(ran).error();
        return {};
    }
    Result<> run_chain(const std::uint8_t* in, std::uint8_t* out, std::size_t bytes) {
        if (bytes == 0) return {};
        DAEL_TRY(run(cipher, chain.next(in, out, bytes)));
        chain.done();
        return {};
    }

    Result<> add_data(std::size_t bytes) {
        if (const std::uint64_t limit = modes::most(cipher.mode).data;
            tagged() && bytes > limit - std::min(size, limit))
            return modes::too_long(cipher.mode, "more bytes");
        if (bytes > kMaxData - size) return Error{Code::limit, "more than 2^60 bytes in a message"};
        size += bytes;
        return {};
    }

    // What is begun goes well or ends the message, which is then in no state to go on from, also
    // where memory runs out.
    template <class Work>
    Result<> or_ended(Work&& work) {
        const Phase before = std::exchange(phase, Phase::spent);
        Result<> result = core::guarded(std::forward<Work>(work));
        if (result) phase = before;
        return result;
    }
    // Whether the mode takes a message that is so long from its start on, before anything changes:
    // a counter must not wrap between two pieces either. Errors: limit.
    Result<> check_whole(std::uint64_t bytes) {
        Message message{keystream.data(), keystream.data(), bytes};  // which nobody looks at
        message.start = begin_at;
        return modes::check(cipher, message, 1);
    }

    Result<std::size_t> update_units(HostIn in, HostOut out);
    Result<> update_feedback(HostIn in, std::uint8_t* out);
    void begin(const Block& at);
};

Pieces::Pieces(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Pieces::Pieces(Pieces&&) noexcept = default;
Pieces& Pieces::operator=(Pieces&&) noexcept = default;
Pieces::~Pieces() = default;

std::size_t Pieces::unit() const noexcept {
    return state_->unit();
}
std::size_t Pieces::held() const noexcept {
    return state_->held;
}

void Pieces::State::begin(const Block& at) {
    begin_at = at;
    chain = modes::Chain(cipher, at);
    aad_size = first_size = size = 0;
    held = used = 0;
    phase = Phase::aad;
}

Result<Pieces> Engine::begin(const Cipher& cipher, const Key& key, const Start& start) {
    return core::guarded([&]() -> Result<Pieces> {
        DAEL_TRY(modes::check(cipher, key));
        if (cipher.mode == Mode::gcm_siv)
            return Error{Code::unsupported,
                         "GCM-SIV needs the whole message before its first byte; give it to run()"};
        DAEL_LET(copy, key.duplicate());
        auto state = std::make_unique<Pieces::State>(
            state_, cipher, std::make_shared<const Key>(std::move(copy)), start);
        state->holding.resize(state->tagged() ? (state->seals() ? 0 : kScratch) : state->unit());
        DAEL_LET(worker, state_->worker_for_pieces(cipher, key.bits()));
        // Said now, not amid the message: what is missing, or sequential on a device by name.
        const core::Can can = worker.backend->can(cipher, key.bits());
        if (can.answer != core::Can::yes)
            return core::cannot(worker.backend->profile().name, cipher, can);
        if (!state->tagged()) return Pieces(std::move(state));
        const std::span keys(state->key.get(), 1);
        DAEL_LET(tables, worker.backend->tables(keys));
        state->tables = std::move(tables);
        for (auto* pass : {&state->first, &state->second}) {
            if (pass == &state->second && state->seals()) break;
            DAEL_LET(pieces, worker.backend->begin(cipher, {keys, state->tables.get()}, 0, start));
            *pass = std::move(pieces);
        }
        return Pieces(std::move(state));
    });
}

Result<> Pieces::aad(HostIn bytes) {
    return core::guarded([&]() -> Result<> {
        State& s = *state_;
        if (!s.tagged()) return out_of_order("additional data is for modes that authenticate");
        if (s.phase != State::Phase::aad)
            return out_of_order("additional data comes before the data, and before the end");
        if (!bytes.data() && !bytes.empty())
            return Error{Code::invalid_argument, "the additional data is null"};
        if (bytes.size() > modes::most(s.cipher.mode).aad - s.aad_size)
            return modes::too_much_aad(s.cipher.mode, "more bytes");
        s.aad_size += bytes.size();
        return s.or_ended([&]() -> Result<> {
            DAEL_TRY(s.first->aad(bytes));
            return s.second ? s.second->aad(bytes) : Result<>{};
        });
    });
}

// ECB, CBC, XTS: what was held back first, then whole units, then what is left is held back.
Result<std::size_t> Pieces::State::update_units(HostIn in, HostOut out) {
    const std::size_t written = (held + in.size()) / unit() * unit();
    DAEL_TRY(check_place(in, out, written, held != 0));
    DAEL_TRY(check_whole(size - held + written));
    DAEL_TRY(add_data(in.size()));
    std::size_t done = 0;
    if (held != 0) {
        const std::size_t count = std::min(unit() - held, in.size());
        std::copy_n(in.begin(), count, holding.begin() + static_cast<std::ptrdiff_t>(held));
        held += count;
        in = in.subspan(count);
        if (held < unit()) return 0;
        DAEL_TRY(or_ended([&] { return run_chain(holding.data(), out.data(), unit()); }));
        done = unit();
        held = 0;
    }
    const std::size_t whole = in.size() / unit() * unit();
    DAEL_TRY(or_ended([&] { return run_chain(in.data(), out.data() + done, whole); }));
    const HostIn rest = in.subspan(whole);
    std::ranges::copy(rest, holding.begin());
    held = rest.size();
    return written;
}

// CFB and OFB of any number of bytes: the keystream of a block that is begun is kept, and is that
// of its feedback (SP 800-38A 6.3, 6.4).
Result<> Pieces::State::update_feedback(HostIn in, std::uint8_t* out) {
    const auto some = [&](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i, ++used) {
            const std::uint8_t before = in[i];
            out[i] = before ^ keystream[used];
            begun[used] = seals() ? out[i] : before;
        }
        in = in.subspan(count);
        out += count;
    };
    if (used != 0) some(std::min(kBlockSize - used, in.size()));
    if (used == kBlockSize) {
        // The next feedback: in CFB the ciphertext, in OFB the keystream itself.
        chain = modes::Chain(cipher, cipher.mode == Mode::cfb ? begun : keystream);
        used = 0;
    }
    const std::size_t whole = in.size() / kBlockSize * kBlockSize;
    DAEL_TRY(run_chain(in.data(), out, whole));
    in = in.subspan(whole);
    out += whole;
    if (in.empty()) return {};
    keystream = chain.next(nullptr, nullptr, 0).start;
    Message block{keystream.data(), keystream.data(), kBlockSize};
    DAEL_TRY(run({Mode::ecb, Direction::encrypt}, block));
    some(in.size());
    return {};
}

Result<std::size_t> Pieces::update(HostIn in, HostOut out) {
    return core::guarded([&]() -> Result<std::size_t> {
        State& s = *state_;
        using Phase = State::Phase;
        if (s.phase == Phase::spent)
            return out_of_order("this message is at its end; restart() begins another");
        if (s.tagged() && !s.seals() && s.phase != Phase::verified)
            return out_of_order("nothing is decrypted before verify() has succeeded");
        if (s.unit() != 1) return s.update_units(in, out);
        DAEL_TRY(check_place(in, out, in.size(), false));
        if (s.tagged() && !s.seals() && in.size() > s.first_size - s.size)
            return Error{Code::invalid_argument,
                         "update() of more bytes than authenticate() was given"};
        if (makes_keystream(s.cipher.mode)) DAEL_TRY(s.check_whole(s.size + in.size()));
        DAEL_TRY(s.add_data(in.size()));
        if (s.tagged() && s.seals()) s.phase = Phase::data;
        DAEL_TRY(s.or_ended([&]() -> Result<> {
            if (s.tagged())
                return (s.seals() ? s.first : s.second)->update(in.data(), out.data(), in.size());
            return makes_keystream(s.cipher.mode) ? s.run_chain(in.data(), out.data(), in.size())
                                                  : s.update_feedback(in, out.data());
        }));
        return in.size();
    });
}

Result<> Pieces::authenticate(HostIn ciphertext) {
    return core::guarded([&]() -> Result<> {
        State& s = *state_;
        using Phase = State::Phase;
        if (!s.tagged() || s.seals())
            return out_of_order("authenticate() is for decryption that authenticates");
        if (s.phase != Phase::aad && s.phase != Phase::first_pass)
            return out_of_order("the first pass is over; restart() begins another message");
        if (!ciphertext.data() && !ciphertext.empty())
            return Error{Code::invalid_argument, "the ciphertext is null"};
        DAEL_TRY(s.add_data(ciphertext.size()));
        s.phase = Phase::first_pass;
        const core::WipeAtEnd wipe(s.holding.data(), std::min(kScratch, ciphertext.size()));
        while (!ciphertext.empty()) {
            const auto piece = ciphertext.first(std::min(kScratch, ciphertext.size()));
            DAEL_TRY(s.or_ended(
                [&] { return s.first->update(piece.data(), s.holding.data(), piece.size()); }));
            ciphertext = ciphertext.subspan(piece.size());
        }
        return {};
    });
}

Result<> Pieces::update_unverified(HostIn in, HostOut out) {
    return core::guarded([&]() -> Result<> {
        State& s = *state_;
        using Phase = State::Phase;
        if (!s.tagged() || s.seals())
            return out_of_order("update_unverified() is for decryption that authenticates");
        if (s.phase != Phase::aad && s.phase != Phase::unverified)
            return out_of_order(
                "a message goes in one pass or in two: not authenticate() and "
                "update_unverified() both, and nothing after verify()");
        DAEL_TRY(check_place(in, out, in.size(), false));
        DAEL_TRY(s.add_data(in.size()));
        s.phase = Phase::unverified;
        return s.or_ended([&] { return s.first->update(in.data(), out.data(), in.size()); });
    });
}

Result<> Pieces::verify(std::span<const std::uint8_t> tag) {
    return core::guarded([&]() -> Result<> {
        State& s = *state_;
        using Phase = State::Phase;
        if (!s.tagged() || s.seals())
            return out_of_order("verify() is for decryption that authenticates");
        if (s.phase == Phase::verified || s.phase == Phase::spent)
            return out_of_order("verify() once, after the first pass");
        if (!modes::valid_tag_size(s.cipher.mode, tag.size()))
            return modes::no_such_tag(s.cipher.mode, tag.size());
        if (tag.size() != s.cipher.tag)
            return Error{Code::invalid_argument, "a tag of " + std::to_string(tag.size()) +
                                                     " bytes; this cipher has " +
                                                     std::to_string(s.cipher.tag)};
        const bool one_pass = s.phase == Phase::unverified;
        s.phase = Phase::spent;
        DAEL_LET(whole, s.first->finish());
        if (!modes::equal_tags(whole.data(), tag.data(), tag.size()))
            return pipeline::authentication_failed();
        if (one_pass) return {};
        s.tag = whole;
        s.first_size = std::exchange(s.size, 0);
        s.phase = Phase::verified;
        return {};
    });
}

Result<Block> Pieces::tag() {
    return core::guarded([&]() -> Result<Block> {
        State& s = *state_;
        using Phase = State::Phase;
        if (!s.tagged() || s.seals())
            return out_of_order("tag() is for decryption that authenticates");
        if (s.phase != Phase::aad && s.phase != Phase::unverified)
            return out_of_order("tag() once, at the end of the only pass");
        if (s.cipher.tag > kBlockSize)
            return out_of_order("tag() has 16 bytes; verify() takes tags of 32");
        s.phase = Phase::spent;
        DAEL_LET(whole, s.first->finish());
        Block tag;
        std::copy_n(whole.data(), tag.size(), tag.begin());
        return tag;
    });
}

Result<std::size_t> Pieces::finish(HostOut out) {
    return core::guarded([&]() -> Result<std::size_t> {
        State& s = *state_;
        using Phase = State::Phase;
        if (s.phase == Phase::spent)
            return out_of_order("this message is at its end; restart() begins another");
        if (!s.tagged()) {
            const std::size_t rest = s.held;
            if (rest != 0 && (s.cipher.mode != Mode::xts || rest < kBlockSize))
                return Error{Code::ragged_length,
                             std::to_string(rest) + " bytes are left that fill no block; " +
                                 std::string(name(s.cipher.mode)) + " takes whole ones"};
            if (!out.data() && !out.empty())
                return Error{Code::invalid_argument, "the output is null"};
            if (out.size() < rest)
                return Error{Code::invalid_argument, "output is " + std::to_string(out.size()) +
                                                         " bytes; the last sector has " +
                                                         std::to_string(rest)};
            if (rest != 0) DAEL_TRY(s.check_whole(s.size));
            s.phase = Phase::spent;
            s.held = 0;
            DAEL_TRY(s.run_chain(s.holding.data(), out.data(), rest));
            return rest;
        }
        if (!s.seals() && s.phase != Phase::verified)
            return out_of_order("decryption ends with verify(); finish() is for its second pass");
        if (s.seals() && !out.data()) return Error{Code::invalid_argument, "the tag is null"};
        if (s.seals() && !modes::valid_tag_size(s.cipher.mode, out.size()))
            return modes::no_such_tag(s.cipher.mode, out.size());
        if (s.seals() && s.cipher.mode != Mode::gcm && out.size() != s.cipher.tag)
            return Error{Code::invalid_argument, "a tag of " + std::to_string(out.size()) +
                                                     " bytes; this cipher has " +
                                                     std::to_string(s.cipher.tag)};
        s.phase = Phase::spent;
        DAEL_LET(whole, (s.seals() ? s.first : s.second)->finish());
        if (s.seals()) {
            std::copy_n(whole.data(), out.size(), out.begin());
            return out.size();
        }
        if (s.size != s.first_size || !modes::equal_tags(whole.data(), s.tag.data(), whole.size))
            return Error{Code::authentication,
                         "the second pass was given other data than the first"};
        return 0;
    });
}

Result<Pieces> Pieces::clone() const {
    return core::guarded([&]() -> Result<Pieces> {
        const State& s = *state_;
        auto other = std::make_unique<State>(s.engine, s.cipher, s.key, Start{});
        for (auto pass : {&State::first, &State::second}) {
            if (!(s.*pass)) continue;
            DAEL_LET(pieces, (s.*pass)->clone());
            (*other).*pass = std::move(pieces);
        }
        other->tables = s.tables;
        other->aad_size = s.aad_size;
        other->first_size = s.first_size;
        other->tag = s.tag;
        other->begin_at = s.begin_at;
        other->chain = s.chain;
        other->holding = s.holding;
        other->held = s.held;
        other->keystream = s.keystream;
        other->used = s.used;
        other->begun = s.begun;
        other->phase = s.phase;
        other->size = s.size;
        return Pieces(std::move(other));
    });
}

Result<> Pieces::restart(const Start& start) {
    return core::guarded([&]() -> Result<> {
        State& s = *state_;
        s.begin(start.first);
        for (const auto& pieces : {s.first.get(), s.second.get()})
            if (pieces) DAEL_TRY(s.or_ended([&] { return pieces->restart(start); }));
        return {};
    });
}

}  // namespace dael
