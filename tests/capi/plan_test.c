/* SPDX-License-Identifier: Apache-2.0
 * Backends and plans. */
#include "capi.h"

static void count(void* context, const char* name) {
    EXPECT(name[0] != 0);
    ++*(int*)context;
}

struct later_job {
    dael_job known;
    uint64_t new_one;
};

void plan_tests(dael_engine* engine) {
    int names = 0;
    EXPECT(dael_engine_backends(engine, count, &names) == DAEL_OK && names == 1);
    EXPECT(dael_engine_backends(engine, NULL, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_engine_backends(NULL, count, &names) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_list_backends(NULL, NULL) == DAEL_INVALID_ARGUMENT);

    dael_job job = {.struct_size = sizeof job,
                    .cipher = {DAEL_GCM, DAEL_ENCRYPT, 16, 0, 0},
                    .key_bits = 256,
                    .from = DAEL_FROM_PINNED,
                    .size = 1 << 20,
                    .messages = 100};
    dael_plan* plan = NULL;
    EXPECT(dael_explain(engine, &job, &plan) == DAEL_OK);
    EXPECT(dael_plan_summary(plan)[0] != 0);
    EXPECT(dael_plan_count(plan) >= 1);
    for (size_t i = 0; i < dael_plan_count(plan); ++i) {
        const dael_option* const option = dael_plan_option(plan, i);
        EXPECT(option->struct_size == sizeof *option);
        EXPECT(option->backend[0] != 0 && option->why[0] != 0);
        EXPECT(option->seconds >= 0 && option->threads >= 0);
    }
    EXPECT(dael_plan_option(plan, 0)->possible);
    EXPECT(dael_plan_option(plan, dael_plan_count(plan)) == NULL);
    dael_plan_free(plan);

    job.from = 3;
    REFUSED(dael_explain(engine, &job, &plan), DAEL_INVALID_ARGUMENT, "3");
    EXPECT(plan == NULL);
    job.from = DAEL_FROM_HOST;
    job.key_bits = 100;
    REFUSED(dael_explain(engine, &job, &plan), DAEL_INVALID_ARGUMENT, "100");
    job.key_bits = 128;
    job.cipher.mode = 99;
    EXPECT(dael_explain(engine, &job, &plan) == DAEL_INVALID_ARGUMENT);
    job.cipher.mode = DAEL_CTR;
    job.cipher.direction = 2;
    EXPECT(dael_explain(engine, &job, &plan) == DAEL_INVALID_ARGUMENT);
    job.cipher.direction = 0;
    job.struct_size = 0;
    REFUSED(dael_explain(engine, &job, &plan), DAEL_INVALID_ARGUMENT, "dael_job");
    struct later_job later = {.known = job, .new_one = 5};
    later.known.struct_size = sizeof later;
    EXPECT(dael_explain(engine, &later.known, &plan) == DAEL_UNSUPPORTED);
    later.new_one = 0;
    EXPECT(dael_explain(engine, &later.known, &plan) == DAEL_OK);
    dael_plan_free(plan);
    EXPECT(dael_explain(engine, NULL, &plan) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_explain(NULL, &job, &plan) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_explain(engine, &job, NULL) == DAEL_INVALID_ARGUMENT);
    EXPECT(dael_plan_summary(NULL)[0] == 0 && dael_plan_count(NULL) == 0);
    EXPECT(dael_plan_option(NULL, 0) == NULL);
    dael_plan_free(NULL);
}
