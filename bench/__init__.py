"""Measurements of the library against public tables, published figures and peers. Uses the public API alone."""
