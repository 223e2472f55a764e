# SPDX-License-Identifier: Apache-2.0
"""`daelstrom devices`: one line for each backend, also where asking a driver ends the process that asks."""
import json
import os

from harness import CliTest, sanitized


class Devices(CliTest):
    def listed(self, **environment):
        ran = self.run_program("devices", "--json", env=dict(os.environ, **environment))
        self.assertEqual((ran.returncode, ran.stderr), (0, b""))
        return {row["name"]: row for row in json.loads(ran.stdout)}

    def test_every_backend_has_a_line(self):
        rows = self.listed()
        for kind in "reference", "openssl", "cpu", "cuda", "opencl":
            self.assertTrue(any(name.partition(":")[0] == kind for name in rows), (kind, rows))
        self.assertFalse([name for name in rows if name.startswith("opengl")])  # the lab's
        for row in rows.values():
            self.assertTrue(row["summary"])
            self.assertTrue(row["description"] if row["present"] else row["missing"], row)

    def test_a_driver_that_aborts_becomes_a_line(self):
        before = self.listed()
        if not any(name.startswith("opencl") and row["present"] for name, row in before.items()) or sanitized():
            self.skipTest("there is no OpenCL loader here whose drivers could misbehave")
        rows = self.listed(OCL_ICD_FILENAMES=os.environ["DAELSTROM_BAD_DRIVER"],
                           OCL_ICD_VENDORS=os.environ["DAELSTROM_BAD_DRIVER"])
        self.assertFalse(rows["opencl"]["present"])
        self.assertIn("Aborted", rows["opencl"]["missing"])
        others = {name for name in before if not name.startswith("opencl")}
        self.assertEqual({name for name in rows if name != "opencl"}, others)
