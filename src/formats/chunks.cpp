// SPDX-License-Identifier: Apache-2.0
#include "formats/chunks.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/guard.hpp"
#include "core/process.hpp"
#include "core/wipe_at_end.hpp"

namespace dael {

Result<> formats::check_apart(HostIn in, HostIn out) {
    const auto at = [](HostIn bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); };
    const bool overlap = !in.empty() && !out.empty() && at(in) < at(out) + out.size() &&
                         at(out) < at(in) + in.size();
    if (!overlap) return {};
    return Error{Code::overlap,
                 "input and output overlap; plaintext and sealed data must lie apart"};
}

namespace sealed {
namespace {

Error wrong_size(const char* what, std::uint64_t is, std::uint64_t wanted) {
    return {Code::invalid_argument, std::string(what) + " has " + std::to_string(is) +
                                        " bytes; this chunk takes " + std::to_string(wanted)};
}

// A Sealer's only caller for as long as this lives, or refused.
class OnlyCaller {
  public:
    explicit OnlyCaller(Sealer::State& state)
        : state_(state), alone_(!state.busy.test_and_set(std::memory_order_acquire)) {}
    OnlyCaller(const OnlyCaller&) = delete;
    ~OnlyCaller() {
        if (alone_) state_.busy.clear(std::memory_order_release);
    }
    Result<> check() const {
        // A parent's thread that was sealing does not go on in the child.
        if (alone_ || state_.process != core::this_process()) return {};
        return Error{Code::invalid_argument,
                     "another thread seals with this at the moment, and the nonces would repeat; "
                     "seal from one thread at a time"};
    }

  private:
    Sealer::State& state_;
    const bool alone_;
};

// The next chunk of a stream that is not over.
Result<Chunk> next_of(const Sealer::State& state, std::uint64_t plain, bool last) {
    const char* over =
        state.ended    ? "the stream has had its last chunk"
        : state.failed ? "a chunk failed, and its nonces must not be used again"
        : state.process != core::this_process()
            ? "the stream belongs to this process's parent, whose nonces would repeat"
            : nullptr;
    if (over) return Error{Code::invalid_argument, std::string(over) + "; start another stream"};
    return state.cipher.layout().of_plain(state.next, plain, last);
}

Result<Ran> seal_chunk(Sealer::State& state, const Chunk& chunk, std::uint8_t* sealed,
                       std::uint8_t* plain) {
    if (chunk.count == 0) return Ran{};
    if (chunk.first == 0) std::ranges::copy(state.cipher.header(), sealed);
    state.failed = true;  // unless all goes well
    auto ran = state.cipher.run(Direction::encrypt, chunk, sealed, plain);
    if (!ran) return ran;
    state.failed = false;
    state.ended = chunk.last;
    state.next = chunk.first + chunk.count;
    return ran;
}

// The chunk as its bytes say it is.
Result<Chunk> checked(const Layout& layout, const Chunk& chunk, std::uint64_t sealed,
                      std::uint64_t plain) {
    auto found = layout.of_sealed(chunk.first, sealed, chunk.last);
    if (!found) return found;
    if (chunk.sealed.size != sealed) return wrong_size("the input", sealed, chunk.sealed.size);
    if (found->plain.size != plain) return wrong_size("the output", plain, found->plain.size);
    return found;
}

}  // namespace

Sealer::Sealer(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Sealer::Sealer(Sealer&&) noexcept = default;
Sealer& Sealer::operator=(Sealer&&) noexcept = default;
Sealer::~Sealer() = default;

Result<Sealer> Sealer::start(Engine& engine, const Keys& keys, HostIn aad) {
    return core::guarded([&]() -> Result<Sealer> {
        auto cipher = formats::SegmentCipher::start(engine, keys.state().keys.front(), aad);
        if (!cipher) return std::move(cipher).error();
        return Sealer(std::make_unique<State>(std::move(*cipher), core::this_process()));
    });
}

const Layout& Sealer::layout() const noexcept {
    return state_->cipher.layout();
}

Result<Chunk> Sealer::next(std::uint64_t plain, bool last) const {
    return core::guarded([&]() -> Result<Chunk> {
        const OnlyCaller only(*state_);
        DAEL_TRY(only.check());
        return next_of(*state_, plain, last);
    });
}

Result<Ran> Sealer::seal(HostIn plain, HostOut sealed, bool last) {
    return core::guarded([&]() -> Result<Ran> {
        const OnlyCaller only(*state_);
        DAEL_TRY(only.check());
        const auto chunk = next_of(*state_, plain.size(), last);
        if (!chunk) return chunk.error();
        if (sealed.size() < chunk->sealed.size)
            return wrong_size("the output", sealed.size(), chunk->sealed.size);
        DAEL_TRY(formats::check_apart(plain, sealed.first(chunk->sealed.size)));
        // An empty plaintext may be at no address, and still is not in place.
        std::uint8_t nothing = 0;
        auto* const from = plain.empty() ? &nothing : const_cast<std::uint8_t*>(plain.data());
        return seal_chunk(*state_, *chunk, sealed.data(), from);
    });
}

Result<Ran> Sealer::seal_in_place(HostOut bytes, std::uint64_t plain, bool last) {
    return core::guarded([&]() -> Result<Ran> {
        const OnlyCaller only(*state_);
        DAEL_TRY(only.check());
        const auto chunk = next_of(*state_, plain, last);
        if (!chunk) return chunk.error();
        if (bytes.size() < chunk->sealed.size)
            return wrong_size("the memory", bytes.size(), chunk->sealed.size);
        return seal_chunk(*state_, *chunk, bytes.data(), nullptr);
    });
}

Opener::Opener(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Opener::Opener(Opener&&) noexcept = default;
Opener& Opener::operator=(Opener&&) noexcept = default;
Opener::~Opener() = default;

std::size_t Opener::head_size(const Keys& keys) noexcept {
    return formats::head_size(keys);
}

Result<Opener> Opener::start(Engine& engine, const Keys& keys, HostIn aad, HostIn head,
                             bool whole) {
    return core::guarded([&]() -> Result<Opener> {
        auto cipher = formats::find_key(engine, keys, aad, head, whole);
        if (!cipher) return std::move(cipher).error();
        return Opener(std::make_unique<State>(State{std::move(*cipher)}));
    });
}

const Layout& Opener::layout() const noexcept {
    return state_->cipher.layout();
}

Result<Ran> Opener::open(const Chunk& chunk, HostIn sealed, HostOut plain) const {
    return core::guarded([&]() -> Result<Ran> {
        const auto good = checked(layout(), chunk, sealed.size(), plain.size());
        if (!good) return good.error();
        DAEL_TRY(formats::check_apart(sealed, plain));
        core::WipeAtEnd unless_done(plain.data(), plain.size());
        std::uint8_t nothing = 0;
        auto ran =
            state_->cipher.run(Direction::decrypt, *good, const_cast<std::uint8_t*>(sealed.data()),
                               plain.empty() ? &nothing : plain.data());
        if (ran) unless_done.keep();
        return ran;
    });
}

Result<Ran> Opener::open_in_place(const Chunk& chunk, HostOut bytes) const {
    return core::guarded([&]() -> Result<Ran> {
        const auto good = checked(layout(), chunk, bytes.size(), chunk.plain.size);
        if (!good) return good.error();
        core::WipeAtEnd unless_done(bytes.data(), bytes.size());
        auto ran = state_->cipher.run(Direction::decrypt, *good, bytes.data(), nullptr);
        if (ran) unless_done.keep();
        return ran;
    });
}

}  // namespace sealed
}  // namespace dael
