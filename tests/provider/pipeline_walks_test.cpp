// SPDX-License-Identifier: Apache-2.0
// Random walks over pipelines: their calls in any order beside as many single contexts of the
// default provider. What ours refuses for its arguments changes nothing; after what it refuses amid
// the work, both begin anew.
#include "pipeline_ways.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

#include <algorithm>

namespace {

using namespace dael::test;

constexpr std::size_t kAround = 32, kBlock = 16;

// One message of the default provider's, by its table: its own checks alone.
class Alone {
  public:
    Alone(const Functions& f, bool seals) : f_(&f), seals_(seals) {
        x_ = f.find<OSSL_FUNC_cipher_newctx_fn>(OSSL_FUNC_CIPHER_NEWCTX)(
            OSSL_PROVIDER_get0_provider_ctx(theirs().standard));
    }
    ~Alone() { f_->find<OSSL_FUNC_cipher_freectx_fn>(OSSL_FUNC_CIPHER_FREECTX)(x_); }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

    bool set(const char* name, const Bytes& bytes) {
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_octet_string(
                                      name, const_cast<std::uint8_t*>(bytes.data()), bytes.size()),
                                  OSSL_PARAM_construct_end()};
        return set(one);
    }
    bool pad(bool padded) {
        unsigned number = padded;
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &number),
                                  OSSL_PARAM_construct_end()};
        return set(one);
    }
    bool begin(const Bytes& key, const Bytes& iv, bool gcm) {
        std::size_t size = iv.size();
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_IVLEN, &size),
                                  OSSL_PARAM_construct_end()};
        return (!gcm || set(one)) &&
               f_->find<OSSL_FUNC_cipher_encrypt_init_fn>(seals_ ? 2 : 3)(
                   x_, key.data(), key.size(), iv.data(), iv.size(), nullptr) == 1;
    }
    bool update(std::uint8_t* out, std::size_t& made, std::size_t room, const std::uint8_t* in,
                std::size_t size) {
        made = 0;
        return f_->find<OSSL_FUNC_cipher_update_fn>(OSSL_FUNC_CIPHER_UPDATE)(x_, out, &made, room,
                                                                             in, size) == 1;
    }
    bool final(std::uint8_t* out, std::size_t& made) {
        made = 0;
        return f_->find<OSSL_FUNC_cipher_final_fn>(OSSL_FUNC_CIPHER_FINAL)(x_, out, &made,
                                                                           kBlock) == 1;
    }
    Bytes tag() {
        Bytes bytes(kBlock);
        OSSL_PARAM one[] = {
            OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, bytes.data(), kBlock),
            OSSL_PARAM_construct_end()};
        return f_->find<OSSL_FUNC_cipher_get_ctx_params_fn>(OSSL_FUNC_CIPHER_GET_CTX_PARAMS)(
                   x_, one) == 1
                   ? bytes
                   : Bytes{};
    }

  private:
    bool set(const OSSL_PARAM* params) {
        return f_->find<OSSL_FUNC_cipher_set_ctx_params_fn>(OSSL_FUNC_CIPHER_SET_CTX_PARAMS)(
                   x_, params) == 1;
    }
    const Functions* f_;
    bool seals_;
    void* x_;
};

struct Message {
    std::unique_ptr<Alone> alone;
    Bytes iv, aad, in;      // so far
    std::size_t waits = 0;  // CBC
};

class PipelineWalk {
  public:
    PipelineWalk(Numbers& numbers, const std::string& name, bool by_table)
        : numbers_(numbers),
          default_(theirs().standard, name),
          way_(way_to(name, by_table)),
          table_(by_table ? static_cast<ByTable*>(way_.get()) : nullptr),
          gcm_(name.find("GCM") != std::string::npos),
          cbc_(name.find("CBC") != std::string::npos),
          key_size_(static_cast<std::size_t>(std::stoi(name.substr(4))) / 8) {}

    std::string run(int steps, Walks& walks) {
        for (int i = 0; i < steps && fault_.empty(); ++i) {
            walks.step();
            one();
        }
        return fault_.empty() ? "" : fault_ + "\n" + log_;
    }

  private:
    enum class State { none, begun, ended };

