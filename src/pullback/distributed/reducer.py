"""Reducer: averages gradients over ranks, bucket by bucket, while backward runs.

# Note [Buckets]
Parameters are put into buckets in the reverse of the order in which they are registered, which is about the order in
which their gradients appear; after the first backward, in the order in which they did appear on rank 0. When all
gradients of a bucket are complete, they are copied into it one after the other, divided by the number of ranks: a copy
right after the kernel that made a gradient finds cold caches (35 us instead of 2 for a bias). A full bucket is sent as soon
as all buckets before it have been, so that every rank sends them in the same order. When the last one was sent, a callback
at the end of the pass waits for all of them and puts the averages into `.grad`. Nothing is copied back: a gradient that
nobody else holds takes its place in the bucket for its memory, and the next pass gets a new bucket if such a gradient is
still there (`gradient_as_bucket_view=True` keeps the bucket, and `.grad` is a view of it).

Sparse gradients (those of `Embedding(sparse=True)`) are in no bucket: how much there is to send is known when they are
there. They are added up at the end of the pass, one after the other, and no communication hook sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import pullback
from pullback.autograd.function import Function
from pullback.distributed import collectives, debug
from pullback.distributed.buffers import write
from pullback.distributed.grad_bucket import _DEFAULT_FIRST_BUCKET_BYTES, Bucket, GradBucket, assign_buckets
from pullback.distributed.process_group import ProcessGroup
from pullback.distributed.reduce_operation import RedOpType
from pullback.distributed.sparse_sums import empty_rows, sum_over_ranks
from pullback.engine.engine import engine
from pullback.graph.accumulate_grad import AccumulateGrad, accumulator_of
from pullback.tensor.sparse_tensor import SparseTensor, new_sparse_tensor
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["Reducer"]

Hook = Callable[[Any, GradBucket], Any]


class Reducer:
    """Averages the gradients of some parameters over the ranks of a group. See Note [Buckets]."""

    def __init__(
        self, parameters: Sequence[Any], names: Sequence[str], group: ProcessGroup, bucket_bytes: int,
        first_bucket_bytes: int = _DEFAULT_FIRST_BUCKET_BYTES, find_unused: bool = False, keep_buckets: bool = False,
        static_graph: bool = False, sparse: Collection[int] = (),
    ) -> None:  # fmt: skip
        self.parameters = list(parameters)
        self._sparse = sorted(sparse)
        self.group = group
        self.find_unused = find_unused
        self.static_graph = static_graph
        self.divisor = group.size()
        self._names = list(names)
        self._keep = keep_buckets
        self._limits = [first_bucket_bytes, bucket_bytes]
        self._hook: tuple[Any, Hook] | None = None
        self._is_armed = False
        self._is_rebuilt = False
        self._order: list[int] = []
        self._order_now: list[int] = []
        self._seen: set[int] = set()
        self._unused: set[int] = set()
        self._next = 0
        self._has_begun = False
        self._calls = [0] * len(self.parameters)
        self._expected_calls: list[int] | None = None
        self._make_buckets(range(len(self.parameters) - 1, -1, -1))
        self._accumulators = [accumulator_of(parameter) for parameter in self.parameters]
        self._handles = [
            parameter.register_post_accumulate_grad_hook(partial(self._gradient_is_there, index))
            for index, parameter in enumerate(self.parameters)
        ]

    def _make_buckets(self, order: Iterable[int]) -> None:
        dense = [index for index in order if index not in self._sparse]
        assigned = assign_buckets(self.parameters, dense, self._limits)
        self.buckets = [Bucket(index, indices, self.parameters) for index, indices in enumerate(assigned)]
        self._bucket_of = {number: bucket for bucket in self.buckets for number in bucket.indices}

    def register_hook(self, state: Any, hook: Hook) -> None:
        """Let `hook(state, bucket)` reduce buckets: it returns a Future of the averaged buffer."""
        if self._hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._hook = (state, hook)

    def remove(self) -> None:
        """Leave the parameters alone from now on."""
        for handle in self._handles:
            handle.remove()

    # Before a pass.

    def prepare_for_forward(self, source: int = 0) -> None:
        """Refuse to begin while the last pass is unfinished; put the buckets into the order in which gradients came."""
        if self._is_armed and self._seen - self._unused:
            raise RuntimeError(self._unfinished())
        if self.will_rebuild:
            self.rebuild(source)

    def rebuild(self, source: int) -> None:
        """Make the buckets anew, in the order in which gradients came on one rank of the group."""
        order = pullback.tensor(self._order or [0] * len(self.parameters))
        collectives.broadcast(order, group=self.group, group_src=source)
        self._make_buckets(list(map(int, order.tolist())))
        self._is_rebuilt = True

    @property
    def will_rebuild(self) -> bool:
        """Whether the first pass is over and the buckets are to be made anew before the next."""
        return (self.static_graph or not self.find_unused) and not self._is_rebuilt and bool(self._order)

    def prepare_for_backward(self, outputs: Any) -> Any:
        """Expect the gradients of a pass that begins at these outputs, which are returned."""
        self._is_armed = True
        self._seen, self._unused, self._order_now = set(), set(), []
        self._calls = [0] * len(self.parameters)
        self._next = 0
        self._has_begun = False
        for bucket in self.buckets:
            bucket.renew(self._keep)
        if self.static_graph and self._expected_calls is None:
            return _with_callback(outputs, lambda _: engine.queue_callback(self._finish_first_static_pass))
        if self.static_graph:
            self._unused = {index for index, count in enumerate(self._expected_calls or ()) if count == 0}
        elif self.find_unused:
            hidden = _nodes_of(_tensors_in_dataclasses(outputs))
            if hidden:  # backward may begin at these alone, and then nobody says so
                self._unused = self._without_gradients([*hidden, *_nodes_of(_tensors_among(tree_flatten(outputs)[0]))])
            return _with_callback(outputs, lambda nodes: self._note_unused([*nodes, *hidden]))
        return outputs

    def _without_gradients(self, nodes: Iterable[Any]) -> set[int]:
        """The parameters that a backward pass from these nodes does not reach."""
        reached = _accumulators_below(nodes)
        return {index for index, node in enumerate(self._accumulators) if node not in reached}

    def _note_unused(self, nodes: Iterable[Any]) -> None:
        """Learn, as backward begins, at which nodes it does."""
        found = self._without_gradients(nodes) - self._seen
        self._unused |= found
        if self._has_begun:
            self._put_former(found)
        elif len(self._unused) == len(self.parameters):
            self._begin()  # no gradient will come, and the other ranks wait for what this one has

    # While backward runs.

    def _begin(self) -> None:
        """Put what earlier passes left of the gradients that this pass does not make; the ranks average that, too."""
        self._has_begun = True
        self._put_former(self._unused)

    def _put_former(self, indices: Iterable[int]) -> None:
        for index in sorted(indices):
            self._put(index, self.parameters[index]._grad)

    def _gradient_is_there(self, index: int, parameter: Any) -> None:
        if not self._is_armed:
            return
        self._calls[index] += 1
        if self.static_graph:
            expected = self._expected_calls
            if expected is None or self._calls[index] < expected[index]:
                if self._calls[index] == 1:
                    self._order_now.append(index)
                return
            if self._calls[index] > expected[index]:
                raise RuntimeError(
                    "Your training graph has changed in this iteration, e.g., one parameter is unused in first iteration, "
                    "but then got used in the second iteration. This is not compatible with static_graph set to True: "
                    f"parameter {self._names[index]} got {expected[index]} gradients in the first pass, and more now."
                )
        elif index in self._seen:
            raise RuntimeError(
                "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use "
                "of a module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant backward "
                f"passes. Parameter at index {index} with name {self._names[index]} has been marked as ready twice. Call "
                "the module once per backward, or pass static_graph=True if its graph never changes."
            )
        if not self._has_begun:
            self._begin()
        self._order_now.append(index)
        self._put(index, parameter._grad)
        if self._next:
            self.group.poll()

    def _put(self, index: int, grad: Any) -> None:
        """Note a gradient for its bucket (None: zeros) and send what is full."""
        self._seen.add(index)
        if index in self._sparse:
            self._send_full_buckets()
            return
        bucket = self._bucket_of[index]
        if isinstance(grad, SparseTensor):
            raise NotImplementedError(
                f"the gradient of {self._names[index]} is sparse, which DistributedDataParallel expects of the weights of "
                "Embedding and EmbeddingBag with sparse=True alone"
            )
        bucket.arrived[index] = None if grad is None else grad._array
        bucket.missing -= 1
        if not bucket.missing:
            bucket.pack(1.0 if self._hook is not None else 1.0 / self.divisor)
            self._send_full_buckets()

    def _send_full_buckets(self) -> None:
        while self._next < len(self.buckets) and not self.buckets[self._next].missing:
            self._send(self.buckets[self._next])
            self._next += 1
        if len(self._seen) == len(self.parameters):
            engine.queue_callback(self._finish)

    def _send(self, bucket: Bucket) -> None:
        if self._hook is not None:
            state, hook = self._hook
            bucket.result = hook(state, GradBucket(bucket, len(self.buckets)))
            if not hasattr(bucket.result, "wait"):
                raise RuntimeError(
                    "DDP communication hook's callback must return a torch.futures.Future object, but got "
                    f"{type(bucket.result).__name__}"
                )
            return
        bucket.result = self.send_memory(bucket.memory)

    def shadow(self) -> None:
        """Take part in the communication of one pass without gradients of one's own."""
        works = []
        for bucket in self.buckets:
            if self._hook is None:
                works.append(self.send_memory(bucket.zeros()))
            else:
                bucket.memory = bucket.zeros()
                self._send(bucket)
                works.append(bucket.result)
        if self.find_unused or self.static_graph:
            collectives.all_reduce(pullback.zeros(len(self.parameters), dtype=pullback.int32), group=self.group)
        for work in works:
            work.wait()
        for index in self._sparse:
            sum_over_ranks(empty_rows(self.parameters[index]._array), self.group)

    def send_memory(self, memory: Any) -> Any:
        """Begin to add up the memory of one bucket over all ranks."""
        return self.group.start(
            "all_reduce", lambda comm: comm.all_reduce(memory, RedOpType.SUM), tensors=[new_tensor(memory)],
            details="bucket", async_op=True,
        )  # fmt: skip

    def _finish_first_static_pass(self) -> None:
        """Send everything at the end: only now is it known how often each gradient comes."""
        self._expected_calls = list(self._calls)
        self._unused = {index for index, count in enumerate(self._calls) if count == 0}
        order = [*self._order_now, *sorted(self._unused)]
        self._order_now = order
        for index in order:
            self._seen.add(index)
            if index in self._sparse:
                continue
            grad = self.parameters[index]._grad
            self._bucket_of[index].arrived[index] = None if grad is None else grad._array
        for bucket in self.buckets:
            bucket.pack(1.0 if self._hook is not None else 1.0 / self.divisor)
            self._send(bucket)
        self._finish()

    # At the end of backward.

    def _finish(self) -> None:
        """Wait for all buckets and put the averages into `.grad`."""
        self._is_armed = False
        unused = self._unused_everywhere()
        for bucket in self.buckets:
            result = bucket.result.wait()
            if self._hook is not None:
                _take(bucket, result)
            for index in bucket.indices:
                if index not in unused:
                    self._deliver(index, bucket)
        for index in self._sparse:
            self._average_sparse(index, index in unused)
        if not self._order:
            self._order = [*self._order_now, *sorted(self._unused.difference(self._order_now))]

    def _unused_everywhere(self) -> set[int]:
        """The parameters that no rank used, whose `.grad` stays as it is."""
        if not self.find_unused and not self.static_graph:
            return set()
        used = pullback.tensor(
            [index not in self._unused for index in range(len(self.parameters))], dtype=pullback.int32
        )
        collectives.all_reduce(used, group=self.group)
        return {index for index, count in enumerate(used.tolist()) if count == 0}

    def _average_sparse(self, index: int, is_unused: bool) -> None:
        """Average a gradient of rows; all ranks take part, also those that have none."""
        parameter = self.parameters[index]
        grad = parameter._grad
        if grad is not None and not isinstance(grad, SparseTensor):
            grad = grad.to_sparse(1)
        total = sum_over_ranks(empty_rows(parameter._array) if grad is None else grad._sparse, self.group)
        if not is_unused:
            total.values = total.values / total.values.dtype.type(self.divisor)
            parameter._grad = new_sparse_tensor(total)

    def _deliver(self, index: int, bucket: Bucket) -> None:
        parameter, slot = self.parameters[index], bucket.slots[index]
        grad = parameter._grad
        if self._keep:
            parameter._grad = bucket.view(index)
        elif grad is None:
            parameter._grad = new_tensor(slot)
        elif grad._counter is None and grad._extra is None and grad._edge is None and grad._array.flags.c_contiguous:
            grad._array = slot  # nobody else sees the memory that it had
        else:
            write(grad, slot)

    def _unfinished(self) -> str:
        missing = [index for index in range(len(self.parameters)) if index not in self._seen]
        names = ""
        if debug.get_debug_level() is not debug.DebugLevel.OFF:
            names = f" ({', '.join(self._names[index] for index in missing)})"
        return (
            "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates "
            "that your module has parameters that were not used in producing loss. You can enable unused parameter "
            "detection by passing the keyword argument `find_unused_parameters=True` to "
            "`torch.nn.parallel.DistributedDataParallel`, and by making sure all `forward` function outputs participate "
            f"in calculating loss. Parameter indices which did not receive grad for rank {self.group.global_rank()}: "
            f"{' '.join(map(str, missing))}{names}"
        )


