"""What agents write and hand over, read and judged; bytes in, values and findings out.

- ``text.py``: bytes to text. ``strict_yaml.py``: text to values. ``schema.py``: values to models.
- ``plan_md.py``, ``todo_md.py``, ``objectives.py``, ``estimate.py``, ``review_md.py``,
  ``refusal_md.py``: one file of a hand-over each. ``sections.py`` and ``front_matter.py``: the
  Markdown in them. ``boxes.py``: the geometry of zones. ``variants.py``: where the object can start.
- ``environment.py``: whether a benchmark's environment is as it was handed over.
- ``agreement.py``: whether the files say the same. ``templates.py``: what agents start from.
- ``handover.py``: the gate of each role over all of it.

Nothing here reads a file, asks a service or raises on what an agent wrote: a reader returns
``(value or None, findings)``.
"""
