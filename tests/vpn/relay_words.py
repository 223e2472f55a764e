# SPDX-License-Identifier: Apache-2.0
"""What one says to relay.cpp while it runs."""
import json


class Words:
    """Of a relay whose `process` has pipes for its lines, both ways."""

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def stats(self):
        return json.loads(self.say("stats"))
