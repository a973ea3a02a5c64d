"""Pictures of what is made, by rays through its triangles: no display, no OpenGL, the same bytes each time.

- ``pieces.py``: triangles with a name and a colour; ``solids.py`` makes them of B-reps, ``scenes.py`` of models.
- ``camera.py``: from where it is looked, and which 24 views there are.
- ``painting.py``: a picture of pieces; ``sheet.py``: below it the scale and what each colour is, and the PNG.
- ``films.py``: the states of a run, kept to be looked at; ``video.py``: pictures as MP4.
"""
