# SPDX-License-Identifier: Apache-2.0
dael_test(noise_test SOURCES noise_test.cpp LABELS vpn)
target_link_libraries(noise_test PRIVATE dael_vpn_handshake)
