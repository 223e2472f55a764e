// SPDX-License-Identifier: Apache-2.0
// Random walks over tables of SAs: they come, change keys, are exported and go on elsewhere, and
// go, while packets flow, the device fails or hangs, or cannot be waited for, memory runs out and
// the process forks. Held against a model that knows which key and number each packet must have: no
// IV serves twice under a key, none goes back, and of what is removed no keystream is left.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <thread>

#include "keystream/failing_memory.hpp"
#include "keystream/flow.hpp"
#include "pipeline/engine_state.hpp"
#include "support/child.hpp"
#include "support/host_device.hpp"
#include "support/memory_search.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace {

using namespace dael;
using namespace dael::test;

// What was sealed under a key, by whichever SA.
struct UsedKey {
    std::set<Bytes> ivs;
    unsigned __int128 end = 0;  // layout stream: one above the last counter
};

struct Sa {
    std::size_t table = 0;
    SaId id;
    Bytes raw;
    SaOptions options;
    std::uint64_t next = 1, epoch = 1;
    std::uint64_t may = ~std::uint64_t{0};  // send up to this number
    bool taken_over = false;                // its exported state was imported
};

class Walk {
  public:
    explicit Walk(std::uint64_t seed) : random_(seed) {
        const bool runs = random_.below(2);
        HostDeviceOptions of_device;
        of_device.reads_lists = !runs;
        of_device.makes_keystream = runs;
        of_device.fail_at = random_.below(2) ? 1 + static_cast<int>(random_.below(300)) : 0;
        of_device.delay = std::chrono::microseconds(random_.below(3) * 20);
        of_device.gives_up = random_.below(2);
        device_.emplace(of_device);
        Engine engine = pipeline::make_engine(std::make_unique<HostDeviceBackend>(*device_));
        auto filler = SaFiller::open(
            engine,
            {.threads = 1 + static_cast<int>(random_.below(2)),
             .lanes = 2,
             // What is lost stays, so that nothing would tell when a thread that is left has ended.
             .patience_ms = of_device.gives_up ? 60000u : 20u});
        if (!filler) return;  // where it fails at once
        for (auto& table : tables_) {
            SaTableOptions options;
            options.plan = SaTableOptions::Plan::ahead;
            options.budget = std::size_t{65536} << random_.below(5);
            options.idle_ms = random_.below(3) == 0 ? 1 : 60000;
            auto opened = SaTable::open(*filler, options);
            if (!opened) return;
            table.emplace(std::move(*opened));
        }
        for (int i = 0; i < 3; ++i) add();
    }
    ~Walk() {
        device_->hang(false);
        if (device_->options().gives_up) device_->fail(0);
        if (tables_[1] && !sas_.empty() && !hung_ && device_->given_up() == 0)
            look_for_what_is_left();
        for (auto& table : tables_) table.reset();
        if (device_->given_up() != 0) {
            for (const auto& violation : device_->violations()) ADD_FAILURE() << violation;
            return;
        }
        for (int i = 0; i < 20000 && device_->live() != 0; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        expect_clean(*device_);
    }

    void step() {
        if (!tables_[1]) return;
        if (sas_.empty()) return add();
        Sa& sa = sas_[random_.below(sas_.size())];
        switch (random_.below(24)) {
            case 0:
                return sas_.size() < 10 ? add() : remove(sa);
            case 1:
                return remove(sa);
            case 2:
                return rekey(sa);
            case 3:
                return hand_on(sa);
            case 4:
            case 5:
                if (!hung_) table(sa).settle();
                return;
            case 6:
                if (device_->options().gives_up && random_.below(2))
                    return device_->fail(1 + static_cast<int>(random_.below(30)), "wait for*",
                                         1 + static_cast<int>(random_.below(8)));
                if (random_.below(4) == 0) device_->hang(hung_ = !hung_);
                return;
            case 7:
                if (random_.below(40) == 0) fork_with(sa);
                return;
            case 8:
                return without_memory(sa);
            default:
                return seal(sa);
        }
    }

  private:
    SaTable& table(const Sa& sa) { return *tables_[sa.table]; }

    void add() {
        Sa sa;
        sa.table = random_.below(2);
        sa.options.layout = random_.below(4) == 0 ? SaLayout::stream : SaLayout::rfc4106;
        sa.options.ivs = random_.below(2) ? SaIvs::by_size : SaIvs::counting;
        if (random_.below(5) == 0) sa.options.limit = 1 + random_.below(300);
        sa.raw = fresh_key(random_, 16 + 8 * random_.below(3));
        const auto id = table(sa).add(key_of(sa.raw), sa.options);
        ASSERT_TRUE(id) << id.error().message;
        sa.id = *id;
        sas_.push_back(std::move(sa));
    }
    void forget(Sa& sa) {
        std::swap(sa, sas_.back());
        sas_.pop_back();
    }
    void remove(Sa& sa) {
        ASSERT_TRUE(table(sa).remove(sa.id));
        EXPECT_EQ(table(sa).status(sa.id).code(), Code::invalid_argument);
        const bool used = used_.contains(sa.raw) || exported_.contains(sa.raw);
        SaTable& any = *tables_[random_.below(2)];
        auto again = any.add(key_of(sa.raw), sa.options);
        EXPECT_EQ(again.code(), used ? Code::invalid_argument : Code::ok);
        if (again) {
            EXPECT_TRUE(any.remove(*again));
        }
        forget(sa);
    }
    void rekey(Sa& sa) {
        if (used_.contains(sa.raw)) {
            EXPECT_EQ(table(sa).rekey(sa.id, key_of(sa.raw), sa.options.salt).code(),
                      Code::invalid_argument);
        }
        const Bytes raw = fresh_key(random_, 16 + 8 * random_.below(3));
        ASSERT_TRUE(table(sa).rekey(sa.id, key_of(raw), sa.options.salt));
        rekeyed(sa, raw);
    }
    static void rekeyed(Sa& sa, const Bytes& raw) {
        sa.raw = raw;
        sa.next = 1;
        ++sa.epoch;
        sa.may = ~std::uint64_t{0};
        sa.taken_over = false;
    }

    // Exported, and perhaps taken over by another SA, in the other table or its own.
    void hand_on(Sa& sa) {
        const std::uint64_t more =
            sa.options.layout == SaLayout::stream ? 0 : random_.below(3) * random_.below(60);
        const auto state = table(sa).export_state(sa.id, more);
        if (sa.taken_over) {
            EXPECT_EQ(state.code(), Code::invalid_argument);
            return;
        }
        ASSERT_TRUE(state) << state.error().message;
        exported_.insert(sa.raw);
        EXPECT_LE(state->next, sa.next + more);
        EXPECT_GE(state->next, sa.next);
        sa.may = state->next - 1;
        if (random_.below(3) == 0) return;
        Sa other = sa;
        other.table = random_.below(2);
        other.epoch = 1;
        other.next = state->next;
        other.may = ~std::uint64_t{0};
        const auto id = table(other).add(key_of(other.raw), other.options, *state);
        if (other.next > other.options.limit) {  // at its end; whether it is taken or not
            if (id) (void)table(other).remove(*id);
            sa.taken_over = sa.taken_over || id;
            return;
        }
        ASSERT_TRUE(id) << id.error().message;
        EXPECT_EQ(table(other).add(key_of(other.raw), other.options, *state).code(),
                  Code::invalid_argument)
            << "taken over twice";
        other.id = *id;
        sa.taken_over = true;
        sas_.push_back(std::move(other));
    }

    void seal(Sa& sa) {
        const std::size_t count = 1 + random_.below(random_.below(4) == 0 ? 70 : 12);
        std::vector<Sent> batch(count);
        std::vector<SaPacket> packets;
        const std::size_t usual = random_.below(1500);
        for (Sent& sent : batch) {
            sent.plain.resize(random_.below(5) == 0 ? random_.below(3000) : usual);
            sent.sealed = sent.plain;
            sent.iv.resize(iv_size(sa.options.layout));
            sent.tag.resize(16);
            packets.push_back({sent.sealed.data(), sent.sealed.data(), sent.sealed.size(), nullptr,
                               0, sent.iv.data(), sent.tag.data()});
        }
        const std::uint64_t most = std::min(sa.may, sa.options.limit);
        const bool fits = count <= most - (sa.next - 1);
        const auto sealed = table(sa).seal(sa.id, packets);
        if (!fits) {
            EXPECT_EQ(sealed.code(), Code::limit);
            for (const Sent& sent : batch) EXPECT_TRUE(sent.sealed == sent.plain);
            return;
        }
        ASSERT_TRUE(sealed) << sealed.error().message;
        EXPECT_EQ(sealed->first, sa.next);
        EXPECT_EQ(sealed->epoch, sa.epoch);
        sa.next += count;
        note(sa, batch);
        expect_right(sa.raw, sa.options, batch[random_.below(count)]);
    }
    void note(const Sa& sa, const std::vector<Sent>& batch) {
        UsedKey& used = used_[sa.raw];
        for (const Sent& sent : batch) {
            if (sa.options.layout == SaLayout::rfc4106) {
                EXPECT_TRUE(used.ivs.insert(sent.iv).second) << "an IV twice under a key";
                continue;
            }
            unsigned __int128 counter = 0;
            for (const std::uint8_t byte : sent.iv) counter = counter << 8 | byte;
            EXPECT_TRUE(counter >= used.end) << "a counter twice under a key";
            used.end = counter + 1 + (sent.plain.size() + 15) / 16;
        }
    }

    void fork_with(const Sa& sa) {
        expect_in_a_child([&] {
            std::uint8_t byte = 0, iv[12] = {}, tag[16] = {};
            const SaPacket packet{&byte, &byte, 1, nullptr, 0, iv, tag};
            SaTable& its = table(sa);
            its.settle();
            return its.seal(sa.id, {&packet, 1}).code() == Code::limit &&
                   its.status(sa.id).code() == Code::limit && its.counters().packets == 0 &&
                   its.export_state(sa.id).code() == Code::limit &&
                   its.remove(sa.id).code() == Code::limit;
        });
    }

    // A call while memory runs out at some allocation.
    void without_memory(Sa& sa) {
        const auto nth = static_cast<long>(random_.below(12));
        const Bytes raw = fresh_key(random_, 16);
        const Key key = key_of(raw);
        std::uint8_t byte = 0;
        Sent sent{Bytes(iv_size(sa.options.layout)), {}, Bytes(1), Bytes(1), Bytes(16)};
        const SaPacket packet{&byte, &byte, 1, nullptr, 0, sent.iv.data(), sent.tag.data()};
        const std::uint64_t what = random_.below(3);
        Code code = Code::ok;
        std::optional<SaId> added;
        allocations_left = nth;
        if (what == 0) {
            code = table(sa).rekey(sa.id, key, sa.options.salt).code();
        } else if (what == 1) {
            auto id = table(sa).add(key, sa.options);
            code = id.code();
            if (id) added = *id;
        } else {
            code = table(sa).seal(sa.id, {&packet, 1}).code();
        }
        allocations_left = -1;
        if (added) (void)table(sa).remove(*added);
        if (what == 0 && code == Code::ok) rekeyed(sa, raw);
        const auto status = table(sa).status(sa.id);
        ASSERT_TRUE(status);
        EXPECT_EQ(status->epoch, sa.epoch) << "half done";
        if (what != 2) {
            EXPECT_EQ(status->next, sa.next);
            return;
        }
        EXPECT_TRUE(status->next == sa.next + 1 || (code != Code::ok && status->next == sa.next));
        if (code == Code::ok) {
            sent.sealed[0] = byte;
            note(sa, {sent});
            expect_right(sa.raw, sa.options, sent);
        }
        sa.next = status->next;
    }

    // One SA goes, while the others may go on.
    void look_for_what_is_left() {
        Sa& sa = sas_.front();
        MemorySearch noted;
        std::array<std::uint8_t, 1024> data;
        std::uint8_t iv[12], tag[16];
        for (int i = 0; i < 200; ++i) {
            wipe(data.data(), data.size());
            const SaPacket packet{data.data(), data.data(), data.size(), nullptr, 0, iv, tag};
            if (!table(sa).seal(sa.id, {&packet, 1})) break;
            noted.add(std::span(data).subspan(512, 16));
            if (i % 16 == 0) table(sa).settle();
        }
        wipe(data.data(), data.size());
        // And whoever took over from it, or it from whom: what is made ahead of time is the same.
        const Bytes raw = sa.raw;
        for (std::size_t i = sas_.size(); i-- > 0;)
            if (sas_[i].raw == raw) {
                ASSERT_TRUE(table(sas_[i]).remove(sas_[i].id));
                forget(sas_[i]);
            }
        if (!sas_.empty()) seal(sas_.front());
        // What is being written over, and what lanes keep, goes by itself and soon.
        std::size_t found = 1;
        for (int i = 0; i < 200 && found != 0; ++i) {
            for (auto& table : tables_) table->settle();
            // Sanitizers keep what is freed, and their own memory is long to look through.
            found = kSanitized ? 0 : noted.found();
            if (found != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        EXPECT_EQ(found, 0u) << "of " << noted.size();
    }

    Random random_;
    std::optional<HostDevice> device_;
    std::array<std::optional<SaTable>, 2> tables_;
    std::vector<Sa> sas_;
    std::map<Bytes, UsedKey> used_;
    std::set<Bytes> exported_;
    bool hung_ = false;
};

TEST(TableWalk, NoCounterTwiceAndNothingLeft) {
    for (Walks walks("tables of SAs", thorough(40, 8)); walks.next();) {
        SCOPED_TRACE(walks.text());
        Walk walk(walks.seed());
        for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
            walk.step();
            walks.step();
        }
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