    void fail(const std::string& what) {
        if (fault_.empty()) fault_ = what;
    }
    // `right` is what should come; an error only where it fails.
    bool call(const std::string& what, bool right, const std::function<bool()>& work) {
        log_ += "  " + what + (right ? "\n" : ", refused\n");
        ERR_clear_error();
        const bool got = work();
        if (got && ERR_peek_error() != 0) fail("leaves an error though it succeeds");
        ERR_clear_error();
        if (got != right) fail(what + (right ? ": refused" : ": taken"));
        return got;
    }
    std::size_t size(std::size_t count) {
        const std::size_t most = count > 6 ? 2500 : 160000;
        return numbers_.one_in(3) ? numbers_.below(40) : numbers_.size() % most;
    }

    void begin() {
        const std::size_t count = 1 + (numbers_.one_in(3) ? numbers_.below(32) : numbers_.below(5));
        const std::size_t iv_size = !gcm_ ? 16 : numbers_.one_in(5) ? 1 + numbers_.below(40) : 12;
        const bool seals = numbers_.one_in(2), with_ivs = !numbers_.one_in(8);
        const bool with_key = key_.empty() ? !numbers_.one_in(6) : numbers_.one_in(2);
        const Bytes key = numbers_.one_in(3) && !key_.empty() ? key_ : numbers_.bytes(key_size_);
        std::vector<Bytes> ivs(count);
        for (Bytes& iv : ivs) iv = numbers_.bytes(iv_size);
        if (numbers_.one_in(8)) ivs.back() = ivs.front();
        std::vector<const std::uint8_t*> pointers;
        for (const Bytes& iv : ivs) pointers.push_back(iv.data());
        const std::string what = std::string("begin ") + (seals ? "to seal " : "to open ") +
                                 std::to_string(count) + (with_key ? " key" : "") +
                                 (with_ivs ? " ivs of " + std::to_string(iv_size) : "");
        if (numbers_.one_in(6)) return refused_begin(what, seals, key, pointers, iv_size);
        const bool right = with_key || !key_.empty() || !with_ivs;
        if (!call(what, right, [&] {
                return way_->begin(seals, with_key ? &key : nullptr, pointers, iv_size, with_ivs);
            })) {
            // EVP counts the messages before it asks.
            if (!table_) nothing();
            return;
        }
        if (with_key) key_ = key;
        messages_.clear();
        messages_.resize(count);
        seals_ = seals;
        state_ = with_ivs ? State::begun : State::none;
        opened_ = may_refuse_ = tagged_ = false;
        tag_size_ = 0;
        if (!with_ivs) return;
        for (std::size_t i = 0; i < count; ++i) {
            Message& m = messages_[i];
            m.iv = ivs[i];
            m.alone = std::make_unique<Alone>(default_, seals);
            if (cbc_) m.alone->pad(padded_);
            if (!m.alone->begin(key_, m.iv, gcm_)) fail("the default provider does not begin");
        }
    }
    void nothing() {
        state_ = State::none;
        messages_.clear();
    }
    void refused_begin(const std::string& what, bool seals, const Bytes& key,
                       std::vector<const std::uint8_t*> ivs, std::size_t iv_size) {
        const Bytes other = numbers_.bytes(key_size_ == 32 ? 16 : 32);
        const Bytes* given = &key;
        switch (numbers_.below(4)) {
            case 0:
                ivs[numbers_.below(ivs.size())] = nullptr;
                break;
            case 1:
                iv_size = numbers_.one_in(2) || !gcm_ ? 0 : 129;
                break;
            case 2:
                ivs.resize(33, ivs[0]);
                break;
            default:
                given = &other;
        }
        call(what + " wrongly", false, [&] { return way_->begin(seals, given, ivs, iv_size); });
        if (!table_) nothing();
    }

