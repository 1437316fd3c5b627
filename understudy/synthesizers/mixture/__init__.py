"""A mixture of product distributions, fitted to noisy one- and two-way tables: the default method."""
