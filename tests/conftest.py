"""What all tests share: what is collected, how property tests run, and how JAX compiles."""

import os

from hypothesis import HealthCheck, settings

# With --doctest-modules these would be collected as modules of one and the same name.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

# Most of a short fit is compiling it: without LLVM's optimiser the same program compiles in half the time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

# A busy machine is no counterexample: no deadline, and no complaint about slow data.
settings.register_profile("understudy", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("understudy")
