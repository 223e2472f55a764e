// SPDX-License-Identifier: Apache-2.0
// Sealed data for C: keys, memory, streams through callbacks, and files.
#include "capi/sealed.hpp"

#include <optional>

using dael::Code;
using dael::Error;
using dael::HostIn;
using dael::HostOut;
using dael::Result;
using namespace dael::capi;

static_assert(DAEL_SEALED_SMALL_SEGMENT == dael::sealed::kSmallSegment);
static_assert(DAEL_SEALED_LARGE_SEGMENT == dael::sealed::kLargeSegment);

// A File refers to its engine, so that it is made where both stay.
struct dael_sealed_file {
    dael::Engine engine;
    std::shared_ptr<const dael::sealed::Keys> keys;
    std::optional<dael::sealed::File> file;
};

namespace {

Error callback_failed(const char* what, std::int64_t status) {
    return {Code::io, std::string(what) + " failed with status " + std::to_string(status)};
}
dael::sealed::Read reader(dael_read read, void* context) {
    return [=](HostOut out) -> Result<std::size_t> {
        const std::int64_t got = read(context, out.data(), out.size());
        if (got < 0) return callback_failed("reading", got);
        return static_cast<std::size_t>(got);
    };
}
dael::sealed::Write writer(dael_write write, void* context) {
    return [=](HostIn in) -> Result<> {
        if (const int status = write(context, in.data(), in.size()); status != 0)
            return callback_failed("writing", status);
        return {};
    };
}

Result<> done_with(const Result<dael::sealed::Done>& done, std::uint64_t* size, dael_ran* ran) {
    if (!done) return done.error();
    if (size) *size = done->size;
    return report(done->ran, ran);
}

// What sealing and opening of streams have in common; `run` is one of dael::sealed's.
template <class Run>
dael_status stream(dael_engine* engine, const dael_sealed_keys* keys, const void* aad,
                   std::size_t aad_size, dael_read read, void* read_context, dael_write write,
                   void* write_context, std::uint64_t* size, dael_ran* ran, Run&& run) {
    return call([&]() -> Result<> {
        if (size) *size = 0;
        DAEL_TRY(given({{engine, "engine"}, {keys, "keys"}}));
        DAEL_TRY(readable(aad, aad_size, "aad"));
        if (!read || !write) return null(read ? "write" : "read");
        return done_with(run(engine->engine, *keys->keys, bytes(aad, aad_size),
                             reader(read, read_context), writer(write, write_context)),
                         size, ran);
    });
}

}  // namespace

extern "C" {

dael_status dael_sealed_keys_import(const void* data, size_t size, uint32_t segment,
                                    dael_sealed_keys** keys) {
    return hand_out(keys, "keys", [&]() -> Result<dael_sealed_keys*> {
        DAEL_TRY(given({{data, "the key's bytes"}}));
        return make_keys(
            dael::sealed::Keys::from_key(bytes(data, size), segment_or_large(segment)));
    });
}
dael_status dael_sealed_keys_parse(const void* json, size_t size, dael_sealed_keys** keys) {
    return hand_out(keys, "keys", [&]() -> Result<dael_sealed_keys*> {
        DAEL_TRY(given({{json, "json"}}));
        return make_keys(dael::sealed::Keys::from_keyset(bytes(json, size)));
    });
}
dael_status dael_sealed_keys_sealing(const dael_sealed_keys* keys, dael_sealed_keys** alone) {
    return hand_out(alone, "alone", [&]() -> Result<dael_sealed_keys*> {
        DAEL_TRY(given({{keys, "keys"}}));
        return make_keys(keys->keys->sealing());
    });
}
uint32_t dael_sealed_keys_segment(const dael_sealed_keys* keys) {
    return keys ? keys->keys->segment() : 0;
}
void dael_sealed_keys_free(dael_sealed_keys* keys) {
    release(keys);
}

dael_status dael_sealed_size(const dael_sealed_keys* keys, uint64_t plain, uint64_t* sealed) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{keys, "keys"}, {sealed, "sealed"}}));
        DAEL_LET(size, dael::sealed::sealed_size(*keys->keys, plain));
        *sealed = size;
        return {};
    });
}

