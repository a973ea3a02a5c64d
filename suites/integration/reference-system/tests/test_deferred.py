"""What the warm process does not import until it is asked for."""

import subprocess
import sys

_PROGRAM = """
import sys
from workbench_worker.deferred import import_build123d

import_build123d()
assert "sklearn" not in sys.modules, "scikit-learn is imported at the start"
from build123d import brep_from_stl

found = brep_from_stl.DBSCAN(eps=0.5, min_samples=1).fit([[0.0, 0.0], [0.1, 0.0], [9.0, 9.0]])
assert found.labels_.tolist() == [0, 0, 1], found.labels_
from sklearn.cluster import DBSCAN, KMeans

assert isinstance(found, DBSCAN) and KMeans
"""


def test_scikit_learn_waits_until_its_clustering_is_asked_for():
    """It is not imported with build123d, works when it is called, and is itself to who imports it."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")
