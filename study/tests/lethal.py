"""An imputer that takes its process down with it."""

import os
import signal


class Lethal:
    def fit(self, values):
        os.kill(os.getpid(), signal.SIGKILL)

    def transform(self, values):
        return values
