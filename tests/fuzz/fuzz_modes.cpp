// SPDX-License-Identifier: Apache-2.0
// Every host backend gives the same bytes, tags and verdicts for the same batch, whatever the
// modes, keys, starts, lengths, alignments, and forgeries.
#include <map>

#include "core/registry.hpp"
#include "fuzz/fuzz.hpp"
#include "modes/counter.hpp"
#include "modes/traits.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;

using Backends = std::map<std::string, std::unique_ptr<core::Backend>>;

const Backends& backends() {
    static const Backends all = [] {
        Backends opened;
        for (const core::BackendEntry& entry : core::backend_list()) {
            if (entry.device_name) continue;
            auto forms = entry.forms ? entry.forms() : std::vector<std::string>{};
            if (forms.empty()) forms.push_back("");
            for (const std::string& form : forms)
                if (auto backend = core::open_backend(entry.name, {form, 0}))
                    if ((*backend)->profile().shared_by_threads)
                        opened[entry.name + (" " + form)] = std::move(*backend);
        }
        require(opened.contains("reference ") && opened.size() > 1, "there is what to compare");
        return opened;
    }();
    return all;
}

struct Sketch {
    std::size_t size = 0, aad_size = 0, in_at = 0, out_at = 0;
    bool in_place = false, keystream = false, forged = false;
    Message message;  // start, skip and key
};

