// SPDX-License-Identifier: Apache-2.0
// The same for packets: fillers, tables of SAs, SAs that come, change, move and go, packets, and
// ESP over them. What runs out of memory leaves an SA as it was, and no state of it used up. The
// fillers' own threads have memory enough.
#include <gtest/gtest.h>

#include <daelstrom/daelstrom_packets.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "capi/little_memory.hpp"
#include "support/bytes.hpp"

namespace {

using dael::test::Bytes;
using dael::test::making;
using dael::test::pattern;
using dael::test::then;
using dael::test::with_little_memory;

template <class T>
T sized() {
    T value{};
    value.struct_size = sizeof value;
    return value;
}

constexpr std::size_t kData = 64;

class LittleMemoryPackets : public testing::Test {
  protected:
    void SetUp() override {
        if (!dael::test::kShortMemory) GTEST_SKIP() << "sanitizers have their own allocator";
        auto options = sized<dael_engine_options>();
        options.backend = "openssl";
        options.threads = 1;
        options.uncalibrated = 1;
        ASSERT_EQ(dael_engine_open(&options, &engine_), DAEL_OK);
        ASSERT_EQ(dael_sa_filler_open(engine_, nullptr, &filler_), DAEL_OK) << dael_last_error();
        direct_.plan = DAEL_SA_DIRECT;
        ASSERT_EQ(dael_sa_table_open(filler_, &direct_, &table_), DAEL_OK) << dael_last_error();
        ASSERT_EQ(dael_esp_open(filler_, &direct_, &esp_), DAEL_OK) << dael_last_error();
        esp_sa_.spi = 999;
        dael::test::fail_here_alone(true);
    }
    void TearDown() override {
        dael::test::fail_here_alone(false);
        for (dael_key* key : keys_) dael_key_free(key);
        dael_esp_free(esp_);
        dael_sa_table_close(table_);
        dael_sa_filler_close(filler_);
        dael_engine_close(engine_);
    }
    // One that nobody has sent with.
    dael_key* fresh_key() {
        const dael::test::MemoryEnough enough;
        static std::uint32_t number = 0;
        Bytes raw = pattern(16);
        ++number;
        std::memcpy(raw.data(), &number, sizeof number);
        dael_key* key = nullptr;
        EXPECT_EQ(dael_key_import(raw.data(), 16, &key), DAEL_OK);
        keys_.push_back(key);
        return key;
    }
    std::uint64_t add(const dael_key* key, int direction = DAEL_SA_SENDING) {
        const dael::test::MemoryEnough enough;
        auto options = sized<dael_sa_options>();
        options.direction = direction;
        std::uint64_t sa = 0;
        EXPECT_EQ(dael_sa_add(table_, key, &options, &sa), DAEL_OK) << dael_last_error();
        return sa;
    }
    int seal(std::uint64_t sa) {
        restore(data_, kData);
        const dael_sa_packet packet{data_.data(), data_.data(), kData, nullptr, 0, iv_, tag_};
        return dael_sa_seal(table_, sa, &packet, 1, nullptr, nullptr, nullptr, nullptr);
    }
    static void restore(Bytes& bytes, std::size_t size) {
        const dael::test::MemoryEnough enough;
        bytes = pattern(size);
    }
    std::uint64_t next(std::uint64_t sa) const {
        auto status = sized<dael_sa_status>();
        EXPECT_EQ(dael_sa_read_status(table_, sa, &status), DAEL_OK) << dael_last_error();
        return status.next;
    }
    int encapsulate(dael_esp_sender* sender) {
        restore(buffer_, 200);
        packet_ = {};
        packet_.buffer = buffer_.data();
        packet_.capacity = 200;
        packet_.offset = 40;
        packet_.size = 60;
        packet_.next_header = 6;
        std::size_t sent = 0;
        const int status = dael_esp_encapsulate(sender, &packet_, 1, &sent, nullptr);
        EXPECT_EQ(sent, status == DAEL_OK ? 1u : 0u);
        return status;
    }

