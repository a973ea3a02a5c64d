"""Whether a design can be made, and for how much; nothing here serves or stores anything.

- ``configuration.py``: ``manufacturing_config.yaml``, the one source of materials, rates and limits.
- ``pricing.py``: a part's cost and weight. ``totals.py``: a design's, against its caps.
- ``judgement.py``: the whole verdict about a design that was built.
- ``costing.py``: what an estimate's author typed, against all that.
- ``solid.py``: a closed valid solid, or why it is none. ``samples.py``: points on its faces.
- ``rays.py``: what lies in a direction. ``walls.py``: thickness. ``edges.py``: inner corners.
- ``manufacturability.py``: can it be made so; ``milling.py``, ``moulding.py``, ``printing.py``: what a method
  cannot make of a solid; ``overlap.py``: what nothing can.
- ``sharing.py``: what solids have in common. ``starts.py``: whether the moved object has room between them.
- ``zones.py``: the build zone. ``validity.py``, ``imports.py``: which bytes a verdict is about.
- ``holes.py``, ``fasteners.py``: rigid connections.

``configuration``, ``pricing``, ``totals``, ``validity`` and ``zones`` import no geometry.
"""
