# syntax=docker/dockerfile:1
# SPDX-License-Identifier: Apache-2.0
# The program in an image of its own, on Debian. For an ordinary machine:
#
#     docker build -t daelstrom .
#
# and for one with an NVIDIA GPU and NVIDIA's container toolkit, with kernels for Turing to Blackwell (the
# compiler comes from PyPI; it takes a quarter of an hour or more):
#
#     docker build -t daelstrom:cuda --target cuda .
#
# scripts/dockerfile_steps runs what stands here without Docker.
ARG DEBIAN=12

FROM debian:${DEBIAN}-slim AS build
ENV DAELSTROM_CUDA=OFF
WORKDIR /daelstrom
COPY . .
RUN scripts/setup program
RUN cmake --preset release -DDAELSTROM_CUDA=OFF
RUN cmake --build --preset release
RUN cmake --install build/release --component program --prefix /opt/daelstrom

FROM debian:${DEBIAN}-slim AS build-cuda
ENV DAELSTROM_CUDA=ON
WORKDIR /daelstrom
COPY . .
RUN scripts/setup program
RUN cmake --preset release -DDAELSTROM_CUDA=ON
RUN cmake --build --preset release
RUN cmake --install build/release --component program --prefix /opt/daelstrom

# What runs: the program is linked to libcrypto, which the package openssl brings under the name that it has in
# this release, and for the tunnel to libmnl and libseccomp, and loads drivers where it finds them.
FROM debian:${DEBIAN}-slim AS run
RUN apt-get update && apt-get install -y --no-install-recommends openssl libmnl0 libseccomp2 && rm -rf /var/lib/apt/lists/*
WORKDIR /data
ENTRYPOINT ["daelstrom"]

FROM run AS cuda
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build-cuda /opt/daelstrom /usr/local

FROM run AS cpu
COPY --from=build /opt/daelstrom /usr/local
