# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Add or remove callbacks for the length of a `with` block: `added_cbs`, `removed_cbs`"""
