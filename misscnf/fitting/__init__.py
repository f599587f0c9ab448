"""Fitting: a structural model that maximises the likelihood of what each row shows.

fit             the whole of it: solve, select, train; settings, every number that shapes it
solve           maxima that are solved for: linear, generalised linear, Monte-Carlo
smooth          curves, whose prior the evidence chooses
select          which form of a mechanism each node earns, by elpd differences
train           networks: the one loop, its gradient, checkpoints
completions     rows completed by a fit, and the likelihood near it; stacked, many models at once
replicates      what a fit might have been, had other rows been drawn
"""
