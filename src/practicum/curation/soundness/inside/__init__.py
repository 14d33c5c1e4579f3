"""What is laid into a judge's box to change its surroundings. Needs nothing but the standard library there."""
