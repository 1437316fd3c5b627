"""GS-WGAN for tables: critics on disjoint slices of the rows, and a generator that asks one of them at a time."""
