// SPDX-License-Identifier: Apache-2.0
// Completion events: how whoever launches learns when kernels have ended, and how.
#pragma once

#include <atomic>
#include <utility>
#include <vector>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

// For tests: so many of the next waits fail, as they do of a device that has gone.
inline std::atomic<int> failing_waits{0};

// The ends of a run's kernels. Waits alone do not tell of every failure: PoCL's clFinish succeeds
// after a kernel that did not.
class Ends {
  public:
    // A new run, which comes after the one before, whichever queue that was on.
    Result<> begin(const cl::CommandQueue& queue) {
        if (!ends_.empty()) before_ = {ends_.back()};  // queues are in order
        if (!before_.empty() && queue_() != queue())
            DAEL_TRY(checked(queue.enqueueBarrierWithWaitList(&before_),
                             "clEnqueueBarrierWithWaitList"));
        queue_ = queue;
        ends_.clear();
        return {};
    }
    // Before a launch, so that its end finds room.
    void make_room() {
        if (ends_.size() == ends_.capacity()) ends_.reserve(2 * ends_.size() + 1);
    }
    // Of this run, which comes after the one before, so that that need not be remembered.
    void add(cl::Event end) noexcept {
        ends_.push_back(std::move(end));
        before_.clear();
    }
    bool any() const { return !ends_.empty(); }
    // Until all of them are done, whatever came of them. False: of one nobody knows, and nothing
    // that it uses may be wiped or given back.
    bool wait() const noexcept {
        if (before_.empty() && ends_.empty()) return true;
        if (failing_waits > 0) return failing_waits.fetch_sub(1) <= 0;
        for (const auto* list : {&before_, &ends_})
            for (const cl::Event& end : *list) (void)end.wait();
        return are_over();
    }
    // The same without waiting: false also where they are not over yet.
    bool are_over() const noexcept {
        bool over = true;
        for (const auto* list : {&before_, &ends_})
            for (const cl::Event& end : *list) {
                cl_int fault = CL_SUCCESS;
                const cl_int status = end.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(&fault);
                over &= fault == CL_SUCCESS && status <= CL_COMPLETE;
            }
        return over;
    }
    // Once the run has been waited for: the first failure there was.
    Result<> outcome() const {
        for (const cl::Event& end : ends_) {
            cl_int fault = CL_SUCCESS;
            const cl_int status = end.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(&fault);
            if (fault == CL_SUCCESS && status < 0) fault = status;
            DAEL_TRY(checked(fault, "a kernel of the batch"));
        }
        return {};
    }

  private:
    cl::CommandQueue queue_;
    std::vector<cl::Event> ends_;    // of the last run
    std::vector<cl::Event> before_;  // the end of the one before, until this one has begun
};

}  // namespace dael::opencl
