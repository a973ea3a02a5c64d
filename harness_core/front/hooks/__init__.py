"""The parts of the pytest plugin, one concept each; ``harness_core.front.pytest_plugin`` lists them."""
