"""A structural causal model: its mechanisms, the sweep that answers questions, its storage.

structural    a graph, a mechanism for each node, and one sweep with policies in some places
policies      what takes the place of a mechanism: a value, a rule, a draw
intervened    the world under policies as a structural model of its own, for densities
storage       models as files: safetensors and JSON, with digests
"""

from misscnf.model.policies import Chance, Hold, Intervention, Law, Policy, Rule
from misscnf.model.structural import StructuralModel

__all__ = ["StructuralModel", "Policy", "Hold", "Rule", "Chance", "Law", "Intervention"]
