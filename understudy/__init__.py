"""Differentially private stand-ins for sensitive tables."""

__version__ = "0.1.0"
