# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Training with several processes: what `fit` does by itself, and `distrib_ctx` to say it"""
