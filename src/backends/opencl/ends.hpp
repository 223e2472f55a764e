// SPDX-License-Identifier: Apache-2.0
// How whoever launches learns when kernels have ended, and how.
#pragma once

#include <utility>
#include <vector>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

// The ends of a run's kernels. Waits alone do not tell of every failure: PoCL's clFinish succeeds
// after a kernel that did not.
class Ends {
  public:
    // A new run, which comes after the one before, whichever queue that was on.
    Result<> begin(const cl::CommandQueue& queue) {
        if (!ends_.empty() && queue_() != queue()) {
            const std::vector<cl::Event> last{ends_.back()};  // queues are in order
            DAEL_TRY(
                checked(queue.enqueueBarrierWithWaitList(&last), "clEnqueueBarrierWithWaitList"));
        }
        queue_ = queue;
        ends_.clear();
        return {};
    }
    void add(cl::Event end) { ends_.push_back(std::move(end)); }
    // Until all of them are done, whatever came of them.
    void wait() const noexcept {
        for (const cl::Event& end : ends_) (void)end.wait();
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
    std::vector<cl::Event> ends_;
};

}  // namespace dael::opencl
