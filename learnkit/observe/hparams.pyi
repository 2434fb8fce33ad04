# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""What a Learner trains with, as a dictionary for the configuration that experiment trackers keep"""
