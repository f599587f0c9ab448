"""What does a modelled loss cost? Processor time of the fit against the one that ignores the loss.

Worlds of the study, self-masking at 60 %, 20,000 rows, `auto`, both fits in one process, each
after one of 500 rows, so that imports do not count. Bar: at most 3 times. Where all is linear, the
fit that ignores the loss is a closed form of two seconds.

    python benchmarks/loss_cost.py [--scm chain_nlin]
"""

from __future__ import annotations

import argparse
import time

import torch
from misscnf_study.data import make_data
from report import finish

from misscnf import MissCNF

WORLDS = ("chain_nlin", "fork_nlin", "chain_lin")


def main() -> None:
    """Fits each world twice."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scm", action="append")
    torch.set_num_threads(1)
    figures, bars = {}, {}
    for scm in parser.parse_args().scm or WORLDS:
        data = make_data(scm, "self_masking", 0.6, 0)
        table, seconds = data.tables.train, {}
        own = {name: [name] for name in table if table[name].isna().any()}
        for name, loss in (("ignored", None), ("told", own)):
            about = {"kinds": "continuous", "loss": loss, "progress": False}
            model = MissCNF(data.world.graph, **about).fit(table.iloc[:500])
            started = time.process_time()
            model.fit(table)
            seconds[name] = round(time.process_time() - started, 1)
        times = seconds["told"] / seconds["ignored"]
        figures[scm] = {**seconds, "times": round(times, 2)}
        bars[f"{scm}: at most 3 times"] = times <= 3.0
        print(scm, figures[scm], flush=True)
    finish(figures, bars)


if __name__ == "__main__":
    main()
