// SPDX-License-Identifier: Apache-2.0
// What could not be waited for is neither wiped nor given back until it is over, and is asked again
// then; and what failed for want of memory, or while it ran, says nothing of the device. The driver
// is the real one, with functions of its table (which its objects begin with) put off or failing.
#include "backends/opencl/kept.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "backends/opencl/pieces.hpp"
#include "core/known_answers.hpp"
#include "opencl/fixture.hpp"

namespace dael::test {
namespace {

// The driver's table of functions, which is as before when this goes.
class DriverTable {
  public:
    explicit DriverTable(void* object)
        : table_(*static_cast<cl_icd_dispatch**>(object)), before_(*table_) {
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        const auto from = reinterpret_cast<std::uintptr_t>(table_) / page * page;
        const auto to = reinterpret_cast<std::uintptr_t>(table_ + 1);
        writable_ = mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE) == 0;
    }
    ~DriverTable() {
        if (writable_) *table_ = before_;
    }
    bool writable() const { return writable_; }
    cl_icd_dispatch& functions() { return *table_; }

  private:
    cl_icd_dispatch* const table_;
    const cl_icd_dispatch before_;
    bool writable_ = false;
};

// So many of the next calls fail.
int failing_calls = 0;
cl_int failure = CL_SUCCESS;
decltype(cl_icd_dispatch::clBuildProgram) build_program;
cl_int CL_API_CALL build_or_fail(cl_program a, cl_uint b, const cl_device_id* c, const char* d,
                                 void(CL_CALLBACK* e)(cl_program, void*), void* f) {
    return failing_calls > 0 && failing_calls-- > 0 ? failure : build_program(a, b, c, d, e, f);
}
decltype(cl_icd_dispatch::clGetEventInfo) event_info;
cl_int CL_API_CALL failed_kernel(cl_event a, cl_event_info b, size_t c, void* d, size_t* e) {
    const cl_int got = event_info(a, b, c, d, e);
    if (b == CL_EVENT_COMMAND_EXECUTION_STATUS && d && failing_calls > 0 && failing_calls-- > 0)
        *static_cast<cl_int*>(d) = failure;
    return got;
}

decltype(cl_icd_dispatch::clFinish) finish;
cl_int CL_API_CALL finish_or_fail(cl_command_queue a) {
    return failing_calls > 0 && failing_calls-- > 0 ? failure : finish(a);
}

class OpenClKept : public OpenClTest {
  protected:
    void SetUp() override {
        OpenClTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        core::forget_answers();
        table_.emplace(device_->native().device);
        if (!table_->writable()) GTEST_SKIP() << "the driver's table of functions is not to be had";
        queue_ = cl::CommandQueue(static_cast<cl_command_queue>(device_->native().queue), true);
    }
    void TearDown() override {
        opencl::failing_waits = 0;
        failing_calls = 0;
        table_.reset();
        core::forget_answers();
        EXPECT_EQ(opencl::retry_kept(), 0u);
    }
    // The queue's later work waits until open_gate().
    void close_gate() {
        cl_int status = CL_SUCCESS;
        gate_ = table_->functions().clCreateUserEvent(context()(), &status);
        ASSERT_EQ(status, CL_SUCCESS);
        ASSERT_EQ(table_->functions().clEnqueueBarrierWithWaitList(queue_(), 1, &gate_, nullptr),
                  CL_SUCCESS);
    }
    void open_gate() {
        ASSERT_EQ(table_->functions().clSetUserEventStatus(gate_, CL_COMPLETE), CL_SUCCESS);
        ASSERT_TRUE(device_->order().wait(Stream{}));
        table_->functions().clReleaseEvent(gate_);
    }
    Bytes content(const cl::Buffer& buffer) {
        Bytes bytes(buffer.getInfo<CL_MEM_SIZE>());
        const cl::CommandQueue other(
            context(), cl::Device(static_cast<cl_device_id>(device_->native().device), true));
        EXPECT_EQ(other.enqueueReadBuffer(buffer, CL_TRUE, 0, bytes.size(), bytes.data()),
                  CL_SUCCESS);
        return bytes;
    }
    static bool zeros(const Bytes& bytes) { return bytes == Bytes(bytes.size()); }

