"""The memory behind tensors. PyTorch's `torch.storage`."""

from pullback.functions.storages import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