    dael_engine* engine_ = nullptr;
    dael_sa_filler* filler_ = nullptr;
    dael_sa_table* table_ = nullptr;
    dael_esp* esp_ = nullptr;
    dael_sa_table_options direct_ = sized<dael_sa_table_options>();
    dael_esp_sa esp_sa_ = sized<dael_esp_sa>();
    std::vector<dael_key*> keys_;
    Bytes data_, buffer_;
    std::uint8_t iv_[12] = {}, tag_[16] = {};
    dael_esp_packet packet_{};
};

TEST_F(LittleMemoryPackets, FillersAndTables) {
    making<dael_sa_filler>(
        "dael_sa_filler_open",
        [&](dael_sa_filler** made) {
            auto options = sized<dael_sa_filler_options>();
            options.threads = 2;
            return dael_sa_filler_open(engine_, &options, made);
        },
        dael_sa_filler_close);
    for (const int plan : {DAEL_SA_DIRECT, DAEL_SA_AHEAD}) {
        auto options = sized<dael_sa_table_options>();
        options.budget = 1 << 20;
        options.plan = plan;
        making<dael_sa_table>(
            "dael_sa_table_open",
            [&](dael_sa_table** made) { return dael_sa_table_open(filler_, &options, made); },
            dael_sa_table_close);
        making<dael_esp>(
            "dael_esp_open",
            [&](dael_esp** made) { return dael_esp_open(filler_, &options, made); }, dael_esp_free);
    }
}

TEST_F(LittleMemoryPackets, SasThatComeChangeAndGo) {
    const dael_key *const key = fresh_key(), *const other = fresh_key();
    const std::uint8_t salt[4] = {};
    std::uint64_t sa = 0;
    const auto add_one = [&] {
        const auto options = sized<dael_sa_options>();
        const int status = dael_sa_add(table_, key, &options, &sa);
        EXPECT_EQ(status == DAEL_OK, sa != 0);
        return status;
    };
    with_little_memory("dael_sa_add",
                       [&] { return then(add_one(), [&] { return dael_sa_remove(table_, sa); }); });
    ASSERT_EQ(add_one(), DAEL_OK) << dael_last_error();
    with_little_memory("dael_sa_rekey", [&] {
        return then(dael_sa_rekey(table_, sa, other, salt),
                    [&] { return dael_sa_rekey(table_, sa, key, salt); });
    });
    with_little_memory("dael_sa_remove", [&] { return then(dael_sa_remove(table_, sa), add_one); });
    EXPECT_EQ(seal(sa), DAEL_OK) << dael_last_error();
}

TEST_F(LittleMemoryPackets, PacketsAndWhatIsSaidOfThem) {
    const dael_key* const key = fresh_key();
    const std::uint64_t out = add(key), in = add(key, DAEL_SA_RECEIVING);
    with_little_memory("dael_sa_seal", [&] { return seal(out); });
    auto sealed = sized<dael_sa_sealed>();
    with_little_memory("dael_sa_seal_telling", [&] {
        restore(data_, kData);
        const dael_sa_packet packet{data_.data(), data_.data(), kData, nullptr, 0, iv_, tag_};
        return dael_sa_seal_telling(table_, out, &packet, 1, nullptr, nullptr, &sealed);
    });
    EXPECT_EQ(sealed.first + 1, next(out));
    const Bytes secret = data_;
    Bytes opened(kData);
    const Bytes plain = pattern(kData), untouched(kData, 0xee);
    with_little_memory(
        "dael_sa_open",
        [&] {
            const dael_sa_packet packet{secret.data(), opened.data(), kData, nullptr, 0, iv_, tag_};
            std::int32_t code = 99;
            int status = dael_sa_open(table_, in, &packet, 1, &code);
            if (status == DAEL_OK) status = code;
            EXPECT_EQ(opened, status == DAEL_OK ? plain : untouched);
            return status;
        },
        [&] { opened = untouched; });
    for (const std::uint64_t sa : {out, std::uint64_t{0}}) {
        auto counters = sized<dael_sa_counters>();
        with_little_memory("dael_sa_count", [&] { return dael_sa_count(table_, sa, &counters); });
        EXPECT_GT(counters.packets, 1u);
    }
    auto status = sized<dael_sa_status>();
    with_little_memory("dael_sa_read_status",
                       [&] { return dael_sa_read_status(table_, out, &status); });
    EXPECT_EQ(status.key_bits, 128);
    auto filling = sized<dael_sa_filling>();
    with_little_memory("dael_sa_read_filling",
                       [&] { return dael_sa_read_filling(table_, &filling); });
    with_little_memory("dael_sa_explain", [&] {
        std::size_t length = 0;
        const int said = dael_sa_explain(
            table_,
            [](void* to, const char* text) { *static_cast<std::size_t*>(to) = std::strlen(text); },
            &length);
        EXPECT_EQ(said == DAEL_OK, length != 0);
        return said;
    });
    with_little_memory("dael_sa_settle", [&] { return dael_sa_settle(table_); });
}

// Whoever could not export goes on sending; and a state that could not be taken over is there for
// the next attempt, though it is taken once.
TEST_F(LittleMemoryPackets, SasThatMove) {
    const dael_key* const key = fresh_key();
    std::uint64_t sa = add(key);
    auto state = sized<dael_sa_state>();
    const auto import = [&] {
        const auto options = sized<dael_sa_options>();
        const int status = dael_sa_import(table_, key, &options, &state, &sa);
        EXPECT_EQ(status == DAEL_OK, sa != 0);
        return status;
    };
    const auto end = [&] {  // it has sent its last
        EXPECT_EQ(seal(sa), DAEL_LIMIT);
        return dael_sa_remove(table_, sa);
    };
    const auto sends_on = [&] { EXPECT_EQ(seal(sa), DAEL_OK) << dael_last_error(); };
    with_little_memory(
        "dael_sa_export", [&] { return dael_sa_export(table_, sa, 9, &state); }, sends_on);
    with_little_memory(
        "dael_sa_export, the last",
        [&] {
            return then(dael_sa_export(table_, sa, 0, &state),
                        [&] { return end() == DAEL_OK ? import() : int{DAEL_INTERNAL}; });
        },
        sends_on);
    EXPECT_EQ(dael_sa_export(table_, sa, 0, &state), DAEL_OK);
    EXPECT_EQ(end(), DAEL_OK);
    with_little_memory("dael_sa_import", [&] {
        return then(import(), [&] {
            EXPECT_EQ(next(sa), state.next);
            sends_on();
            EXPECT_EQ(dael_sa_export(table_, sa, 0, &state), DAEL_OK);
            return end();
        });
    });
}

TEST_F(LittleMemoryPackets, SasOfAFile) {
    char path[] = "/tmp/daelstrom_sas.XXXXXX";
    const int file = mkstemp(path);
    ASSERT_GE(file, 0);
    std::FILE* const stream = fdopen(file, "w");
    std::fputs(
        "SAs = ( { key = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]; nonce = [1];\n"
        " direction = \"receive\"; },\n"
        " { key = [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,17]; nonce = [2];\n"
        " direction = \"receive\"; } );\n",
        stream);
    std::fclose(stream);
    std::vector<std::uint64_t> sas;
    sas.reserve(8);
    const auto load = [&] {
        return dael_sa_load(
            table_, path,
            [](void* to, std::uint64_t sa) {
                static_cast<std::vector<std::uint64_t>*>(to)->push_back(sa);
            },
            &sas);
    };
    const int right = load();
    for (const std::uint64_t sa : sas) EXPECT_EQ(dael_sa_remove(table_, sa), DAEL_OK);
    sas.clear();
    EXPECT_TRUE(right == DAEL_OK || right == DAEL_UNSUPPORTED) << dael_last_error();
    with_little_memory(
        "dael_sa_load",
        [&] {
            const int status = load();
            EXPECT_TRUE(status == DAEL_OK ? sas.size() == 2 : sas.size() < 2);
            const dael::test::MemoryEnough enough;
            for (const std::uint64_t sa : sas) EXPECT_EQ(dael_sa_remove(table_, sa), DAEL_OK);
            sas.clear();
            return status;
        },
        [] {}, right);
    std::remove(path);
}

TEST_F(LittleMemoryPackets, Esp) {
    const dael_key* const key = fresh_key();
    making<dael_esp_sender>(
        "dael_esp_sender_open",
        [&](dael_esp_sender** made) { return dael_esp_sender_open(esp_, key, &esp_sa_, made); },
        dael_esp_sender_free);
    dael_esp_sender* sender = nullptr;
    ASSERT_EQ(dael_esp_sender_open(esp_, key, &esp_sa_, &sender), DAEL_OK) << dael_last_error();
    with_little_memory("dael_esp_encapsulate", [&] { return encapsulate(sender); });
    const auto add_one = [&] { return dael_esp_add(esp_, key, &esp_sa_); };
    with_little_memory("dael_esp_add",
                       [&] { return then(add_one(), [&] { return dael_esp_remove(esp_, 999); }); });
    ASSERT_EQ(add_one(), DAEL_OK) << dael_last_error();
    dael_esp_packet packet{};
    Bytes copy;
    with_little_memory(
        "dael_esp_decapsulate",
        [&] {
            std::size_t accepted = 9;
            const int done = dael_esp_decapsulate(esp_, &packet, 1, DAEL_ESP_PLAIN, &accepted);
            EXPECT_EQ(accepted, packet.verdict == DAEL_ESP_OK ? 1u : 0u);
            // It has no other way to say so, and the packet may come again.
            return packet.verdict == DAEL_ESP_FAULT ? int{DAEL_OUT_OF_MEMORY} : done;
        },
        [&] {
            EXPECT_EQ(encapsulate(sender), DAEL_OK) << dael_last_error();
            copy = buffer_;
            packet = packet_;
            packet.buffer = copy.data();
        });
    EXPECT_EQ(packet.verdict, DAEL_ESP_OK);
    dael_esp_counters counters{};
    for (const std::uint32_t spi : {999, 0})
        with_little_memory("dael_esp_count", [&] { return dael_esp_count(esp_, spi, &counters); });
    EXPECT_GT(counters.packets[DAEL_ESP_OK], 1u);
    with_little_memory("dael_esp_sender_count",
                       [&] { return dael_esp_sender_count(sender, &counters); });
    EXPECT_GT(counters.packets[DAEL_ESP_OK], 1u);
    dael_esp_sender_free(sender);
    with_little_memory("dael_esp_remove",
                       [&] { return then(dael_esp_remove(esp_, 999), add_one); });
}

TEST_F(LittleMemoryPackets, EspThatMoves) {
    const dael_key* const key = fresh_key();
    dael_esp_sender* sender = nullptr;
    auto state = sized<dael_sa_state>();
    ASSERT_EQ(dael_esp_sender_open(esp_, key, &esp_sa_, &sender), DAEL_OK) << dael_last_error();
    const auto import = [&] {
        const int status = dael_esp_sender_import(esp_, key, &esp_sa_, &state, &sender);
        EXPECT_EQ(status == DAEL_OK, sender != nullptr);
        return status;
    };
    const auto end = [&] {
        dael_esp_sender_free(sender);
        return int{DAEL_OK};
    };
    const auto sends_on = [&] {
        EXPECT_EQ(encapsulate(sender), DAEL_OK) << dael_last_error();
        EXPECT_EQ(packet_.verdict, DAEL_ESP_OK);
    };
    with_little_memory(
        "dael_esp_sender_export", [&] { return dael_esp_sender_export(sender, 9, &state); },
        sends_on);
    with_little_memory(
        "dael_esp_sender_export, the last",
        [&] {
            return then(dael_esp_sender_export(sender, 0, &state), [&] {
                end();
                return import();
            });
        },
        sends_on);
    EXPECT_EQ(dael_esp_sender_export(sender, 0, &state), DAEL_OK);
    end();
    with_little_memory("dael_esp_sender_import", [&] {
        return then(import(), [&] {
            sends_on();
            EXPECT_EQ(dael_esp_sender_export(sender, 0, &state), DAEL_OK);
            return end();
        });
    });
    ASSERT_EQ(import(), DAEL_OK) << dael_last_error();
    // The receiver: what it has accepted is replayed after each move.
    ASSERT_EQ(dael_esp_add(esp_, key, &esp_sa_), DAEL_OK) << dael_last_error();
    EXPECT_EQ(encapsulate(sender), DAEL_OK);
    const Bytes wire = buffer_;
    const dael_esp_packet sent = packet_;
    const auto verdict = [&] {
        Bytes copy = wire;
        dael_esp_packet packet = sent;
        packet.buffer = copy.data();
        EXPECT_EQ(dael_esp_decapsulate(esp_, &packet, 1, DAEL_ESP_PLAIN, nullptr), DAEL_OK);
        return int{packet.verdict};
    };
    EXPECT_EQ(verdict(), DAEL_ESP_OK);
    std::uint64_t seen[16] = {};
    auto window = sized<dael_esp_window>();
    const auto whole = [&] {
        window.seen = seen;
        window.words = 16;
    };
    with_little_memory(
        "dael_esp_export",
        [&] {
            whole();
            return dael_esp_export(esp_, 999, 0, &window);
        },
        [&] { EXPECT_EQ(verdict(), DAEL_ESP_REPLAYED); });
    const auto take = [&] {
        whole();
        return dael_esp_export(esp_, 999, 1, &window);
    };
    const auto give = [&] { return dael_esp_import(esp_, key, &esp_sa_, &window); };
    with_little_memory(
        "dael_esp_export, and away", [&] { return then(take(), give); },
        [&] { EXPECT_EQ(verdict(), DAEL_ESP_REPLAYED); });
    EXPECT_EQ(take(), DAEL_OK);
    with_little_memory(
        "dael_esp_import", [&] { return then(give(), take); },
        [&] { EXPECT_EQ(verdict(), DAEL_ESP_UNKNOWN_SPI); });
    dael_esp_sender_free(sender);
}

}  // namespace
