"""Every suite has its figure; what they look like, eyes have to judge."""

import numpy as np
import pandas as pd
import pytest
from made_up_rows import every_row, trials
from misscnf_study.figures import draw_figures
from misscnf_study.plot_style import METHODS as LOOKS
from misscnf_study.suites import SUITES

from misscnf import InputError

NO_CURVES = pd.DataFrame({"mechanism": []})
PANELS = {"main": 16, "positivity": 4, "mnar": 8, "draws": 4, "nonlinearity": 8, "scaling": 2}


def curves():
    edges = np.linspace(-2.0, 2.0, 17)
    parts = [
        pd.DataFrame(
            {"left": edges[:-1], "right": edges[1:], "error": np.maximum(0.0, -edges[1:])}
        )
        .assign(boundary=0.0, **trial.to_dict())
        .astype({"draws": "Int64", "rows": "Int64", "epochs": "Int64"})
        for trial in trials("positivity", mechanism=["two_patterns_violated"], seed=[0, 1])
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_a_figure(suite, tmp_path):
    (figure,) = draw_figures(every_row(suite, seed=[0, 1]), NO_CURVES, "kl").values()
    assert len(figure.axes) == PANELS[suite]
    assert all(ax.lines or ax.patches for ax in figure.axes)
    path = tmp_path / "figure.png"
    figure.savefig(path, dpi=40)
    assert path.stat().st_size > 1000


def test_the_boundary_has_a_figure_of_its_own():
    figures = draw_figures(every_row("positivity", seed=[0, 1]), curves(), "kl")
    assert list(figures) == ["positivity-kl", "positivity-boundary"]
    ax = figures["positivity-boundary"].axes[0]
    x, error = ax.lines[0].get_data()
    # What is unseen lies below the boundary: a positive distance, where the error is.
    assert (np.asarray(error)[np.asarray(x) < -0.2] == 0.0).all()
    assert (np.asarray(error)[np.asarray(x) > 0.2] > 0.0).all()


def test_a_logarithmic_axis_shows_noise_at_its_edge():
    rows = every_row("mnar", seed=[0])
    rows.loc[0, "kl"] = -0.0005
    (figure,) = draw_figures(rows, NO_CURVES, "kl").values()
    assert {ax.get_yscale() for ax in figure.axes} == {"log"}
    assert figure.axes[0].get_ylim()[0] > 0.0


def test_one_row_is_enough():
    assert draw_figures(every_row("main", seed=[0]).iloc[:1], NO_CURVES, "seconds")


def test_each_method_looks_its_own():
    assert len(set(LOOKS.values())) == len({color for color, _ in LOOKS.values()}) == len(LOOKS)


def test_nothing_to_draw_is_said():
    rows = every_row("mnar", seed=[0]).assign(status="failed")
    with pytest.raises(InputError, match="has a number to draw"):
        draw_figures(rows, NO_CURVES, "kl")
