"""`misscnf sample`: rows drawn from a fitted model, under interventions if there are any."""

from __future__ import annotations

from typing import Annotated

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import Do, Json, Model, Out, Quiet, Seed, WithHoles, WithLatents, option

__all__ = ["sample"]


@in_a_sentence
def sample(
    model: Model,
    *,
    rows: Annotated[int, option("--rows", "How many rows.", "N", min=1)],
    do: Do = None,
    out: Out = "-",
    holes: WithHoles = False,
    latents: WithLatents = False,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw rows from a fitted model, as the world is or under interventions."""
    from misscnf.cli import arguments, inputs, outputs

    outputs.check_table_target(out, json=json)
    arm = arguments.read_arm(do, "--do", inputs.outline(model))
    fitted = inputs.open_model(model, quiet=quiet)
    drawn = fitted.sample(rows, do=arm, holes=holes, latents=latents, seed=seed)
    outputs.write_table(drawn, out, json=json)
