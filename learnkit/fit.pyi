# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`fit` trains for some epochs, or for an amount of training; `freeze` leaves out the first layers"""
