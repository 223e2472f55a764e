// SPDX-License-Identifier: Apache-2.0
// The ends of a run's kernels. Waits alone do not tell of every failure: PoCL's clFinish succeeds
// after a kernel that did not.
#pragma once

#include <utility>
#include <vector>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

class Ends {
  public:
    void clear() noexcept { ends_.clear(); }  // a new run
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
    std::vector<cl::Event> ends_;
};

}  // namespace dael::opencl
