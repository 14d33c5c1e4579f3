"""One module for each runner: how its frozen tests are run in a judge's box, and what is made of the answer."""
