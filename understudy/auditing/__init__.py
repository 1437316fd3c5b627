"""Trying to break a guarantee: lower bounds on epsilon from what an attacker can really tell.

An audit cannot prove a guarantee. It can refute one, and where its lower bound comes near the claim, it shows that the
claim has no slack to hide an error in.
"""
