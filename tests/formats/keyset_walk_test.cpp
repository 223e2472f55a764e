// SPDX-License-Identifier: Apache-2.0
// Random walks over keysets that are changed, against a model: what is refused changes nothing,
// what is done is whole, and the text says the same as the object at any time.
#include <daelstrom/sealed_keys.hpp>

#include "formats/keysets.hpp"
#include "support/thorough.hpp"
#include "support/walks.hpp"

namespace dael::test {
namespace {

using sealed::Keyset;
using Status = Keyset::Status;

class Walk {
  public:
    explicit Walk(std::uint64_t seed) : random_(seed) {
        if (random_.below(2) == 0) return;
        // As other programs may have left it: with a key of another type, one that is destroyed,
        // and a primary key that is none.
        const bool usable = random_.below(2) == 0;
        const std::string value = base64(key_message({.key = Bytes(16, 1)}));
        keyset_ = must(Keyset::parse(
            bytes_of(R"({"primaryKeyId":)" + std::to_string(usable ? 7 : 8) + R"(,"key":[)" +
                     key_json(value, 7) + "," + key_json(value, 8, "DISABLED") + "," +
                     key_json("AAAA", 9, "ENABLED", "AesGcmKey") + "," +
                     R"({"status":"DESTROYED","keyId":10,"outputPrefixType":"RAW"}]})")));
        model_ = {{7, Status::enabled},
                  {8, Status::disabled},
                  {9, Status::enabled},
                  {10, Status::destroyed}};
        primary_ = usable ? 7 : 8;
    }

    void step() {
        switch (random_.below(7)) {
            case 0:
                return add();
            case 1:
                return changed(&Keyset::promote, &Walk::promote);
            case 2:
                return changed(&Keyset::enable, &Walk::enable);
            case 3:
            case 4:
                return changed(&Keyset::disable, &Walk::disable);
            case 5:
                return changed(&Keyset::remove, &Walk::remove);
            default:
                return reread();
        }
    }

    void check() const {
        const auto entries = keyset_.entries();
        ASSERT_EQ(entries.size(), model_.size());
        ASSERT_EQ(keyset_.size(), model_.size());
        for (std::size_t i = 0; i < entries.size(); ++i) {
            EXPECT_EQ(entries[i].id, model_[i].id);
            EXPECT_EQ(entries[i].status, model_[i].status);
            EXPECT_EQ(entries[i].primary, seals(model_[i]));
        }
    }

  private:
    struct Key {
        std::uint32_t id;
        Status status;
    };

    bool seals(const Key& key) const { return key.id == primary_ && key.status == Status::enabled; }
    bool has_primary() const {
        return std::ranges::any_of(model_, [this](const Key& key) { return seals(key); });
    }

    void add() {
        if (random_.below(8) == 0) {
            EXPECT_EQ(keyset_.add("AES512_GCM_HKDF_1MB").code(), Code::invalid_argument);
            return;
        }
        const bool first = !has_primary();
        const auto id = keyset_.add(sealed::kTemplates[random_.below(4)]);
        ASSERT_TRUE(id);
        EXPECT_NE(*id, 0u);
        EXPECT_TRUE(std::ranges::none_of(model_, [&](const Key& key) { return key.id == *id; }));
        model_.push_back({*id, Status::enabled});
        if (first) primary_ = *id;
    }

    // A call of a keyset's, and whether the model lets it.
    void changed(Result<> (Keyset::*call)(std::uint32_t), bool (Walk::*model)(Key&)) {
        const bool known = !model_.empty() && random_.below(8) != 0;
        const std::uint32_t id = known ? model_[random_.below(model_.size())].id : 12345;
        const auto key = std::ranges::find(model_, id, &Key::id);
        const auto done = (keyset_.*call)(id);
        const bool may = key != model_.end() && (this->*model)(*key);
        EXPECT_EQ(bool(done), may) << (done ? "" : done.error().message);
        if (!done) {
            EXPECT_EQ(done.code(), Code::invalid_argument);
            EXPECT_NE(done.error().message.find(std::to_string(id)), std::string::npos);
        }
    }
    bool promote(Key& key) {
        if (key.status != Status::enabled) return false;
        primary_ = key.id;
        return true;
    }
    bool enable(Key& key) {
        if (key.status == Status::destroyed) return false;
        key.status = Status::enabled;
        return true;
    }
    bool disable(Key& key) {
        if (seals(key) || key.status == Status::destroyed) return false;
        key.status = Status::disabled;
        return true;
    }
    bool remove(Key& key) {
        if (seals(key)) return false;
        model_.erase(model_.begin() + (&key - model_.data()));
        return true;
    }

    // From its text, where a keyset is that has a key; a buffer that does not fit is not written.
    void reread() {
        Bytes text(keyset_.json_size() + 1, 0xa5);
        EXPECT_EQ(keyset_.write_json(text).code(), Code::invalid_argument);
        EXPECT_TRUE(all_are(text, 0xa5));
        text.pop_back();
        must(keyset_.write_json(text));
        auto again = Keyset::parse(text);
        ASSERT_EQ(bool(again), !model_.empty());
        if (!again) return;
        keyset_ = std::move(*again);
        Bytes once_more(keyset_.json_size());
        must(keyset_.write_json(once_more));
        EXPECT_EQ(text, once_more);
    }

    Random random_;
    Keyset keyset_;
    std::vector<Key> model_;
    std::uint32_t primary_ = 0;
};

TEST(KeysetWalk, ChangesAreWholeOrNone) {
    for (Walks walks("keysets", thorough(200, 30)); walks.next();) {
        SCOPED_TRACE(walks.text());
        Walk walk(walks.seed());
        for (int i = 0; i < 60; ++i) {
            walk.step();
            walks.step();
            walk.check();
            if (testing::Test::HasFailure()) return;
        }
    }
}

}  // namespace
}  // namespace dael::test
