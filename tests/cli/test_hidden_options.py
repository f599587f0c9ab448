"""Hidden causes on the command line: declared at the fit, given back if asked for."""

import numpy as np
import pandas as pd


def test_hidden_causes_come_back_if_asked_for(call, here):
    rng = np.random.default_rng(0)
    u, *noise = rng.normal(size=(4, 120))
    table = pd.DataFrame({name: u + noise[k] for k, name in enumerate("abc")})
    table.mask(rng.random(table.shape) < 0.1).to_csv("seen.csv", index=False)
    fit = ["fit", "seen.csv", "--graph", "u -> a; u -> b; u -> c", "--latent", "u"]
    assert call([*fit, "--preset", "linear", "--out", "m"]).exit_code == 0
    for words in (["impute", "m", "seen.csv", "--draws", "2"], ["sample", "m", "--rows", "5"]):
        for asked in ([], ["--latents"]):
            assert call([*words, *asked, "--out", "out.csv"]).exit_code == 0
            found = pd.read_csv("out.csv")
            assert ("u" in found) == bool(asked)
    assert found["u"].notna().all()
