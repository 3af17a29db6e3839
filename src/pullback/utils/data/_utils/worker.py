"""`torch.utils.data._utils.worker`: what a worker process knows about itself, under PyTorch's path."""

from pullback.utils.data.worker import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
