"""A structural causal model: its mechanisms, the sweep that answers questions, its storage.

structural    a graph, a mechanism for each node, and one sweep with some nodes held
storage       models as files: safetensors and JSON, with digests
"""

from misscnf.model.structural import Clamp, StructuralModel

__all__ = ["StructuralModel", "Clamp"]
