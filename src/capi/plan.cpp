// SPDX-License-Identifier: Apache-2.0
// Backends, plans and calibration, for C.
#include <daelstrom/plan.hpp>

#include <new>
#include <vector>

#include "capi/shared.hpp"

// The strings of `options` are those of `plan`, which therefore stays where it is.
struct dael_plan {
    explicit dael_plan(dael::Plan made) : plan(std::move(made)) {
        for (const dael::Option& option : plan.options)
            options.push_back({.struct_size = sizeof(dael_option),
                               .backend = option.backend.c_str(),
                               .why = option.why.c_str(),
                               .threads = option.threads,
                               .possible = option.possible,
                               .measured = option.measured,
                               .chunk = option.chunk,
                               .gigabytes_per_second = option.gigabytes_per_second,
                               .setup_seconds = option.setup_seconds,
                               .seconds = option.seconds,
                               .shares = option.shares.data(),
                               .members = option.shares.size()});
    }
    dael_plan(const dael_plan&) = delete;
    dael_plan& operator=(const dael_plan&) = delete;

    const dael::Plan plan;
    std::vector<dael_option> options;
};

using dael::Code;
using dael::Error;
using dael::Result;
using namespace dael::capi;

namespace {

// What the planner takes as true of a job, which in C may be any numbers.
Result<dael::Job> checked(const dael_job& job) {
    const auto wrong = [](std::string what) {
        return Error{Code::invalid_argument, "the job has " + std::move(what)};
    };
    if (job.cipher.mode > DAEL_XTS)
        return wrong("no known mode: " + std::to_string(job.cipher.mode));
    if (job.cipher.direction > DAEL_DECRYPT)
        return wrong("no known direction: " + std::to_string(job.cipher.direction));
    if (job.key_bits != 128 && job.key_bits != 192 && job.key_bits != 256)
        return wrong("keys of " + std::to_string(job.key_bits) +
                     " bits; there are 128, 192 and 256");
    if (job.from < DAEL_FROM_HOST || job.from > DAEL_FROM_DEVICE)
        return wrong("data in no known place: " + std::to_string(job.from));
    return dael::Job{.cipher = cipher(&job.cipher),
                     .key_bits = job.key_bits,
                     .size = job.size,
                     .messages = job.messages,
                     .from = static_cast<dael::Job::From>(job.from),
                     .in_place = job.in_place != 0};
}

}  // namespace

extern "C" {

dael_status dael_list_backends(void (*visit)(void* context, const dael_backend* backend),
                               void* context) {
    return call([&]() -> Result<> {
        if (!visit) return null("visit");
        for (const dael::BackendInfo& info : dael::list_backends()) {
            const dael_backend backend{.struct_size = sizeof(dael_backend),
                                       .name = info.name.c_str(),
                                       .description = info.description.c_str(),
                                       .summary = info.summary.c_str(),
                                       .missing = info.missing.c_str(),
                                       .present = info.present};
            visit(context, &backend);
        }
        return {};
    });
}

dael_status dael_engine_backends(const dael_engine* engine,
                                 void (*visit)(void* context, const char* name), void* context) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{engine, "engine"}}));
        if (!visit) return null("visit");
        for (const std::string& name : engine->engine.backends()) visit(context, name.c_str());
        return {};
    });
}

dael_status dael_explain(const dael_engine* engine, const dael_job* job, dael_plan** plan) {
    return hand_out(plan, "plan", [&]() -> Result<dael_plan*> {
        DAEL_TRY(given({{engine, "engine"}, {job, "job"}}));
        DAEL_LET(outline, sized(job, "dael_job"));
        DAEL_TRY(spare({outline.unused}, "dael_job"));
        DAEL_LET(known, checked(outline));
        return new dael_plan(engine->engine.explain(known));
    });
}
const char* dael_plan_summary(const dael_plan* plan) {
    return plan ? plan->plan.summary.c_str() : "";
}
size_t dael_plan_count(const dael_plan* plan) {
    return plan ? plan->options.size() : 0;
}
const dael_option* dael_plan_option(const dael_plan* plan, size_t index) {
    return plan && index < plan->options.size() ? &plan->options[index] : nullptr;
}
void dael_plan_free(dael_plan* plan) {
    release(plan);
}

dael_status dael_calibrate(void (*progress)(void* context, const char* what, double done),
                           void* context) {
    return call([&]() -> Result<> {
        dael::CalibrationProgress tell;
        if (progress)
            tell = [&](std::string_view what, double done) {
                progress(context, std::string(what).c_str(), done);
            };
        DAEL_LET(calibration, dael::calibrate(tell));
        DAEL_TRY(dael::store(calibration));
        return {};
    });
}

}  // extern "C"
