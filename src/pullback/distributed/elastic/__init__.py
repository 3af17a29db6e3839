"""What torchrun's programs import of PyTorch's `torch.distributed.elastic`."""
