"""States of models and optimizers on several ranks, as whole tensors: a part of PyTorch's `torch.distributed.checkpoint`.

Its files of many parts (`dcp.save`) are not here: take whole states and `save` them from one rank.
"""
