# Made by nbs/_stubs.py from the modules: `make lib` writes it again.
"""`learn.save_pretrained`: the model as transformers, timm and the Hugging Face hub keep it"""
from typing import Any

def _replace(path: Any, write: Any) -> None:
    """Let `write` fill a folder, which then takes the place of `path`"""
    ...
