// SPDX-License-Identifier: Apache-2.0
// The ends of a batch's kernels. Waits alone do not tell of every failure: PoCL's clFinish succeeds
// after a kernel that did not.
#pragma once

#include <vector>

#include "backends/opencl/cl.hpp"

namespace dael::opencl {

class Ends {
  public:
    // A new run: forgets the one before.
    void clear() noexcept {
        ends_.clear();
        failed_ = CL_SUCCESS;
    }
    void add(cl::Event end) {
        // A stream in pieces has no end of kernels.
        if (ends_.size() == ends_.capacity()) sort_out();
        ends_.push_back(std::move(end));
    }
    // Once the run has been waited for. Errors: as of the kernel that failed.
    Result<> outcome() {
        sort_out();
        return checked(failed_, "a kernel of the batch");
    }

  private:
    void sort_out() {
        std::erase_if(ends_, [this](const cl::Event& end) {
            cl_int fault = CL_SUCCESS;
            const cl_int status = end.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(&fault);
            if (fault != CL_SUCCESS || status < 0) failed_ = fault != CL_SUCCESS ? fault : status;
            return fault != CL_SUCCESS || status <= CL_COMPLETE;
        });
    }

    std::vector<cl::Event> ends_;
    cl_int failed_ = CL_SUCCESS;
};

}  // namespace dael::opencl
