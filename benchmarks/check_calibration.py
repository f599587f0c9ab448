"""How far a report can be trusted: false regions, power, boundaries, Little's test, the graph.

Tables are simulated, with holes whose chances are known (tests/identification/simulated.py). The
bars are those of the issue; the "strong" tables, whose loss hangs steeply on any columns, are
harder. Graphs are judged on mixed tables with bent mechanisms, products and MAR holes: a true one
should hardly ever be accused, and one without an arrow that the effect leans on should be.

    python benchmarks/check_calibration.py             # everything
    python benchmarks/check_calibration.py --graphs    # the graphs alone
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from misscnf_study.data import make_data
from report import finish

from misscnf.identification import check
from misscnf.identification.little import little_test

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "identification"))

from simulated import (
    SHAPES,
    false_regions,
    finds_the_region,
    mcar_normal_table,
    mixed_table,
    random_table,
    table_with_a_region,
)

TABLES = 100
WRONG_GRAPHS = 20
LITTLE_TABLES = 1000
FAMILIES = {"chain": ("x1", "x2"), "fork": ("x1", "x2", "x3")}
CUT = {"chain": "x2", "fork": "x3"}


def count_false(strength: float | None) -> tuple[int, int]:
    """Returns false regions and all flagged ones over 100 random tables."""
    false = flagged = 0
    for seed in range(TABLES):
        graph, table, values, chances = random_table(seed, strength)
        report = check(table, graph)
        false += len(false_regions(report, graph, values, chances))
        flagged += int(report.regions["flagged"].sum())
    return false, flagged


def power(shape: str, hidden: float = 0.0) -> int:
    """Returns in how many of 100 tables a region with 5 % of 5,000 rows is found."""
    found = 0
    for seed in range(TABLES):
        graph, table, region = table_with_a_region(seed, shape, hidden=hidden)
        found += finds_the_region(check(table, graph), table, region)
    return found


def suite(regime: str) -> tuple[int, float]:
    """Returns how many of 20 tables are told right, and the worst boundary in deviations."""
    right, worst = 0, 0.0
    for scm in ("chain_lin", "chain_nlin", "fork_lin", "fork_nlin"):
        kind = scm.split("_")[0]
        for seed in range(5):
            data = make_data(scm, f"two_patterns_{regime}", None, seed)
            report = check(data.tables.train, data.world.graph)
            expected = FAMILIES[kind] if regime == "violated" else ()
            right += report.uncovered == expected
            cut = data.tables.complete_train[CUT[kind]]
            for line in report.regions[report.regions["flagged"]].itertuples():
                (condition,) = line.conditions
                right -= condition["column"] != CUT[kind]
                worst = max(worst, float(abs(condition["high"] - cut.median()) / cut.std()))
    return right, worst


def little_error(rows: int, columns: int) -> float:
    """Returns how often a true MCAR is rejected at 5 %, at correlation 0.9 and 40 % holes."""
    tests = [
        little_test(mcar_normal_table(seed, rows, columns, 0.9, 0.4))
        for seed in range(LITTLE_TABLES)
    ]
    return sum(test is not None and test.p_value < 0.05 for test in tests) / LITTLE_TABLES


def judge_graphs() -> dict[str, Any]:
    """Returns how many true and wrong graphs are accused, and for what."""
    told: dict[str, Any] = {}
    for name, count in (("true", TABLES), ("wrong", WRONG_GRAPHS)):
        denied = anything = arrow = 0
        for seed in range(count):
            graph, effect, table, dropped = mixed_table(seed, wrong=name == "wrong")
            report = check(table, graph, effect=effect)
            denied += bool(report.denied)
            anything += bool(report.contradictions)
            pairs = [{line.node, line.other} for line in report.denied]
            arrow += dropped is not None and set(dropped) in pairs
        told |= {f"{name}_graphs": count, f"{name}_denied": denied, f"{name}_any": anything}
        print(f"{count} {name} graphs: the effect leans on what rows deny in {denied}", flush=True)
    return told | {"wrong_arrow_named": arrow}


def graph_bars(told: dict[str, Any]) -> dict[str, bool]:
    """Returns whether true graphs are left alone."""
    return {"at most 5 of 100 true graphs accused": told["true_denied"] <= 5}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", action="store_true", help="the graphs alone")
    graphs = parser.parse_args().graphs
    told = judge_graphs()
    if graphs:
        finish(told, graph_bars(told))
    false, flagged = count_false(None)
    print(f"false regions in {TABLES} random tables: {false} of {flagged} flagged")
    strong_false, strong_flagged = count_false(2.0)
    print(f"the same where loss is steep: {strong_false} of {strong_flagged} flagged")
    found = {shape: power(shape) for shape in SHAPES}
    found_hidden = {s: power(s, hidden=0.2) for s in ("tail", "middle", "bystander")}
    print(f"regions found in {TABLES} tables: {found}; its column hidden in 20 %: {found_hidden}")
    violated, boundary = suite("violated")
    holds, _ = suite("holds")
    print(f"positivity suite: violated {violated}/20, boundary within {boundary:.5f} deviations")
    print(f"positivity suite: holds {holds}/20 without a flag")
    errors = {f"{n}x{d}": little_error(n, d) for n, d in ((500, 5), (300, 8))}
    print(f"Little's test rejects a true MCAR in {errors}")
    # 1000 tables at 5 %: 99 % of counts are within 5 ± 1.8 %.
    finish(
        {
            "false": false,
            "flagged": flagged,
            "strong_false": strong_false,
            "strong_flagged": strong_flagged,
            "found": found,
            "found_hidden": found_hidden,
            "violated": violated,
            "boundary": boundary,
            "holds": holds,
            "little_errors": errors,
            **told,
        },
        {
            **graph_bars(told),
            "at most 5 false regions in 100 tables": false <= 5,
            "at most 5 where loss is steep": strong_false <= 5,
            "each shape found in 80 of 100": min(found.values()) >= 80,
            "violated: families and x_cut named in all 20": violated == 20,
            "violated: boundary within 0.1 deviations": bool(boundary <= 0.1),
            "holds: nothing flagged in all 20": holds == 20,
            "Little's type-I error within bounds": all(
                0.032 <= e <= 0.068 for e in errors.values()
            ),
        },
    )


if __name__ == "__main__":
    main()
