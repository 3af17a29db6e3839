"""Files for TensorBoard, written without it. PyTorch's `torch.utils.tensorboard`."""

from pullback.utils.tensorboard.records import FileWriter, RecordWriter
from pullback.utils.tensorboard.writer import SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
