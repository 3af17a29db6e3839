"""Settings of PyTorch's compiler: kept, without effect."""

from pullback.pytorch.compiler.settings import make_settings

__all__: list[str] = []

make_settings(__name__, "_functorch")
