// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/gcm_memory.hpp"

namespace dael::cuda {

Runs::~Runs() {
    if (!ended_) return;
    const CurrentDevice current(device_);
    const BesideCaptures beside;
    if (captured_) (void)cudaDeviceSynchronize();
    if (any_) (void)cudaEventSynchronize(ended_);
    (void)cudaEventDestroy(ended_);
}

Result<> Runs::prepare() {
    return checked(cudaEventCreateWithFlags(&ended_, cudaEventDisableTiming),
                   "cudaEventCreateWithFlags");
}

Result<bool> Runs::begin(cudaStream_t stream, const char* repeats) const {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    DAEL_TRY(checked(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing"));
    if (capture != cudaStreamCaptureStatusNone) {
        if (*repeats != '\0')
            return Error{Code::limit,
                         std::string("cuda: the stream is being captured, and each replay of the "
                                     "graph would use the same ") +
                             repeats +
                             " again; give the messages as a list in device memory, with new ones "
                             "for each replay"};
        captured_ = true;
        return true;
    }
    // By its number: handles are used again for other streams, and one of them means another stream
    // in each thread.
    unsigned long long id = 0;
    DAEL_TRY(checked(cudaStreamGetId(stream, &id), "cudaStreamGetId"));
    if (any_ && id != last_stream_)
        DAEL_TRY(checked(cudaStreamWaitEvent(stream, ended_, 0), "cudaStreamWaitEvent"));
    last_stream_ = id;
    return false;
}

Result<> Runs::end(cudaStream_t stream) const {
    any_ = true;
    return checked(cudaEventRecord(ended_, stream), "cudaEventRecord");
}

}  // namespace dael::cuda
