# Made by nbs/_stubs.py from the modules: `make lib` writes it again.

