"""The questions that a fitted model answers, in the user's units.

simulate         samples, counterfactuals, imputations, densities: one sweep each
density          the log-density of each row as a table, with a reason where it is −∞
interventions    interventions as people write them
asking, effects, groups    contrasts of interventions, in all and within groups
support          where answers leave the rows that the mechanisms were learned from
pooling          Rubin's rules for analyses of several imputed tables
"""
