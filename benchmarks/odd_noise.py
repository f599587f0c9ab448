"""No harm off the benchmark: where noise is not normal, does the ladder climb to where it must?

Worlds with noise that is bounded (simpson_nlin), of a scale that follows its parents
(heteroscedastic) and of two peaks (bimodal), complete and MAR at 30 %, 20,000 rows. `auto` beside
four fixed forms that every node gets: network; network and network scale; network and spline;
all. What counts is the log-density of 2,500 complete rows that no fit saw, paired row by row.

Bar: `auto` is above the best fixed form, or within one standard error below it.

    python benchmarks/odd_noise.py
"""

from __future__ import annotations

from typing import Any

import torch
from misscnf_study.data import make_data
from report import finish

from misscnf import MissCNF
from misscnf.fitting.settings import Settings, Shape

WORLDS = ("simpson_nlin", "heteroscedastic", "bimodal")
LOSSES = (("complete", None), ("mar", 0.3))
FORMS = {
    "network": Shape(),
    "network scale": Shape(scale_hidden=Settings().selection.scale_hidden),
    "spline noise": Shape(kind="spline"),
    "both": Shape(kind="spline", scale_hidden=Settings().selection.scale_hidden),
}


def compare(world: str, loss: tuple[str, float | None]) -> dict[str, Any]:
    """Returns what `auto` chose, and its gain over the best fixed form."""
    data = make_data(world, *loss, seed=0)

    def log_prob(settings: dict[str, object] | None = None) -> tuple[MissCNF, torch.Tensor]:
        model = MissCNF(
            data.world.graph, kinds="continuous", settings=settings, progress=False
        ).fit(data.tables.train, validation=data.tables.validation)
        return model, torch.tensor(model.log_prob(data.test).to_numpy())

    model, ours = log_prob()
    fixed = {
        name: log_prob({"selection.compare": False, "shape": shape})[1]
        for name, shape in FORMS.items()
    }
    best = max(fixed, key=lambda name: float(fixed[name].mean()))
    elpd_difference = ours - fixed[best]
    return {
        "forms": {name: str(form) for name, form in model.forms_.items()},
        "auto": float(ours.mean()),
        "fixed": {name: float(found.mean()) for name, found in fixed.items()},
        "best": best,
        "elpd_difference": float(elpd_difference.mean()),
        "standard_error": float(elpd_difference.std() / len(elpd_difference) ** 0.5),
    }


def main() -> None:
    """Runs the benchmark."""
    torch.set_num_threads(1)
    found, bars = {}, {}
    for world in WORLDS:
        for loss in LOSSES:
            name = f"{world}, {loss[0]}"
            found[name] = row = compare(world, loss)
            shown = ", ".join(f"{form} {value:.4f}" for form, value in row["fixed"].items())
            print(f"{name}: auto {row['auto']:.4f}; {shown}")
            print(f"  auto chose {row['forms']}", flush=True)
            difference, error = row["elpd_difference"], row["standard_error"]
            bar = f"{name}: {difference:+.4f} ± {error:.4f} over {row['best']}"
            bars[bar] = difference > -error
    finish({"worlds": found}, bars)


if __name__ == "__main__":
    main()