// What becomes of all messages: outputs, tags and codes, one behind the other. Each lies in a
// buffer of exactly its size, so that AddressSanitizer sees what goes past it. `tags`: of what is
// opened.
Bytes run(core::Backend& backend, const Cipher& cipher, std::span<const Key> keys, bool prepared,
          const std::vector<Sketch>& sketches, const Bytes& content, std::vector<Bytes> tags) {
    std::vector<Bytes> ins, outs, aads;
    std::vector<Message> messages;
    const auto filled = [&](std::size_t size) {
        Bytes bytes(size);
        for (std::size_t i = 0; i < size; ++i) bytes[i] = content[i % content.size()];
        return bytes;
    };
    for (const Sketch& sketch : sketches) {
        ins.push_back(filled(sketch.in_at + sketch.size));
        outs.emplace_back(sketch.out_at + sketch.size);
        aads.push_back(filled(sketch.aad_size));
    }
    for (std::size_t i = 0; i < sketches.size(); ++i) {
        const Sketch& sketch = sketches[i];
        Message& m = messages.emplace_back(sketch.message);
        std::uint8_t* const in = ins[i].data() + sketch.in_at;
        m.in = sketch.keystream ? nullptr : in;
        m.out = sketch.in_place ? in : outs[i].data() + sketch.out_at;
        m.size = sketch.size;
        if (authenticates(cipher.mode)) {
            m.aad = aads[i].data();
            m.aad_size = aads[i].size();
            m.tag = tags[i].data();
        }
        value(modes::check(cipher, m, keys.size()), "check");
    }
    std::unique_ptr<core::KeyTables> tables;
    if (prepared) tables = value(backend.tables(keys), "tables");
    std::vector<Code> codes(sketches.size(), Code::ok);
    value(backend.run(cipher, {keys, tables.get()}, messages, codes), "run");
    Bytes all;
    for (std::size_t i = 0; i < sketches.size(); ++i) {
        const Message& m = messages[i];
        all.push_back(static_cast<std::uint8_t>(codes[i]));
        all.insert(all.end(), tags[i].begin(), tags[i].end());
        if (codes[i] == Code::ok) {
            all.insert(all.end(), m.out, m.out + m.size);
        } else if (sketches[i].in_place) {
            require(filled(sketches[i].in_at + m.size) == ins[i], "what is forged stays in place");
        }
    }
    return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    Cipher cipher{fuzz::mode(data), fuzz::direction(data)};
    cipher.tag = tag_for(data, cipher.mode);
    if (cipher.mode == Mode::xts)
        cipher.sector = data.ConsumeIntegralInRange<std::uint32_t>(16, 300);
    // gcm_ctr never comes to a host backend: once checked it is ctr.
    if (cipher.mode == Mode::gcm_ctr) cipher.mode = Mode::ctr;
    std::vector<Key> keys;
    const auto key_count = data.ConsumeIntegralInRange<std::size_t>(1, 4);
    while (keys.size() < key_count) keys.push_back(key_for(data, cipher.mode));
    std::vector<Sketch> sketches(data.ConsumeIntegralInRange<std::size_t>(1, 20));
    for (Sketch& sketch : sketches) {
        sketch.size =
            data.ConsumeIntegralInRange<std::size_t>(0, sketches.size() == 1 ? 1200 : 200);
        if (whole_blocks_only(cipher.mode)) sketch.size = sketch.size / kBlockSize * kBlockSize;
        if (cipher.mode == Mode::xts && sketch.size % cipher.sector < 16)
            sketch.size = sketch.size / cipher.sector * cipher.sector;
        sketch.in_at = data.ConsumeIntegralInRange<std::size_t>(0, 15);
        sketch.out_at = data.ConsumeIntegralInRange<std::size_t>(0, 15);
        sketch.in_place = data.ConsumeBool();
        if (authenticates(cipher.mode)) {
            sketch.aad_size = data.ConsumeIntegralInRange<std::size_t>(0, 100);
            sketch.forged = data.ConsumeIntegralInRange(0, 7) == 0;
        }
        start_for(data, cipher.mode, sketch.message);
        sketch.message.key =
            static_cast<std::uint32_t>(data.ConsumeIntegralInRange<std::size_t>(0, key_count - 1));
        if (makes_keystream(cipher.mode)) {
            sketch.message.skip = data.ConsumeIntegralInRange<std::uint8_t>(0, 15);
            sketch.keystream = data.ConsumeIntegralInRange(0, 7) == 0;
            sketch.in_place = sketch.in_place && !sketch.keystream;
        }
    }
    const bool prepared = data.ConsumeBool();
    Bytes content = data.ConsumeRemainingBytes<std::uint8_t>();
    content.push_back(0);

    core::Backend& reference = *backends().at("reference ");
    std::vector<Bytes> tags(sketches.size(), Bytes(authenticates(cipher.mode) ? cipher.tag : 0));
    if (cipher.mode == Mode::gcm_siv && cipher.direction == Direction::decrypt) {
        // Nobody can choose what is opened, and whatever it is, it is a forgery.
        for (Bytes& tag : tags) tag = bytes(data, tag.size());
    } else if (authenticates(cipher.mode) && cipher.direction == Direction::decrypt) {
        // What is opened must first have a tag: the pieces yield it whatever it is compared with.
        auto tables = value(reference.tables(keys), "tables");
        for (std::size_t i = 0; i < sketches.size(); ++i) {
            const Sketch& sketch = sketches[i];
            auto pieces = value(reference.begin(cipher, {keys, tables.get()}, sketch.message.key,
                                                {sketch.message.start, sketch.message.start_rest}),
                                "begin");
            Bytes in(sketch.size), out(sketch.size), aad(sketch.aad_size);
            for (std::size_t b = 0; b < sketch.size; ++b)
                in[b] = content[(sketch.in_at + b) % content.size()];
            for (std::size_t b = 0; b < sketch.aad_size; ++b) aad[b] = content[b % content.size()];
            value(pieces->aad(aad), "aad");
            value(pieces->update(in.data(), out.data(), in.size()), "update");
            const core::Tag tag = value(pieces->finish(), "finish");
            std::copy_n(tag.begin(), tags[i].size(), tags[i].begin());
            if (sketch.forged) tags[i].back() ^= 1;
        }
    }
    const Bytes want = run(reference, cipher, keys, prepared, sketches, content, tags);
    for (const auto& [name, backend] : backends()) {
        if (backend->can(cipher, keys[0].bits()).answer == core::Can::no) continue;
        require(run(*backend, cipher, keys, prepared, sketches, content, tags) == want,
                name + " and the reference agree in " + std::string(dael::name(cipher.mode)) + " " +
                    std::string(dael::name(cipher.direction)));
    }
    return 0;
}
