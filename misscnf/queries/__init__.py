"""The questions that a fitted model answers, in the user's units.

simulate         samples, counterfactuals, imputations, densities: one sweep each
density          the log-density of each row as a table, with a reason where it is −∞
interventions    what `do=` takes: assigned (values), expressions (texts), laws (draws)
asking           effects and curves, with intervals; arms (the sweeps), groups (in whom),
                 conditions (what `where=` takes)
effects          contrasts of two arms, on the scale of the outcome
support          where answers leave the rows that the mechanisms were learned from
pooling          Rubin's rules for analyses of several imputed tables
"""
