"""The question that programs ask about exporting; nothing is exported here. PyTorch's `torch.onnx`."""

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False
