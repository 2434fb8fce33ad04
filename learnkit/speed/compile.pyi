# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""learn.compile: compile the model in place with `torch.compile`"""
