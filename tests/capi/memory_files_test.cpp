// SPDX-License-Identifier: Apache-2.0
// The same for files, streams through callbacks, keysets, lists and the calibration. Nothing of a
// file is left that was not finished, and no descriptor.
#include <gtest/gtest.h>

#include <daelstrom/daelstrom_sealed.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include <daelstrom/plan.hpp>

#include "capi/little_memory_sealed.hpp"

namespace {

using dael::test::all_are;
using dael::test::Bytes;
using dael::test::LittleMemorySealed;
using dael::test::making;
using dael::test::MemoryEnough;
using dael::test::pattern;
using dael::test::with_little_memory;

std::size_t count(const std::filesystem::path& folder) {
    std::size_t all = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++all;
    return all;
}

class LittleMemoryFiles : public LittleMemorySealed {
  protected:
    void SetUp() override {
        LittleMemorySealed::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        char name[] = "/tmp/daelstrom-memory-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        path_ = name;
        folder_ = open(name, O_RDONLY | O_DIRECTORY);
        descriptors_ = count("/proc/self/fd");
    }
    void TearDown() override {
        if (!path_.empty()) {
            EXPECT_EQ(count("/proc/self/fd"), descriptors_);
            close(folder_);
            std::filesystem::remove_all(path_);
        }
        LittleMemorySealed::TearDown();
    }

