"""What all tests share: how property tests run."""

from hypothesis import HealthCheck, settings

# A busy machine is no counterexample: no deadline, and no complaint about slow data.
settings.register_profile("understudy", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("understudy")
