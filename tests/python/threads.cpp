// SPDX-License-Identifier: Apache-2.0
// daelstrom._threads, in the same file as daelstrom._core where tests are: the device made of
// threads as an engine of Python's, so that what the package does on GPUs is tested where there is
// none.
#include <nanobind/nanobind.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>

#include "capi/shared.hpp"
#include "pipeline/engine_state.hpp"
#include "python/src/engine.hpp"
#include "support/host_device.hpp"
#include "support/must.hpp"

namespace {

namespace nb = nanobind;
using dael::test::HostDevice;
using dael::test::must;

std::uint8_t* pointer(std::uintptr_t address) {
    return reinterpret_cast<std::uint8_t*>(address);
}
std::uintptr_t address(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

// Never destroyed: engines and keys of Python's may outlive every name that it has.
HostDevice* make(int fail_at, const std::string& fail_call) {
    return new HostDevice(
        {.fail_at = fail_at, .fail_call = fail_call, .delay = std::chrono::microseconds(300)});
}

}  // namespace

NB_MODULE(_threads, m) {
    nb::class_<HostDevice>(m, "Device")
        .def("engine",
             [](HostDevice& device) {
                 return daelpy::Engine(new dael_engine{dael::pipeline::make_engine(
                     std::make_unique<dael::test::HostDeviceBackend>(device))});
             })
        .def("allocate", [](HostDevice& device,
                            std::size_t size) { return address(must(device.allocate(size))); })
        .def("release",
             [](HostDevice& device, std::uintptr_t at, std::size_t size) {
                 dael::wipe(pointer(at), size);
                 device.release(pointer(at));
             })
        .def("stream",
             [](HostDevice& device) { return address(must(device.create_stream()).handle); })
        .def("wait",
             [](HostDevice& device, std::uintptr_t stream) {
                 nb::gil_scoped_release released;
                 if (const auto done = device.wait(dael::Stream{pointer(stream)}); !done)
                     throw std::runtime_error(done.error().message);
             })
        .def("end_stream",
             [](HostDevice& device, std::uintptr_t stream) {
                 nb::gil_scoped_release released;
                 device.destroy_stream(dael::Stream{pointer(stream)});
             })
        .def("fail", &HostDevice::fail, nb::arg("nth"), nb::arg("call") = "",
             nb::arg("in_a_row") = 1)
        .def("violations", &HostDevice::violations)
        .def("live", &HostDevice::live)
        .def("kernels", &HostDevice::kernels);
    m.def("device", make, nb::rv_policy::reference, nb::arg("fail_at") = 0,
          nb::arg("fail_call") = "");
    m.def("read", [](std::uintptr_t at, std::size_t size) { return nb::bytes(pointer(at), size); });
    m.def("write", [](std::uintptr_t at, nb::bytes data) {
        std::copy_n(static_cast<const std::uint8_t*>(data.data()), data.size(), pointer(at));
    });
}