def _take(bucket: Bucket, result: Any) -> None:
    """Put what a communication hook made into the bucket's memory."""
    if isinstance(result, list | tuple):
        result = result[0]
    assert bucket.memory is not None
    bucket.memory[...] = result._array.reshape(-1)


def _nodes_of(tensors: Iterable[Any]) -> list[Any]:
    """The nodes at which a backward pass from these tensors begins."""
    return [tensor.grad_fn or accumulator_of(tensor) for tensor in tensors if tensor.requires_grad]


def _tensors_among(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, Tensor)]


def _tensors_in_dataclasses(outputs: Any) -> list[Any]:
    """The tensors of outputs that cannot be taken apart and put together again, as dictionaries and lists can."""
    found: list[Any] = []
    pending = [leaf for leaf in tree_flatten(outputs)[0] if is_dataclass(leaf)]
    while pending:
        each = pending.pop()
        values = tree_flatten([getattr(each, field.name) for field in fields(each)])[0]
        found += _tensors_among(values)
        pending += [value for value in values if is_dataclass(value)]
    return found


def _accumulators_below(nodes: Iterable[Any]) -> set[AccumulateGrad]:
    """The leaves' nodes that a backward pass from these nodes reaches."""
    found: set[AccumulateGrad] = set()
    seen: set[Any] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, AccumulateGrad):
            found.add(node)
        pending.extend(edge[0] for edge in node.next_edges if edge is not None)
    return found


class _DDPSink(Function):
    """Passes outputs through; its backward, the first of a pass, says at which nodes the pass begins."""

    @staticmethod
    def forward(ctx: Any, callback: Callable[[list[Any]], None], nodes: list[Any], *outputs: Any) -> Any:
        ctx.callback = callback
        ctx.nodes = nodes
        ctx.set_materialize_grads(False)
        return tuple(output.clone() for output in outputs)  # programs may write to them

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.callback([node for node, grad in zip(ctx.nodes, grads, strict=True) if grad is not None])
        return (None, None, *grads)


def _with_callback(outputs: Any, callback: Callable[[list[Any]], None]) -> Any:
    """The outputs, whose backward begins with a call that gets the nodes below those that have gradients."""
    flat, structure = tree_flatten(outputs)
    places = [index for index, output in enumerate(flat) if isinstance(output, Tensor) and output.requires_grad]
    if places:
        own = [flat[index] for index in places]
        passed = _DDPSink.apply(callback, _nodes_of(own), *own)
        for index, output in zip(places, passed, strict=True):
            flat[index] = output
    return tree_unflatten(flat, structure)
