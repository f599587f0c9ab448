"""The whole pipeline against closed forms: data, holes, imputer, flow and metric at once.

Under MCAR, the best affine flow (network mean and scale) of a table completed by column means, or
by one draw of a linear regression, is known in closed form on the colliders; so is its distance
from the truth. Nothing of ours but the equations of the worlds enters the expected value.
"""

import pytest
from closed_forms import kl_after_mean, kl_after_mice
from misscnf_study.data import make_data
from misscnf_study.methods import Flow, load_method
from misscnf_study.metrics import exact_kl

from misscnf.mechanisms import Shape

RATE = 0.6
SETTINGS = {
    "shape": Shape(hidden=(64, 64), scale_hidden=(64, 64)),
    "selection.compare": False,
    # Gentle steps, whatever the preset's are: a scale network is held against its law here.
    "epochs": 30,
    "complete_family_share": 0.0,
    "batch": 2048,
    "learning_rate": 2e-3,
}
EXPECTED = {
    ("collider_lin", "mean"): kl_after_mean,
    ("collider_nlin", "mean"): kl_after_mean,
    ("collider_nlin", "mice"): kl_after_mice,
}


def fitted_kl(scm, method):
    data = make_data(scm, "mcar", RATE, 0)
    flow = Flow(data.world.graph, "auto", 0, SETTINGS)
    model = load_method(method)(data.tables, flow)
    return data.world, exact_kl(model.structural_model(), data.world.model, draws=50_000)


@pytest.mark.slow
@pytest.mark.parametrize(("scm", "method"), EXPECTED)
def test_a_rival_ends_where_its_closed_form_says(scm, method):
    world, found = fitted_kl(scm, method)
    assert found == pytest.approx(EXPECTED[scm, method](world, RATE), rel=0.1)


@pytest.mark.slow
def test_mice_on_a_linear_world_has_no_bias_to_end_at():
    """The closed form is zero; what is left is the sampling error of 20,000 rows."""
    world, found = fitted_kl("collider_lin", "mice")
    assert kl_after_mice(world, RATE) == pytest.approx(0.0, abs=1e-9)
    assert found < 0.005
