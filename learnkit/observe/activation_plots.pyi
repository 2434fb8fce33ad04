# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""Draw activation statistics over time: histograms as a colourful dimension, numbers as lines"""