dael_status dael_sealed_seal(dael_engine* engine, const dael_sealed_keys* keys, const void* aad,
                             size_t aad_size, const void* plain, size_t plain_size, void* sealed,
                             size_t sealed_size, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}, {keys, "keys"}, {sealed, "sealed"}}));
        DAEL_TRY(readable(aad, aad_size, "aad"));
        DAEL_TRY(readable(plain, plain_size, "plain"));
        return done_with(dael::sealed::seal(engine->engine, *keys->keys, bytes(aad, aad_size),
                                            bytes(plain, plain_size), bytes(sealed, sealed_size)),
                         nullptr, ran);
    });
}
dael_status dael_sealed_open(dael_engine* engine, const dael_sealed_keys* keys, const void* aad,
                             size_t aad_size, const void* sealed, size_t sealed_size, void* plain,
                             size_t plain_room, uint64_t* plain_size, dael_ran* ran) {
    return call([&]() -> Result<> {
        if (plain_size) *plain_size = 0;
        DAEL_TRY(given({{engine, "engine"}, {keys, "keys"}}));
        DAEL_TRY(readable(aad, aad_size, "aad"));
        DAEL_TRY(readable(sealed, sealed_size, "sealed"));
        DAEL_TRY(readable(plain, plain_room, "plain"));
        return done_with(dael::sealed::open(engine->engine, *keys->keys, bytes(aad, aad_size),
                                            bytes(sealed, sealed_size), bytes(plain, plain_room)),
                         plain_size, ran);
    });
}

dael_status dael_sealed_seal_stream(dael_engine* engine, const dael_sealed_keys* keys,
                                    const void* aad, size_t aad_size, dael_read read,
                                    void* read_context, dael_write write, void* write_context,
                                    uint64_t* size, dael_ran* ran) {
    return stream(engine, keys, aad, aad_size, read, read_context, write, write_context, size, ran,
                  [](auto&&... all) { return dael::sealed::seal(all...); });
}
dael_status dael_sealed_open_stream(dael_engine* engine, const dael_sealed_keys* keys,
                                    const void* aad, size_t aad_size, dael_read read,
                                    void* read_context, dael_write write, void* write_context,
                                    uint64_t* size, dael_ran* ran) {
    return stream(engine, keys, aad, aad_size, read, read_context, write, write_context, size, ran,
                  [](auto&&... all) { return dael::sealed::open(all...); });
}

dael_status dael_sealed_file_open(dael_engine* engine, const dael_sealed_keys* keys,
                                  const void* aad, size_t aad_size, dael_read_at read,
                                  void* context, uint64_t size, dael_sealed_file** file) {
    return hand_out(file, "file", [&]() -> Result<dael_sealed_file*> {
        DAEL_TRY(given({{engine, "engine"}, {keys, "keys"}}));
        DAEL_TRY(readable(aad, aad_size, "aad"));
        if (!read) return null("read");
        auto made = std::unique_ptr<dael_sealed_file>(
            new dael_sealed_file{dael::Engine(engine->engine.state()), keys->keys, std::nullopt});
        const auto read_at = [=](std::uint64_t at, HostOut out) -> Result<> {
            if (const int status = read(context, at, out.data(), out.size()); status != 0)
                return callback_failed("reading", status);
            return {};
        };
        DAEL_LET(opened, dael::sealed::File::open(made->engine, *made->keys, bytes(aad, aad_size),
                                                  read_at, size));
        made->file.emplace(std::move(opened));
        return made.release();
    });
}
void dael_sealed_file_close(dael_sealed_file* file) {
    release(file);
}
uint64_t dael_sealed_file_size(const dael_sealed_file* file) {
    return file ? file->file->size() : 0;
}
dael_status dael_sealed_file_check_size(dael_sealed_file* file) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{file, "file"}}));
        return file->file->check_size();
    });
}
dael_status dael_sealed_file_read(dael_sealed_file* file, uint64_t at, void* out, size_t size,
                                  dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{file, "file"}}));
        DAEL_TRY(readable(out, size, "out"));
        return report(file->file->read(at, bytes(out, size)), ran);
    });
}
dael_status dael_sealed_file_read_all(dael_sealed_file* file, void* device_out, size_t size,
                                      void* stream, int readers, dael_ran* ran) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{file, "file"}}));
        DAEL_TRY(readable(device_out, size, "device_out"));
        return report(file->file->read_all({device_out, size}, dael::Stream{stream}, readers), ran);
    });
}

}  // extern "C"
