"""A structural causal model: its mechanisms, the sweep that answers questions, its storage.

structural    a graph, mechanisms of its nodes, and one sweep with some nodes held
structure     what is known before a fit: graph, domains, and which nodes share a mechanism
storage       models as files: safetensors and JSON, with digests
"""

from misscnf.model.structural import Clamp, StructuralModel
from misscnf.model.structure import Structure

__all__ = ["StructuralModel", "Structure", "Clamp"]
