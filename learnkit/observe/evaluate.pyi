# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Validate a loader under a name of its own, with metrics of its own: `learn.named`, `learn.dl_name`"""
