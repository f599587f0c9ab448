"""The table of all imputers that every law runs over; the slow ones with less of everything."""

from dataclasses import replace

from misscnf_study.rivals import (
    IMPUTERS,
    ByPath,
    DiffPuter,
    Kpi,
    Mice,
    Miracle,
    MissForest,
    diffputer,
    kpi,
    miracle,
    miss_forest,
)

DIFFPUTER = replace(
    diffputer.PRESETS["fast"], rounds=2, trials=3, width=16, epochs=12, steps=4, repeats=3
)
KPI = replace(kpi.PRESETS["fast"], epochs=6)
MIRACLE = replace(miracle.PRESETS["fast"], epochs=12, width=8)

QUICK = {
    **IMPUTERS,
    "mice": lambda: Mice(rounds=5),
    "missforest": lambda: MissForest(replace(miss_forest.PRESETS["paper"], trees=6)),
    "missforest_stekhoven": lambda: MissForest(replace(miss_forest.PRESETS["stekhoven"], trees=6)),
    "kpi": lambda: Kpi(KPI),
    "diffputer": lambda: DiffPuter(DIFFPUTER),
    "diffputer_draw": lambda: DiffPuter(DIFFPUTER, readout="draw"),
    "miracle": lambda: Miracle(MIRACLE),
    "by_path": lambda: ByPath(
        "sklearn.impute:IterativeImputer", sample_posterior=True, max_iter=3
    ),
}
"""Every imputer by its name."""