    std::optional<DriverTable> table_;
    cl::CommandQueue queue_;
    cl_event gate_ = nullptr;
};

TEST_F(OpenClKept, KeysUntilTheirReplacementIsOver) {
    const Key key = *Key::import(pattern(16)), other = *Key::import(pattern(32));
    auto set = opencl::OpenClKeys::create(*device_, std::span(&key, 1));
    ASSERT_TRUE(set) << set.error().message;
    const cl::Buffer schedules = (*set)->schedules(), powers = (*set)->powers();
    ASSERT_TRUE((*set)->replace(0, other, {}));  // what the driver compiles for it is there
    close_gate();
    ASSERT_TRUE((*set)->replace(0, key, {}));
    opencl::failing_waits = 1;
    set = Error{};
    EXPECT_EQ(opencl::failing_waits, 0);
    EXPECT_EQ(opencl::retry_kept(), 1u);  // it is not over
    EXPECT_FALSE(zeros(content(schedules)));
    open_gate();
    device_->memory().release(allocate(64));  // whoever allocates asks
    EXPECT_EQ(opencl::retry_kept(), 0u);
    EXPECT_TRUE(zeros(content(schedules)));
    EXPECT_TRUE(zeros(content(powers)));
}

// A batch takes its keys along, and the sums that it hashes to.
TEST_F(OpenClKept, KeysAndSumsUntilTheBatchIsOver) {
    const Bytes raw = pattern(16);
    const Key key = *Key::import(raw);
    auto set = opencl::OpenClKeys::create(*device_, std::span(&key, 1));
    ASSERT_TRUE(set) << set.error().message;
    const cl::Buffer schedules = (*set)->schedules();
    const Bytes in = pattern(1000);
    std::uint8_t *const data = put(in), *const tag = allocate(16);
    const Message m{.in = data,
                    .out = data,
                    .size = in.size(),
                    .tag = tag,
                    .start = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1}};
    for (const Mode mode : {Mode::gcm, Mode::ctr}) {
        auto batch = device_->prepare({mode}, {std::span(&key, 1), set->get()}, {&m, 1});
        ASSERT_TRUE(batch) << batch.error().message;
        ASSERT_TRUE(device_->run(**batch, {}));
        ASSERT_TRUE(device_->order().wait(Stream{}));
        close_gate();
        ASSERT_TRUE(device_->run(**batch, {}));
        opencl::failing_waits = mode == Mode::gcm ? 2 : 1;
        batch = Error{};
        EXPECT_EQ(opencl::failing_waits, 0);
        const std::size_t sums = mode == Mode::gcm ? 1 : 0;
        EXPECT_EQ(opencl::retry_kept(), sums);
        if (mode == Mode::gcm) {  // the set goes on, and does not keep what is over for ever
            open_gate();
            EXPECT_EQ(opencl::retry_kept(), 0u);
            continue;
        }
        set = Error{};
        EXPECT_EQ(opencl::retry_kept(), 1u);
        EXPECT_FALSE(zeros(content(schedules)));
        open_gate();
        EXPECT_EQ(opencl::retry_kept(), 0u);
        EXPECT_TRUE(zeros(content(schedules)));
    }
    device_->memory().release(data);
    device_->memory().release(tag);
}

// What a message in pieces has gathered, where the wait for its wiping failed.
TEST_F(OpenClKept, WhatPiecesGatheredUntilItIsOver) {
    const Key key = *Key::import(pattern(16));
    auto& set = tables(std::span(&key, 1));
    const std::uint64_t free = *device_->memory().free_memory();
    auto pieces = opencl::begin_pieces(*device_, Direction::encrypt, set, 0, key, {1});
    ASSERT_TRUE(pieces) << pieces.error().message;
    const Bytes in = pattern(1000);
    Bytes out(in.size());
    ASSERT_TRUE((*pieces)->update(in.data(), out.data(), in.size()));
    EXPECT_LT(*device_->memory().free_memory(), free);
    finish = table_->functions().clFinish;
    table_->functions().clFinish = finish_or_fail;
    failing_calls = 1;
    failure = CL_OUT_OF_RESOURCES;
    pieces = Error{};
    EXPECT_EQ(failing_calls, 0);
    EXPECT_EQ(*device_->memory().free_memory(), free);
    EXPECT_TRUE(device_->order().wait(Stream{}));
    EXPECT_EQ(opencl::retry_kept(), 0u);
}

// A driver that has no memory to build a program in is asked again.
TEST_F(OpenClKept, WhatCouldNotBeBuiltForWantOfMemoryIsBuiltLater) {
    build_program = table_->functions().clBuildProgram;
    table_->functions().clBuildProgram = build_or_fail;
    const Key key = *Key::import(pattern(24));
    std::uint8_t* const data = put(pattern(64));
    for (const cl_int status : {CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES}) {
        device_->programs().define("-DDAEL_ANOTHER=" + std::to_string(-status));
        failing_calls = 1;
        failure = status;
        const auto refused = run({Mode::ecb}, key, message(data, data, 64));
        EXPECT_EQ(refused.code(), Code::out_of_memory) << status;
        EXPECT_EQ(failing_calls, 0);
        EXPECT_EQ(get(data, 64), pattern(64));
        EXPECT_TRUE(device_->usable());
    }
    // What cannot be built at all is another matter.
    failing_calls = 1;
    failure = CL_BUILD_PROGRAM_FAILURE;
    device_->programs().define("-DDAEL_ANOTHER=11");
    EXPECT_EQ(run({Mode::ecb}, key, message(data, data, 64)).code(), Code::device);
    EXPECT_TRUE(run({Mode::ecb}, key, message(data, data, 64)));
}

// A kernel that fails while it runs has not answered: the device does not compute wrongly.
TEST_F(OpenClKept, AKernelThatFailsWhileItIsAskedHasNotAnswered) {
    const Key key = *Key::import(pattern(16));
    std::uint8_t* const data = put(pattern(64));
    ASSERT_TRUE(run({Mode::ecb}, key, message(data, data, 64)));
    event_info = table_->functions().clGetEventInfo;
    table_->functions().clGetEventInfo = failed_kernel;
    for (const cl_int status : {CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES}) {
        core::forget_answers();
        device_ = open();
        ASSERT_TRUE(device_);
        auto* const memory = put(pattern(64));
        failure = status;
        failing_calls = 1000;
        const auto refused = run({Mode::ecb}, key, message(memory, memory, 64));
        failing_calls = 0;
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.code(),
                  status == CL_OUT_OF_RESOURCES ? Code::device : Code::out_of_memory);
        EXPECT_EQ(refused.error().message.find("wrongly"), std::string::npos);
        EXPECT_EQ(get(memory, 64), pattern(64));
        EXPECT_TRUE(device_->usable());
        EXPECT_TRUE(run({Mode::ecb}, key, message(memory, memory, 64)));
    }
}

}  // namespace
}  // namespace dael::test