    std::string path_;
    int folder_ = -1;
    std::size_t descriptors_ = 0;
};

TEST_F(LittleMemoryFiles, InTheirPlaces) {
    const auto content = [&] {
        std::ifstream file(path_ + "/file", std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
    for (const bool replaced : {false, true}) {
        dael_file_options options{};
        options.struct_size = sizeof options;
        options.existing = replaced ? DAEL_FILE_REPLACED : 0;
        options.secret = 1;
        with_little_memory(
            replaced ? "a file replaced" : "a new file",
            [&] {
                dael_file* file = reinterpret_cast<dael_file*>(&options);
                int error = 0;
                int status = dael_file_begin(folder_, "file", &options, &file, &error);
                EXPECT_EQ(status == DAEL_OK, file != nullptr);
                if (status == DAEL_OK) {
                    EXPECT_EQ(dael_file_replaces(file), replaced);
                    EXPECT_EQ(dael_file_is_stream(file), 0);
                    EXPECT_EQ(write(dael_file_fd(file), "new", 3), 3);
                    status = dael_file_commit(file, &error);
                    (void)dael_file_warning(file, 0);
                }
                dael_file_discard(file);
                const MemoryEnough enough;
                const std::size_t there = count(path_);
                EXPECT_EQ(there, status == DAEL_OK || replaced ? 1u : 0u) << "a rest of it";
                if (there != 0) {
                    EXPECT_EQ(content(), status == DAEL_OK ? "new" : "old");
                }
                return status;
            },
            [&] {
                std::filesystem::remove(path_ + "/file");
                if (replaced) std::ofstream(path_ + "/file") << "old";
            });
    }
}

TEST_F(LittleMemoryFiles, DescriptorsAndKeys) {
    std::ofstream(path_ + "/key") << "000102030405060708090a0b0c0d0e0f\n";
    std::filesystem::create_directory(path_ + "/below");
    const auto opened = [&](int (*open_it)(int, const char*, int*, int*), const char* name) {
        return [=, this] {
            int fd = 7, error = 0;
            const int status = open_it(folder_, name, &fd, &error);
            EXPECT_EQ(status == DAEL_OK, fd >= 0);
            if (fd >= 0) close(fd);
            return status;
        };
    };
    with_little_memory(
        "dael_file_open_locked",
        opened([](int folder, const char* name, int* fd,
                  int* error) -> int { return dael_file_open_locked(folder, name, fd, error); },
               "key"));
    with_little_memory(
        "dael_file_open_below",
        opened([](int folder, const char* name, int* fd,
                  int* error) -> int { return dael_file_open_below(folder, name, fd, error); },
               "below"));
    dael_file_identity identity;
    const int key_file = openat(folder_, "key", O_RDONLY);
    with_little_memory("dael_file_identify",
                       [&] { return dael_file_identify(key_file, &identity); });
    close(key_file);
    Bytes key(32);
    std::size_t size = 0;
    std::uint32_t open_to = 0;
    const auto expect_key = [&](int status) {
        EXPECT_EQ(size, status == DAEL_OK ? 16u : 0u);
        return status;
    };
    with_little_memory("dael_key_decode", [&] {
        return expect_key(
            dael_key_decode("000102030405060708090a0b0c0d0e0f", 32, "this", key.data(), &size));
    });
    with_little_memory("dael_key_read_file", [&] {
        int error = 0;
        return expect_key(dael_key_read_file(folder_, "key", key.data(), &size, &open_to, &error));
    });
}

// Where streams come from and go to: memory that is there already.
struct Ends {
    const Bytes* from;
    std::size_t at = 0;
    Bytes to;
    std::size_t written = 0;
    static std::int64_t read(void* context, void* out, std::size_t size) {
        auto& ends = *static_cast<Ends*>(context);
        size = std::min({size, ends.from->size() - ends.at, std::size_t{777}});
        std::memcpy(out, ends.from->data() + ends.at, size);
        ends.at += size;
        return static_cast<std::int64_t>(size);
    }
    static int read_at(void* context, std::uint64_t at, void* out, std::size_t size) {
        std::memcpy(out, static_cast<Ends*>(context)->from->data() + at, size);
        return 0;
    }
    static int write(void* context, const void* bytes, std::size_t size) {
        auto& ends = *static_cast<Ends*>(context);
        if (size > ends.to.size() - ends.written) return 1;
        std::memcpy(ends.to.data() + ends.written, bytes, size);
        ends.written += size;
        return 0;
    }
};

TEST_F(LittleMemoryFiles, StreamsThroughCallbacks) {
    Ends ends{&plain_, 0, Bytes(sealed_.size()), 0};
    std::uint64_t size = 0;
    const auto again = [&] { ends.at = ends.written = 0; };
    with_little_memory(
        "dael_sealed_seal_stream",
        [&] {
            const int status = dael_sealed_seal_stream(engine_, keys_, nullptr, 0, Ends::read,
                                                       &ends, Ends::write, &ends, &size, nullptr);
            EXPECT_TRUE(status != DAEL_OK || ends.written == sealed_.size());
            return status;
        },
        again);
    ends.from = &sealed_;
    with_little_memory(
        "dael_sealed_open_stream",
        [&] {
            const int status = dael_sealed_open_stream(engine_, keys_, nullptr, 0, Ends::read,
                                                       &ends, Ends::write, &ends, &size, nullptr);
            EXPECT_TRUE(ends.written <= plain_.size() &&
                        std::memcmp(ends.to.data(), plain_.data(), ends.written) == 0);
            EXPECT_TRUE(status != DAEL_OK || ends.written == plain_.size());
            return status;
        },
        again);
}

TEST_F(LittleMemoryFiles, SealedFiles) {
    Ends ends{&sealed_, 0, {}, 0};
    const auto open_it = [&](dael_sealed_file** file) {
        return dael_sealed_file_open(engine_, keys_, nullptr, 0, Ends::read_at, &ends,
                                     sealed_.size(), file);
    };
    making<dael_sealed_file>("dael_sealed_file_open", open_it, dael_sealed_file_close);
    Bytes out(5'000);
    with_little_memory("dael_sealed_file_check_size", [&] {
        dael_sealed_file* file = nullptr;
        int status = open_it(&file);
        EXPECT_EQ(dael_sealed_file_size(file), status == DAEL_OK ? plain_.size() : 0);
        if (status == DAEL_OK) status = dael_sealed_file_check_size(file);
        dael_sealed_file_close(file);
        return status;
    });
    dael_sealed_file* file = nullptr;
    ASSERT_EQ(open_it(&file), DAEL_OK);
    with_little_memory(
        "dael_sealed_file_read",
        [&] {
            const int status = dael_sealed_file_read(file, 3'000, out.data(), out.size(), nullptr);
            EXPECT_TRUE(status == DAEL_OK ? std::memcmp(out.data(), &plain_[3'000], out.size()) == 0
                                          : all_are(out, 0));
            return status;
        },
        [&] { std::ranges::fill(out, std::uint8_t{0}); });
    // Without a device it is refused, and nothing else.
    with_little_memory(
        "dael_sealed_file_read_all",
        [&] {
            const int status =
                dael_sealed_file_read_all(file, out.data(), plain_.size(), nullptr, 1, nullptr);
            EXPECT_TRUE(all_are(out, 0x77));
            return status;
        },
        [&] { std::ranges::fill(out, std::uint8_t{0x77}); }, DAEL_UNSUPPORTED);
    dael_sealed_file_close(file);
}

TEST_F(LittleMemoryFiles, ChunksInPlace) {
    with_little_memory("in place", [&] {
        dael_sealer* sealer = nullptr;
        dael_opener* opener = nullptr;
        dael_sealed_layout layout;
        dael_sealed_chunk chunk;
        int status = dael_sealer_start(engine_, keys_, nullptr, 0, &sealer);
        if (status == DAEL_OK) status = dael_sealer_layout(sealer, &layout);
        if (status == DAEL_OK) status = dael_sealer_next(sealer, 5'000, 1, &chunk);
        static std::uint8_t bytes[8'000];
        std::uint64_t sealed = 0, plain = 0;
        if (status == DAEL_OK) status = dael_sealed_size_of_plain(&layout, 5'000, &sealed);
        if (status == DAEL_OK) status = dael_sealed_plain_size(&layout, sealed, &plain);
        const dael_sealed_range all{0, 5'000};
        dael_sealed_range place;
        if (status == DAEL_OK) status = dael_sealed_covering(&layout, &all, 5'000, &chunk);
        if (status == DAEL_OK) status = dael_sealed_place(&layout, &chunk, 0, &place);
        if (status == DAEL_OK)
            status = dael_sealer_seal_in_place(sealer, bytes, sealed, 5'000, 1, nullptr);
        if (status == DAEL_OK) {
            status = dael_opener_start(engine_, keys_, nullptr, 0, bytes,
                                       dael_opener_head_size(keys_), 0, &opener);
        }
        if (status == DAEL_OK)
            status = dael_opener_open_in_place(opener, &chunk, bytes, sealed, nullptr);
        dael_sealer_free(sealer);
        dael_opener_free(opener);
        return status;
    });
}

TEST_F(LittleMemoryFiles, Keysets) {
    making<dael_sealed_keyset>(
        "dael_sealed_keyset_create",
        [](dael_sealed_keyset** made) { return dael_sealed_keyset_create(made); },
        dael_sealed_keyset_free);
    dael_sealed_keyset* keyset = nullptr;
    std::uint32_t first = 0, second = 0;
    const char* const name = "AES256_GCM_HKDF_4KB";
    ASSERT_EQ(dael_sealed_keyset_create(&keyset), DAEL_OK);
    ASSERT_EQ(dael_sealed_keyset_add(keyset, name, &first), DAEL_OK);
    ASSERT_EQ(dael_sealed_keyset_add(keyset, name, &second), DAEL_OK);
    Bytes json(dael_sealed_keyset_json_size(keyset));
    with_little_memory("dael_sealed_keyset_write_json", [&] {
        return dael_sealed_keyset_write_json(keyset, json.data(), json.size());
    });
    const auto parse = [&](dael_sealed_keyset** made) {
        return dael_sealed_keyset_parse(json.data(), json.size(), made);
    };
    making<dael_sealed_keyset>("dael_sealed_keyset_parse", parse, dael_sealed_keyset_free);
    making<dael_sealed_keys>(
        "dael_sealed_keys_parse",
        [&](dael_sealed_keys** made) {
            return dael_sealed_keys_parse(json.data(), json.size(), made);
        },
        dael_sealed_keys_free);
    // Each change to a keyset of its own, which is as before where it fails.
    const auto changes = [&](const char* what,
                             const std::function<int(dael_sealed_keyset*)>& change) {
        with_little_memory(what, [&] {
            dael_sealed_keyset* changed = nullptr;
            {
                const MemoryEnough enough;
                EXPECT_EQ(parse(&changed), DAEL_OK);
            }
            const int status = change(changed);
            const MemoryEnough enough;
            Bytes text(dael_sealed_keyset_json_size(changed));
            EXPECT_EQ(dael_sealed_keyset_write_json(changed, text.data(), text.size()), DAEL_OK);
            EXPECT_EQ(text == json, status != DAEL_OK);
            dael_sealed_keyset_free(changed);
            return status;
        });
    };
    changes("dael_sealed_keyset_add", [&](dael_sealed_keyset* set) {
        std::uint32_t id = 0;
        return dael_sealed_keyset_add(set, name, &id);
    });
    changes("dael_sealed_keyset_promote",
            [&](dael_sealed_keyset* set) { return dael_sealed_keyset_promote(set, second); });
    changes("dael_sealed_keyset_disable",
            [&](dael_sealed_keyset* set) { return dael_sealed_keyset_disable(set, second); });
    changes("dael_sealed_keyset_remove",
            [&](dael_sealed_keyset* set) { return dael_sealed_keyset_remove(set, second); });
    with_little_memory("dael_sealed_keyset_enable",
                       [&] { return dael_sealed_keyset_enable(keyset, second); });
    dael_sealed_keyset_entry entry{};
    entry.struct_size = sizeof entry;
    with_little_memory("dael_sealed_keyset_entry_at",
                       [&] { return dael_sealed_keyset_entry_at(keyset, 1, &entry); });
    EXPECT_EQ(dael_sealed_keyset_count(keyset), 2u);
    dael_sealed_keyset_free(keyset);
}

TEST_F(LittleMemoryFiles, PassphrasesAndListsOfRecipients) {
    making<dael_recipients>(
        "dael_recipients_of_passphrase",
        [](dael_recipients** made) { return dael_recipients_of_passphrase("word", 4, 1, made); },
        dael_recipients_free);
    making<dael_identities>(
        "dael_identities_of_passphrase",
        [](dael_identities** made) { return dael_identities_of_passphrase("word", 4, 1, made); },
        dael_identities_free);
    char identity[DAEL_IDENTITY_SIZE + 1], recipient[DAEL_RECIPIENT_SIZE + 1];
    ASSERT_EQ(dael_identity_make(identity, recipient), DAEL_OK);
    dael_recipients *to = nullptr, *others = nullptr;
    dael_identities *by = nullptr, *more = nullptr;
    const auto fresh = [&] {
        dael_recipients_free(to);
        dael_identities_free(by);
        ASSERT_EQ(dael_recipients_parse(recipient, std::strlen(recipient), &to), DAEL_OK);
        ASSERT_EQ(dael_identities_parse(identity, std::strlen(identity), &by), DAEL_OK);
    };
    ASSERT_EQ(dael_recipients_parse(recipient, std::strlen(recipient), &others), DAEL_OK);
    ASSERT_EQ(dael_identities_parse(identity, std::strlen(identity), &more), DAEL_OK);
    with_little_memory(
        "dael_recipients_add", [&] { return dael_recipients_add(to, others); }, fresh);
    with_little_memory(
        "dael_identities_add", [&] { return dael_identities_add(by, more); }, fresh);
    dael_recipients_free(to);
    dael_recipients_free(others);
    dael_identities_free(by);
    dael_identities_free(more);
    // By a passphrase, envelopes take scrypt's memory.
    ASSERT_EQ(dael_recipients_of_passphrase("word", 4, 1, &to), DAEL_OK);
    Bytes envelope(dael_recipients_envelope_size(to));
    making<dael_sealed_keys>(
        "dael_envelope_make",
        [&](dael_sealed_keys** made) {
            return dael_envelope_make(to, 4096, envelope.data(), envelope.size(), made);
        },
        dael_sealed_keys_free);
    EXPECT_EQ(dael_is_envelope(envelope.data(), envelope.size()), 1);
    dael_envelope_info info{};
    info.struct_size = sizeof info;
    with_little_memory("dael_envelope_read",
                       [&] { return dael_envelope_read(envelope.data(), envelope.size(), &info); });
    dael_recipients_free(to);
    char hybrid[DAEL_HYBRID_IDENTITY_SIZE + 1], long_one[DAEL_HYBRID_RECIPIENT_SIZE + 1];
    const int right = dael_identity_make_hybrid(hybrid, long_one);
    EXPECT_TRUE(right == DAEL_OK || right == DAEL_UNSUPPORTED);
    with_little_memory(
        "dael_identity_make_hybrid", [&] { return dael_identity_make_hybrid(hybrid, long_one); },
        [] {}, right);
}

// What drivers of other makers allocate does not fail: they end the process.
TEST_F(LittleMemoryFiles, ListsAndCalibrations) {
    with_little_memory("dael_engine_backends", [&] {
        return dael_engine_backends(
            engine_, [](void*, const char*) {}, nullptr);
    });
    setenv("XDG_CACHE_HOME", path_.c_str(), 1);
    const dael::Calibration calibration{
        "a machine", "2025-01-01T00:00:00Z", {{"openssl", {}, {}, 128, .1, .1, .1, .1}}, {}};
    const std::string folder = path_ + "/daelstrom";
    with_little_memory("what calibrating stores", [&] {
        const auto stored = dael::store(calibration);
        const MemoryEnough enough;
        if (std::filesystem::exists(folder)) {
            EXPECT_EQ(count(folder), std::filesystem::exists(dael::calibration_path()) ? 1u : 0u);
        }
        return static_cast<int>(stored.code());
    });
    with_little_memory("what dael_engine_open() reads", [&] {
        (void)dael::load_calibration();  // or none, with which an engine works too
        return static_cast<int>(DAEL_OK);
    });
    unsetenv("XDG_CACHE_HOME");
}

}  // namespace