    void pad() {
        if (!cbc_ || (!table_ && messages_.empty())) return;  // EVP needs the cipher first
        padded_ = numbers_.one_in(2);
        unsigned number = padded_;
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_PADDING, &number),
                                  OSSL_PARAM_construct_end()};
        call("padding " + std::to_string(number), true, [&] { return way_->set(one); });
        for (Message& m : messages_)
            if (m.alone) m.alone->pad(padded_);
    }

    struct Lists {
        std::vector<std::uint8_t*> out;
        std::vector<const std::uint8_t*> in;
        std::vector<std::size_t> written, room, size;
        explicit Lists(std::size_t count)
            : out(count), in(count), written(count), room(count), size(count) {}
    };
    void aad() {
        if (!gcm_) return;
        const std::size_t count = messages_.size();
        if (count == 0) return;
        Lists l(count);
        std::vector<Bytes> in(count);
        const bool large = numbers_.one_in(4);
        for (std::size_t i = 0; i < count; ++i) {
            in[i] = numbers_.bytes(numbers_.below(large ? 200 : 14));
            l.in[i] = in[i].data();
            l.size[i] = in[i].size();
        }
        bool right = state_ == State::begun;
        const bool begun = right;
        for (std::size_t i = 0; i < count && begun; ++i) {
            std::size_t made = 0;
            right = messages_[i].alone->update(nullptr, made, in[i].size(), in[i].data(),
                                               in[i].size()) &&
                    right;
            messages_[i].aad.insert(messages_[i].aad.end(), in[i].begin(), in[i].end());
        }
        const bool nulls = numbers_.one_in(2);  // or no list at all
        call("aad", right, [&] {
            return way_->update(nulls ? l.out.data() : nullptr, l.written.data(), nullptr,
                                l.in.data(), l.size.data());
        });
        if (begun && !right) state_ = State::ended;
        if (right && l.written != l.size) fail("sizes of additional data");
    }

    // What would come of `bytes` more of message `m`, and the tag that is right for it.
    Bytes right_tag(const Message& m, const Bytes& more) {
        Alone opens(default_, false), seals(default_, true);
        Bytes all = m.in;
        all.insert(all.end(), more.begin(), more.end());
        Bytes plain(all.size()), again(all.size() + kBlock);
        std::size_t made = 0;
        bool ok = opens.begin(key_, m.iv, true) && seals.begin(key_, m.iv, true);
        ok = ok && opens.update(plain.data(), made, plain.size(), all.data(), all.size());
        if (!m.aad.empty())
            ok = ok && seals.update(nullptr, made, m.aad.size(), m.aad.data(), m.aad.size());
        ok = ok && seals.update(again.data(), made, again.size(), plain.data(), plain.size()) &&
             seals.final(again.data(), made);
        if (!ok) fail("the default provider does not seal");
        return seals.tag();
    }
    void set_tags(std::vector<Bytes> tags, std::size_t bytes, bool wrongly) {
        std::vector<std::uint8_t*> pointers;
        for (Bytes& tag : tags) pointers.push_back(tag.data());
        if (wrongly) pointers[numbers_.below(pointers.size())] = nullptr;
        void* list = pointers.data();
        const OSSL_PARAM one[] = {OSSL_PARAM_construct_octet_ptr("pipeline-tag", &list, bytes),
                                  OSSL_PARAM_construct_end()};
        const bool right = !wrongly && !seals_ && bytes != 0 && bytes <= 16;
        call("tags of " + std::to_string(bytes), right, [&] { return way_->set(one); });
        if (!right) return;
        if (opened_ && bytes > opened_size_) may_refuse_ = true;
        tag_size_ = bytes;
        for (std::size_t i = 0; i < tags.size(); ++i) {
            tags[i].resize(bytes);
            if (messages_[i].alone) messages_[i].alone->set(OSSL_CIPHER_PARAM_AEAD_TAG, tags[i]);
        }
    }
    void some_tags() {
        if (!gcm_ || messages_.empty() || state_ == State::none) return;
        std::vector<Bytes> tags;
        const bool right = state_ == State::begun && !seals_ && !numbers_.one_in(3);
        for (const Message& m : messages_)
            tags.push_back(right ? right_tag(m, {}) : numbers_.bytes(32));
        set_tags(std::move(tags), numbers_.one_in(3) ? numbers_.below(18) : 16, numbers_.one_in(8));
    }

    void data() {
        const std::size_t count = messages_.size();
        if (count == 0) return;
        const bool even = numbers_.one_in(2), little = numbers_.one_in(12);
        const std::size_t manner = numbers_.below(4);  // 0 in place; 1 overlapping
        const std::size_t all = size(count);
        std::vector<Bytes> in(count);
        for (Bytes& b : in) b = numbers_.bytes(even ? all : size(count));
        const bool begun = state_ == State::begun;
        if (gcm_ && begun && !seals_ && numbers_.one_in(2)) {
            std::vector<Bytes> tags;
            for (std::size_t i = 0; i < count; ++i) tags.push_back(right_tag(messages_[i], in[i]));
            if (numbers_.one_in(4)) tags[numbers_.below(count)][0] ^= 1;
            static constexpr std::size_t kSizes[] = {16, 16, 16, 12, 8, 5};
            set_tags(std::move(tags), kSizes[numbers_.below(6)], false);
        }
        Lists l(count);
        std::vector<Bytes> right_areas(count), areas(count);
        std::vector<std::size_t> made(count);
        bool right = begun, touches = false;
        const std::size_t narrow = little ? numbers_.below(count) : count;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t bytes = in[i].size();
            const long shift = manner == 1 ? static_cast<long>(numbers_.below(41)) - 20 : 0;
            if (shift != 0 && bytes != 0) touches = true;
            for (Bytes* area : {&areas[i], &right_areas[i]}) {
                area->assign(bytes + 4 * kAround, 0x5a);
                if (manner < 2) std::copy(in[i].begin(), in[i].end(), &(*area)[kAround] + shift);
            }
            l.out[i] = &areas[i][kAround];
            l.in[i] = manner < 2 ? l.out[i] + shift : in[i].data();
            l.size[i] = bytes;
            // CBC: as much as comes of it.
            std::size_t makes = bytes;
            if (cbc_) {
                const std::size_t there = messages_[i].waits + bytes;
                makes = there / kBlock * kBlock;
                if (!seals_ && padded_ && makes == there && makes != 0) makes -= kBlock;
            }
            l.room[i] = i == narrow && makes != 0 ? makes - 1 : makes;
            if (l.room[i] < makes) right = false;
        }
        // In place, output of CBC lies before or behind its input once something waits.
        if (cbc_ && manner < 2)
            for (const Message& m : messages_) touches = touches || m.waits != 0 || !seals_;
        const bool refused = begun && !right;
        if (right)
            for (std::size_t i = 0; i < count; ++i) {
                std::uint8_t* const out = &right_areas[i][kAround];
                const std::uint8_t* const from =
                    manner < 2 ? out + (l.in[i] - l.out[i]) : in[i].data();
                if (!messages_[i].alone->update(out, made[i], in[i].size() + kBlock, from,
                                                in[i].size()))
                    right = false;
            }
        log_ += "  data " + std::to_string(in[0].size()) + " manner " + std::to_string(manner) +
                (refused ? ", too little room" : "") + "\n";
        ERR_clear_error();
        const bool got =
            way_->update(l.out.data(), l.written.data(), l.room.data(), l.in.data(), l.size.data());
        if (got && ERR_peek_error() != 0) fail("leaves an error though it succeeds");
        ERR_clear_error();
        if (refused || !begun) {
            if (got) fail(begun ? "too little room is taken" : "data is taken without a message");
            return;
        }
        // Sealed on by the engine, output that overlaps is refused; what was opened whole takes no
        // more.
        const bool may_refuse = may_refuse_ || (gcm_ && (seals_ ? touches : opened_));
        if (!got && right && may_refuse) {
            state_ = State::ended;
            return;
        }
        if (got != right) return fail(right ? "data is refused" : "data is taken");
        if (!got) {
            state_ = State::ended;
            return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            Message& m = messages_[i];
            if (l.written[i] != made[i]) return fail("sizes");
            if (areas[i] != right_areas[i]) return fail("bytes of message " + std::to_string(i));
            m.waits += in[i].size() - made[i];
            m.in.insert(m.in.end(), in[i].begin(), in[i].end());
            if (in[i].size() == 0 || tag_size_ == 0 || opened_) continue;
            opened_ = true;
            opened_size_ = tag_size_;
        }
    }

    void end() {
        const std::size_t count = messages_.size();
        if (count == 0) return;
        const bool begun = state_ == State::begun;
        if (gcm_ && begun && !seals_ && numbers_.one_in(2)) {
            std::vector<Bytes> tags;
            for (const Message& m : messages_) tags.push_back(right_tag(m, {}));
            set_tags(std::move(tags), 16, false);
        }
        Lists l(count);
        std::vector<Bytes> areas(count, Bytes(kBlock + 2 * kAround, 0x5a)), right_areas = areas;
        const bool little = cbc_ && seals_ && padded_ && begun && numbers_.one_in(4);
        for (std::size_t i = 0; i < count; ++i) {
            l.out[i] = &areas[i][kAround];
            l.room[i] = kBlock;
        }
        if (little) l.room[numbers_.below(count)] = kBlock - 1;
        bool right = begun && !little;
        std::vector<std::size_t> made(count);
        for (std::size_t i = 0; i < count && begun && !little; ++i)
            right = messages_[i].alone->final(&right_areas[i][kAround], made[i]) && right;
        const bool lists = cbc_ || numbers_.one_in(2);
        log_ += std::string("  final") + (right ? "\n" : ", refused\n");
        ERR_clear_error();
        const bool got = way_->final(lists ? l.out.data() : nullptr, l.written.data(),
                                     lists ? l.room.data() : nullptr);
        if (got && ERR_peek_error() != 0) fail("leaves an error though it succeeds");
        ERR_clear_error();
        if (got != right && !(right && may_refuse_))
            return fail(right ? "the end is refused" : "an end is taken");
        if (little || !begun) return;
        state_ = State::ended;
        tagged_ = got && seals_;
        if (!got) return;
        for (std::size_t i = 0; i < count; ++i)
            if (l.written[i] != made[i] || areas[i] != right_areas[i])
                return fail("the end of message " + std::to_string(i));
        if (numbers_.one_in(2)) get_tags();
    }
    void get_tags() {
        if (!gcm_ || messages_.empty()) return;
        const std::size_t bytes = numbers_.one_in(3) ? numbers_.below(18) : 16;
        std::vector<Bytes> tags(messages_.size(), Bytes(32, 0x5a));
        std::vector<std::uint8_t*> pointers;
        for (Bytes& tag : tags) pointers.push_back(tag.data());
        void* list = pointers.data();
        OSSL_PARAM one[] = {OSSL_PARAM_construct_octet_ptr("pipeline-tag", &list, bytes),
                            OSSL_PARAM_construct_end()};
        const bool right = tagged_ && state_ == State::ended && bytes != 0 && bytes <= 16;
        if (!right && state_ == State::ended && seals_) return;  // of those that came to an end
        if (!call("get tags of " + std::to_string(bytes), right, [&] { return way_->get(one); }))
            return;
        for (std::size_t i = 0; i < tags.size(); ++i) {
            Bytes tag = messages_[i].alone->tag();
            tag.resize(bytes);
            tag.resize(32, 0x5a);
            if (tags[i] != tag) fail("the tag of message " + std::to_string(i));
        }
    }
    void copy() {
        if (!table_ || messages_.empty()) return;
        const bool runs = state_ == State::begun;
        if (state_ == State::none) return;
        call("copy", !runs, [&] { return table_->copies(); });
    }

    void one() {
        if (state_ != State::begun && numbers_.one_in(2)) return begin();
        switch (numbers_.below(16)) {
            case 0:
                return begin();
            case 1:
                return pad();
            case 2:
            case 3:
                return aad();
            case 4:
                return some_tags();
            case 5:
                return get_tags();
            case 6:
            case 7:
            case 8:
                return end();
            case 9:
                return copy();
            default:
                return data();
        }
    }

    Numbers& numbers_;
    Functions default_;
    std::unique_ptr<Ways> way_;
    ByTable* table_;
    bool gcm_, cbc_;
    std::size_t key_size_, tag_size_ = 0, opened_size_ = 0;
    Bytes key_;
    std::vector<Message> messages_;
    State state_ = State::none;
    bool seals_ = true, padded_ = true, opened_ = false, may_refuse_ = false, tagged_ = false;
    std::string fault_, log_;
};

class PipelineWalks : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ciphers, PipelineWalks,
                         ::testing::Values("AES-128-GCM", "AES-256-GCM", "AES-128-CBC",
                                           "AES-256-CBC", "AES-192-CTR", "AES-256-CTR"));

TEST_P(PipelineWalks, AreSoManyMessagesOfTheDefaultProviders) {
    ASSERT_TRUE(ours().daelstrom);
    for (int kind = 0; kind < kWays; ++kind)
        for (Walks walks(GetParam(), thorough<std::uint64_t>(400, 60));
             walks.next() && !HasFailure();) {
            Numbers numbers(walks.seed());
            const std::string fault = PipelineWalk(numbers, GetParam(), kind == 0).run(30, walks);
            EXPECT_TRUE(fault.empty())
                << walks.text() << (kind == 0 ? ", table\n" : ", EVP\n") << fault;
        }
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
}

}  // namespace
