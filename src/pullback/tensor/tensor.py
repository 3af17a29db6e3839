"""Tensor: a strided array with its place in the graph.

The class holds state and what users read of it. Operations are functions of the layers above; they become methods when
`pullback.functions.methods` is imported, which calls `attach_methods`.
Note [Lazy version counters] in version_counter.py explains `_counter`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pullback.backend.array_module import element_strides, ndarray, storage_offset
from pullback.backend.device import CPU, device, device_of
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.dtype import from_numpy_dtype, is_float_or_complex
from pullback.errors import captured_modification, kind_of
from pullback.modes.cuts import note_cut
from pullback.modes.interception import (
    dispatch,
    dispatch_operation,
    register_dispatching_type,
    register_overriding_type,
)
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_user
from pullback.native import extension
from pullback.tensor.assignment import check_assigned_grad, describe_type, may_take_data
from pullback.tensor.autograd_extra import AutogradExtra
from pullback.tensor.dims import dim_of
from pullback.tensor.size import Size
from pullback.tensor.tensor_base import TensorBase as TensorBase
from pullback.tensor.user_attributes import IS_NEEDED, show_user_attributes, shown_attributes
from pullback.tensor.version_counter import DetachedVersion, InferenceAliasVersion, InferenceVersion, VersionCounter
from pullback.typing import Array

if TYPE_CHECKING:
    from pullback.graph.node import Node


_new_size = tuple.__new__  # without the conversions of Size itself: `shape` is read everywhere


class Tensor(TensorBase):
    """A multi-dimensional array that can record what is done to it.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __hash__ = object.__hash__
    __array_priority__ = 1000
    _names: Any = None
    _is_param: bool = False
    if IS_NEEDED:
        __dict__ = shown_attributes

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return _LegacyConstructor.make(cls, *args, **kwargs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if IS_NEEDED:
            show_user_attributes(cls)
        if "__torch_dispatch__" in cls.__dict__ and "__torch_function__" not in cls.__dict__:
            cls.__torch_function__ = _disabled_torch_function_impl  # as in PyTorch: it sees operations, not functions
        if getattr(cls, "__torch_function__", None) is not _disabled_torch_function_impl:
            register_overriding_type(cls)
        if getattr(cls, "__torch_dispatch__", None) is not _disabled_torch_dispatch_impl:
            register_dispatching_type(cls)

    if TYPE_CHECKING:
        # Operations are attached at run time (see `attach_methods`). This tells type checkers of them.
        def __getattr__(self, name: str) -> Any: ...

        __torch_function__: Any
        __torch_dispatch__: Any
        _make_subclass: Any
        _make_wrapper_subclass: Any

        def __add__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __lshift__(self, other: Any) -> Tensor: ...
        def __rshift__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __rfloordiv__(self, other: Any) -> Tensor: ...
        def __rmod__(self, other: Any) -> Tensor: ...
        def __rpow__(self, other: Any) -> Tensor: ...
        def __rmatmul__(self, other: Any) -> Tensor: ...
        def __rand__(self, other: Any) -> Tensor: ...
        def __ror__(self, other: Any) -> Tensor: ...
        def __rxor__(self, other: Any) -> Tensor: ...
        def __iadd__(self, other: Any) -> Tensor: ...
        def __isub__(self, other: Any) -> Tensor: ...
        def __imul__(self, other: Any) -> Tensor: ...
        def __itruediv__(self, other: Any) -> Tensor: ...
        def __ifloordiv__(self, other: Any) -> Tensor: ...
        def __imod__(self, other: Any) -> Tensor: ...
        def __ipow__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]  # element by element
        def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]  # element by element
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __bool__(self) -> bool: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __index__(self) -> int: ...

    # Geometry and type.

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return _new_size(Size, self._array.shape)

    @property
    def dtype(self) -> Dtype:
        """The type of the elements."""
        return from_numpy_dtype(self._array.dtype)

    @property
    def device(self) -> device:
        """Where the memory lies."""
        array = self._array
        return CPU if type(array) is ndarray else device_of(array)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self._array.ndim)

    def dim(self) -> int:
        """The number of dimensions.

        The length of `shape`; `ndim` is the same as an attribute.

        >>> import pullback
        >>> pullback.ones(2, 3).dim()
        2
        """
        return int(self._array.ndim)

    def size(self, dim: int | None = None, *, axis: int | None = None) -> Any:
        """The sizes, or the size of one dimension.

        `size()` is a `Size`, a tuple of integers; `size(dim)` is one of them, counted from the end if `dim` is
        negative.
        """
        if dim is None:
            if axis is None:
                return _new_size(Size, self._array.shape)
            dim = axis
        return self._array.shape[dim_of("size", dim, self._array.ndim)]

    def stride(self, dim: int | None = None, *, axis: int | None = None) -> Any:
        """The steps between neighbours, in elements.

        One number for each dimension, or that of `dim`.

        >>> import pullback
        >>> pullback.ones(2, 3).stride()
        (3, 1)
        """
        dim = axis if dim is None else dim
        strides = element_strides(self._array)
        return strides if dim is None else strides[dim_of("stride", dim, self._array.ndim)]

    def storage_offset(self) -> int:
        """The position of the first element in the storage.

        0, unless the tensor is a view of a part.

        >>> import pullback
        >>> pullback.arange(4)[2:].storage_offset()
        2
        """
        return storage_offset(self._array)

    def numel(self) -> int:
        """The number of elements.

        The product of the sizes; 1 for a number.

        >>> import pullback
        >>> pullback.ones(2, 3).numel()
        6
        """
        return int(self._array.size)

    nelement = numel

    def element_size(self) -> int:
        """Bytes per element.

        Those of its dtype: 4 for float32.

        >>> import pullback
        >>> pullback.ones(2).element_size()
        4
        """
        return int(self._array.itemsize)

    @property
    def itemsize(self) -> int:
        return int(self._array.itemsize)

    @property
    def nbytes(self) -> int:
        return int(self._array.nbytes)

    # Autograd state.

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value is not True and value is not False:
            raise RuntimeError("requires_grad must be a bool")
        if self._requires_grad and self._has_edge():
            raise self._not_a_leaf()
        self._set_requires_grad(value, assigned=True)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool: set it to False instead of deleting it")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor.

        Only leaves can be switched off, and only floating and complex numbers on.
        """
        if requires_grad is not True and requires_grad is not False:
            from pullback.errors import not_a_bool  # type: ignore[unreachable]  # what is passed may be anything

            raise not_a_bool("requires_grad_", "requires_grad", requires_grad)
        if switches.transforms:
            raise RuntimeError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
                "inside of a function being transformed by a functorch transform. This is unsupported: use the "
                "functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of it."
            )
        self._set_requires_grad(requires_grad)
        return self

    def _not_a_leaf(self) -> RuntimeError:
        return RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
            "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )

    def _set_requires_grad(self, value: bool, assigned: bool = False) -> None:
        if self._requires_grad and self._has_edge():
            if value:
                return
            raise self._not_a_leaf()
        if value and not is_float_or_complex(self._array.dtype):
            raise RuntimeError(
                f"only Tensors of floating point {'and complex ' if assigned else ''}dtype can require gradients: this one "
                f"is {self.dtype}"
            )
        if value and self._extra is not None and self._extra.inference and not switches.inference_mode:
            origin = self._inference_origin()
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. "
                               f"Make a normal tensor of it with .clone() first.{origin}")  # fmt: skip
        if self._requires_grad and not value:
            note_cut("frozen", self, self)
        self._requires_grad = bool(value)
        if self._extra is not None and (info := self._extra.view) is not None:
            info.own_leaf = bool(value)
            self._requires_grad = self._requires_grad or info.base._requires_grad
        else:
            self._tell_views()

    def _tell_views(self) -> None:
        """Update `requires_grad` of the views: they require grad if their base does, or for reasons of their own."""
        if self._counter is not None and self._counter.views is not None:
            for view in self._counter.live_views():
                info = view._extra.view
                if info.base is self:  # aliases without history share the counter, but not their views
                    view._requires_grad = self._requires_grad or info.own_leaf or info.edge is not None

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was not made by a recorded operation."""
        return not self._is_recorded()

    def _is_recorded(self) -> bool:
        """Whether a recorded operation made this tensor. See Note [Asked facts]."""
        return self._requires_grad and self._gradient_edge() is not None

    def _has_edge(self) -> bool:
        """Whether a recorded operation made this tensor, without making a view's edge anew."""
        extra = self._extra
        return self._edge is not None or (extra is not None and extra.view is not None and extra.view.edge is not None)

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor, None for a leaf."""
        edge = self._gradient_edge()
        return None if edge is None else edge[0].seen()

    @property
    def _grad_fn(self) -> Node | None:
        return self.grad_fn

    @_grad_fn.setter
    def _grad_fn(self, value: None) -> None:
        if value is not None:
            raise RuntimeError("_grad_fn can be only set to None")
        self.detach_()

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is. A view's edge is not made anew to tell."""
        info = self._extra.view if self._extra is not None else None
        edge = self._edge if info is None else info.edge
        if edge is None:
            return 0
        extra = edge[0].extra
        return edge[1] if extra is None or not extra.former_shape else edge[0].next_edges[0][1]

    def _gradient_edge(self) -> Any:
        """The edge to the producing node; made anew for a view whose base was modified. None for leaves."""
        extra = self._extra
        if extra is None or extra.view is None:
            return self._edge
        return _Graph.view_edge(self, extra.view)

    @property
    def grad(self) -> Any:
        """The accumulated gradient, None before the first backward."""
        if self._grad is None and self._requires_grad and self._has_edge():
            extra = self._extra
            if extra is None or not extra.retains_grad:
                warn_user(
                    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                    "won't be populated during autograd.backward(). Call .retain_grad() on it before backward() to "
                    "keep its gradient, or read the .grad of the leaf it was computed from."
                )
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            check_assigned_grad(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def grad_dtype(self) -> Dtype | None:
        """The dtype that `.grad` must have; the tensor's own unless set, None for any."""
        if self._is_recorded():
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        extra = self._extra
        if extra is None or extra.grad_dtype is AutogradExtra.UNSET:
            return self.dtype
        return extra.grad_dtype

    @grad_dtype.setter
    def grad_dtype(self, value: Dtype | None) -> None:
        if self._is_recorded():
            raise RuntimeError("grad_dtype can only be set on leaf tensors.")
        if value is not None and not isinstance(value, Dtype):
            raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
        if value is not None and self._grad is not None and self._grad.dtype is not value:
            raise RuntimeError(f"Cannot set grad_dtype to {value} because there is already a gradient of dtype "
                               f"{self._grad.dtype}: set .grad to None first")  # fmt: skip
        self._require_extra().grad_dtype = value

    @property
    def retains_grad(self) -> bool:
        """Whether this non-leaf keeps its gradient."""
        return self._extra is not None and self._extra.retains_grad

    def retain_grad(self, enabled: bool = True) -> None:
        """Keep the gradient of this non-leaf in `.grad`. With False, stop keeping it, and drop what was kept.

        It is there after `backward`, in this tensor's shape. A leaf keeps its gradient anyway.

        >>> import pullback
        >>> y = pullback.ones(2, requires_grad=True) * 3
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad
        tensor([1., 1.])
        >>> y.retain_grad(False)
        >>> y.retains_grad
        False
        """
        if not isinstance(enabled, bool):
            raise TypeError("TensorBase.retain_grad() takes no arguments (1 given) but True or False")
        if switches.transforms:
            raise RuntimeError(
                "You are attempting to call Tensor.retain_grad() inside of a function being transformed by a functorch "
                "transform. This is unsupported: call retain_grad() outside of it."
            )
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if not self._has_edge() or self.retains_grad == bool(enabled):
            return
        _Graph.retain_grad(self, enabled)

    @property
    def _version(self) -> int:
        if self._extra is not None and self._extra.inference:
            if isinstance(self._counter, InferenceAliasVersion):
                return self._counter.writes
            raise RuntimeError(f"Inference tensors do not track version counter.{self._inference_origin()}")
        return int(self._counter.value) if self._counter is not None else 0

    @property
    def _base(self) -> Tensor | None:
        extra = self._extra
        return extra.view.base if extra is not None and extra.view is not None else None

    def _is_view(self) -> bool:
        return self._base is not None

    def is_inference(self) -> bool:
        """Whether this tensor was made in inference mode."""
        return self._extra is not None and self._extra.inference

    def _require_extra(self) -> AutogradExtra:
        if self._extra is None:
            self._extra = AutogradExtra()
        return self._extra

    @property
    def _bottom(self) -> Tensor:
        """The tensor that has the autograd state and the values: for a batched tensor, that of the whole batch."""
        return self

    def _at_bottom(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply `function` to `_bottom`; of a batched tensor the result is batched too."""
        return function(self)

    # Leaving the graph.

    def detach(self) -> Tensor:
        """An alias that shares memory and version counter but has no history.

        It has the shape and the elements of this tensor, and `requires_grad` is False: no gradient flows through it.
        """
        alias = _new_alias(self)
        counter = self._counter
        if counter is None:
            counter = self._counter = VersionCounter()
        alias._counter = counter
        if self._extra is not None:
            alias._share_kind(self)
        if self._requires_grad:
            note_cut("detach", alias, self)
        if process.changed:
            alias = _shown_detached(self, alias)
        return alias

    def detach_(self) -> Tensor:
        """Cut this tensor off its history, in place."""
        if process.changed and switches.transform is not None and self._made_in is not switches.transform:
            raise captured_modification("detach")
        if self._is_view() or (self._extra is not None and self._extra.is_dual_input):
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training with gradient_as_bucket_view=True, gradients are views of its buffers."
            )
        if self._requires_grad:
            note_cut("detach", self, self)
        if self._edge is not None:
            self._counter = DetachedVersion(self._counter or VersionCounter())
        self._edge = None
        self._requires_grad = False
        if self._extra is not None:
            self._extra.tangents = None
        self._tell_views()
        return self

    @property
    def data(self) -> Tensor:
        """An alias with its own version counter: changes through it are not noticed by backward."""
        alias = _new_alias(self)
        if self._extra is not None:
            alias._share_kind(self)
        if self._requires_grad:
            note_cut("data", alias, self)
        return _shown_detached(self, alias) if process.changed else alias

    @data.setter
    def data(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {kind_of(value)}")
        if self._requires_grad and not is_float_or_complex(value._array.dtype):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if not may_take_data(self, value):
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type: "
                f"{describe_type(self)} and {describe_type(value)}"
            )
        self._leave_accumulator(value._array, keep=value._array.dtype == self._array.dtype)
        former, self._array = self._array, value._array
        self._share_mirror(value)
        if value._requires_grad:
            note_cut("data", self, value)
        if self._requires_grad:
            _Graph.keep_former_data(self, former)
            if self._has_edge():
                _Graph.keep_former_shape(self)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _share_kind(self, source: Tensor) -> None:
        """Take over what `source` is, as its alias: conjugated, an inference tensor."""
        self._share_mirror(source)
        if source.is_inference():
            self._share_inference(source)

    def _share_inference(self, source: Tensor, version: type[InferenceVersion] = InferenceAliasVersion) -> None:
        """Become an inference tensor as `source` is; outside of inference mode, one that was made where `source` was."""
        self._become_inference()
        if not switches.inference_mode:
            made = source._counter
            self._counter = version()
            self._counter.lines = None if made is None else made.lines

    def _inference_origin(self) -> str:
        """Where this tensor was made in inference mode, for errors."""
        return self._counter.origin() if isinstance(self._counter, InferenceVersion) else ""

    def _leave_accumulator(self, array: Array, *, keep: bool) -> None:
        """Prepare a leaf for other memory: its accumulator goes on to take gradients of the former shape and dtype."""
        node = self._accumulator() if self._accumulator is not None else None
        if (
            node is not None
            and node.shape is None
            and (array.shape, array.dtype) != (self._array.shape, self._array.dtype)
        ):
            node.shape, node.dtype = self._array.shape, self._array.dtype
            node.require_extra().former_shape = True
        if not keep:
            self._accumulator = None

    def _share_mirror(self, source: Tensor) -> None:
        """Become a conjugated (or negated) view if `source`, whose array this has, is one. See Note [Lazy conjugation]."""
        mirror = source._extra.mirror if source._extra is not None else None
        if mirror is not None or (self._extra is not None and self._extra.mirror is not None):
            self._require_extra().mirror = mirror

    def _memory(self) -> Array:
        """The array over the memory that this tensor shares with others: not its own where it is a conjugated view."""
        mirror = self._extra.mirror if self._extra is not None else None
        return self._array if mirror is None else mirror.behind(self._array)

    def _note_inference(self) -> None:
        """Mark a new tensor as an inference tensor where it is one."""
        if switches.inference_mode:
            self._become_inference()

    def _become_inference(self) -> None:
        extra = self._extra
        if extra is None:
            extra = self._extra = AutogradExtra()
        extra.inference = True
        self._counter = InferenceVersion()

    # Hooks and backward: the engine is above this layer.

    def backward_steps(
        self, gradient: Any = None, retain_graph: bool = False, inputs: Any = None, *, before: bool = False
    ) -> Any:
        """Run backward() node by node: an iterator of steps, see `pullback.inspection.stepping.backward_steps`.

        >>> import pullback
        >>> x = pullback.tensor([2.0, 3.0], requires_grad=True)
        >>> [step.name for step in (x * x).sum().backward_steps()]
        ['SumBackward0', 'MulBackward0', 'torch::autograd::AccumulateGrad']
        """
        from pullback.inspection.stepping import backward_steps  # lazy: above this layer, and rare

        return backward_steps(self, gradient, retain_graph, inputs, before=before)

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook(grad)` when this tensor's gradient is computed; a returned tensor replaces it.

        `hook` takes the gradient, a tensor of this tensor's shape, and returns None or one of the same shape. The
        result is a handle; its `remove()` takes the hook away.
        """
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return _Graph.register_hook(self, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call `hook(tensor)` after `.grad` of this leaf was updated."""
        if not self._requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        extra = self._require_extra()
        if extra.post_accumulate_hooks is None:
            extra.post_accumulate_hooks = OrderedDict()
        return _Graph.add_hook(extra.post_accumulate_hooks, hook)

    @property
    def _backward_hooks(self) -> Any:
        return self._extra.hooks if self._extra is not None else None

    @_backward_hooks.setter
    def _backward_hooks(self, value: Any) -> None:
        if value is not None or self._extra is not None:
            self._require_extra().hooks = value

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed! Call remove() of the handles instead.")

    @property
    def _post_accumulate_grad_hooks(self) -> Any:
        return self._extra.post_accumulate_hooks if self._extra is not None else None

    @_post_accumulate_grad_hooks.setter
    def _post_accumulate_grad_hooks(self, value: Any) -> None:
        self._require_extra().post_accumulate_hooks = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        from pullback.serialization.pullback_tensors import reduce_tensor  # lazy: files are above this layer

        return reduce_tensor(self)

    @property
    def is_cuda(self) -> bool:
        return type(self._array) is not ndarray and device_of(self._array).type == "cuda"


class _Graph:
    """What the graph layer lends to Tensor's properties; set by modules of pullback.graph."""

    view_edge: Callable[[Any, Any], Any]
    retain_grad: Callable[[Any, bool], None]
    keep_former_shape: Callable[[Any], None]
    keep_former_data: Callable[[Any, Any], None]
    register_hook: Callable[[Any, Any], Any]
    add_hook: Callable[[Any, Any], Any]


class _LegacyConstructor:
    """What `Tensor(2, 3)` and `Tensor([1.0])` do; set by pullback.creation."""

    @staticmethod
    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("import pullback before making tensors")


def _disabled_torch_function_impl(function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Serve as the `__torch_function__` of subclasses that want none: operations return plain tensors."""
    return function(*args, **(kwargs or {}))


def _disabled_torch_dispatch_impl(function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Serve as the `__torch_dispatch__` of classes that have none."""
    return function(*args, **(kwargs or {}))


Tensor.__torch_dispatch__ = staticmethod(_disabled_torch_dispatch_impl)


def _shown_detached(tensor: Tensor, alias: Tensor) -> Tensor:
    """Ask dispatch modes or the tensor's class for the detached tensor; `alias` if nobody is there to ask."""
    if not switches.dispatch_modes and type(tensor) not in dispatch.types:
        return alias
    shown = dispatch_operation(Tensor.detach, (tensor,))
    if shown is NotImplemented:
        return alias
    shown._counter = alias._counter
    return shown


def _new_tensor(array: Array) -> Tensor:
    tensor: Tensor = TensorBase.__new__(Tensor)
    tensor._array = array
    if process.changed:
        tensor._made_in = switches.transform
    return tensor


def _new_alias_of(source: Tensor) -> Tensor:
    alias: Tensor = TensorBase.__new__(Tensor)
    alias._array = source._array
    alias._made_in = source._made_in
    return alias


IS_BOUND: bool = hasattr(extension, "bind_tensor") and extension.bind_tensor(Tensor, process, switches)
"""Whether native/tensors.c makes tensors: it was built, and they are not compiled classes."""
new_tensor: Callable[[Array], Tensor] = extension.new_tensor if IS_BOUND else _new_tensor
"""A Tensor around an array, without history."""
_new_alias: Callable[[Tensor], Tensor] = extension.new_alias if IS_BOUND else _new_alias_of
"""A Tensor around the array of another, made where that one was."""


def attach_methods(methods: Mapping[str, Any]) -> None:
    """Make functions of the layers above methods of Tensor. This closes the one cycle that the layers allow."""
    for name, function in methods.items():
        setattr(Tensor, name, function)
