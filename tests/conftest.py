"""What all tests share: what is collected, how property tests run, and how JAX compiles."""

import os

from hypothesis import HealthCheck, settings

# With --doctest-modules these would be collected as modules of one and the same name.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

# Most of a short fit is compiling it: without LLVM's optimiser the same program compiles in half the time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

# A busy machine is no counterexample: no deadline, and no complaint about slow data. The same examples each time, so
# that a change is judged by what it changed; `make test-slow` searches for new ones.
ALWAYS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", max_examples=50, derandomize=True, **ALWAYS)
settings.register_profile("search", max_examples=500, **ALWAYS)
settings.load_profile("same")
