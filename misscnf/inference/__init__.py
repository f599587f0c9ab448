"""The likelihood of what a row shows, and the posterior of what it hides.

elimination    the plan of an incomplete table: what is free, hidden, barren
integrals      what is hidden, integrated by the best means that each component allows
likelihood     the log-density of what each row shows, with its quality
posterior      draws of what is hidden given what is shown
"""
