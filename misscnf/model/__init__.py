"""A structural causal model: its mechanisms, the sweep that answers questions, its storage.

structural    a graph, mechanisms of its nodes, and one sweep with policies in some places
structure     what is known before a fit: graph, domains, and which nodes share a mechanism
policies      what takes the place of a mechanism: a value, a rule, a draw
intervened    the world under policies as a structural model of its own, for densities
storage       models as files: safetensors and JSON, with digests
"""

from misscnf.model.policies import Chance, Hold, Intervention, Law, Policy, Rule
from misscnf.model.structural import StructuralModel
from misscnf.model.structure import Structure

__all__ = ["StructuralModel", "Structure", "Policy", "Hold", "Rule", "Chance", "Law"]
__all__ += ["Intervention"]
