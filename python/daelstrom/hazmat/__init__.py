# SPDX-License-Identifier: Apache-2.0
"""The modules of pyca/cryptography that daelstrom stands in for, by their names there."""
