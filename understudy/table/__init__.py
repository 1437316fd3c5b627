"""Private rows as compact codes; the only room that holds them."""
