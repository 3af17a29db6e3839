"""Small programs on Module, hooks, containers and state dicts, run on both libraries: values and errors are equal."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import pullback

torch = pytest.importorskip("torch")

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[function.__name__] = function
    return function


class Failure(str):
    """An error's class and message; equal if the key phrase, the beginning of the message, is."""

    __slots__ = ()

    def key_phrase(self) -> str:
        return repr([part.rstrip(".") for part in re.split(r"[.:,] ", spoken(self))[:2]])


def error_of(action: Callable[[], Any]) -> Any:
    try:
        return f"no error: {action()}"
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def spoken(text: str) -> str:
    return text.replace("pullback.", "torch.")


def model(t: Any) -> Any:
    t.manual_seed(0)
    return t.nn.Sequential(
        OrderedDict(first=t.nn.Linear(3, 4), act=t.nn.Tanh(), norm=t.nn.BatchNorm1d(4), last=t.nn.Linear(4, 2))
    )


@program
def assignment_errors(t: Any) -> Any:
    layer = t.nn.Linear(2, 2)

    class Early(t.nn.Module):
        def __init__(self) -> None:
            self.weight = t.nn.Parameter(t.ones(1))

    class EarlyModule(t.nn.Module):
        def __init__(self) -> None:
            self.child = t.nn.Linear(1, 1)

    batch_norm = t.nn.BatchNorm1d(2)
    return [
        error_of(lambda: setattr(layer, "weight", t.ones(2, 2))),
        error_of(lambda: setattr(layer, "weight", 3)),
        error_of(lambda: layer.register_parameter("a.b", None)),
        error_of(lambda: layer.register_parameter("", None)),
        error_of(lambda: layer.register_parameter("forward", None)),
        error_of(lambda: layer.register_parameter(3, None)),
        error_of(lambda: layer.register_parameter("x", t.ones(2))),
        error_of(lambda: layer.register_buffer("x", 3)),
        error_of(lambda: layer.register_buffer("weight", None)),
        error_of(lambda: layer.add_module("x", 3)),
        error_of(lambda: layer.add_module("a.b", t.nn.Tanh())),
        error_of(lambda: layer.add_module("weight", t.nn.Tanh())),
        error_of(lambda: setattr(batch_norm, "running_mean", 3)),
        error_of(lambda: setattr(t.nn.Sequential(t.nn.Tanh()), "0", 3)),
        error_of(Early),
        error_of(EarlyModule),
        error_of(lambda: layer.missing),
        error_of(lambda: t.nn.Module()(1)),
        error_of(lambda: layer.train("yes")),
        error_of(lambda: layer.to(t.int64)),
        error_of(lambda: layer.get_submodule("a.b")),
        error_of(lambda: layer.get_parameter("nope")),
        error_of(lambda: layer.get_buffer("weight")),
        error_of(lambda: t.nn.Module(3)),
        error_of(lambda: t.nn.Module(a=3)),
    ]


@program
def moving_attributes_between_kinds(t: Any) -> Any:
    module = t.nn.Module()
    module.a = t.ones(1)
    seen = [list(module._parameters), list(module._buffers), "a" in module.__dict__]
    module.a = t.nn.Parameter(t.ones(2))
    seen += [list(module._parameters), "a" in module.__dict__]
    module.a = None
    seen += [dict(module._parameters), [n for n, _ in module.named_parameters()]]
    module.register_buffer("b", t.zeros(1), persistent=False)
    module.register_buffer("c", None)
    module.c = t.ones(1)
    module.child = t.nn.Linear(1, 1)
    module.d = t.nn.Buffer(t.ones(2))
    seen += [list(module.state_dict()), [n for n, _ in module.named_buffers()], [n for n, _ in module.named_modules()]]
    del module.child, module.b
    return [*seen, list(module._modules), [n for n, _ in module.named_buffers()], "a" in dir(module)]


@program
def iteration_with_shared_members(t: Any) -> Any:
    shared = t.nn.Linear(2, 2)
    net = t.nn.ModuleDict(
        {"a": shared, "b": t.nn.Sequential(shared, t.nn.Linear(2, 1)), "c": t.nn.ModuleList([shared])}
    )
    return [
        [n for n, _ in net.named_parameters()],
        [n for n, _ in net.named_parameters(remove_duplicate=False)],
        [n for n, _ in net.named_modules()],
        [n for n, _ in net.named_modules(remove_duplicate=False)],
        [n for n, _ in net.named_children()],
        list(net.state_dict()),
        [n for n, _ in net.named_parameters(prefix="p", recurse=True)],
        len(list(net.parameters())),
        len(list(net.parameters(recurse=False))),
        repr(net),
    ]


@program
def loading_errors(t: Any) -> Any:
    net = model(t)
    state = net.state_dict()
    broken = OrderedDict(state)
    broken["extra.key"] = t.ones(1)
    broken["first.other"] = t.ones(1)
    del broken["norm.running_mean"]
    broken["last.weight"] = t.ones(3, 3)
    broken["first.bias"] = 3
    return [
        error_of(lambda: net.load_state_dict(broken)),
        error_of(lambda: net.load_state_dict(broken, strict=False)),
        error_of(lambda: net.load_state_dict([1, 2])),
        str(net.load_state_dict(state)),
        str(net.load_state_dict({}, strict=False)),
        dict(state._metadata),
    ]


@program
def assigning_a_state(t: Any) -> Any:
    net, other = model(t), model(t).double()
    before = net.first.weight
    net.load_state_dict(other.state_dict())
    seen = [str(net.first.weight.dtype), net.first.weight is before]
    net.load_state_dict(other.state_dict(), assign=True)
    return [*seen, str(net.first.weight.dtype), net.first.weight is before, net.first.weight.requires_grad]


@program
def state_dict_hooks(t: Any) -> Any:
    net = model(t)
    calls: list[Any] = []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: calls.append(("pre", prefix, keep)))
    net.register_state_dict_post_hook(lambda m, state, prefix, meta: calls.append(("post", len(state), prefix)))
    net.first.register_load_state_dict_pre_hook(lambda m, s, prefix, *r: calls.append((type(m).__name__, prefix)))
    net.register_load_state_dict_post_hook(lambda m, keys: calls.append((type(m).__name__, keys.missing_keys)))
    state = net.state_dict(prefix="p.", keep_vars=True)
    net.load_state_dict(model(t).state_dict())
    return calls, list(state), state["p.first.weight"].requires_grad


class Extra:
    """Makes a module with extra state, in either library."""

    def __new__(cls, t: Any) -> Any:
        class WithState(t.nn.Linear):
            def get_extra_state(self) -> Any:
                return {"epoch": 3}

            def set_extra_state(self, state: Any) -> None:
                self.epoch = state["epoch"]

        return WithState(1, 1)


@program
def extra_state(t: Any) -> Any:
    layer = Extra(t)
    state = layer.state_dict()
    layer.load_state_dict(state)
    del state["_extra_state"]
    return (
        list(layer.state_dict()),
        layer.epoch,
        error_of(lambda: layer.load_state_dict(state)),
        error_of(lambda: t.nn.Linear(1, 1).load_state_dict(Extra(t).state_dict())),
    )


@program
def forward_hooks(t: Any) -> Any:
    layer = t.nn.Linear(2, 2, bias=False)
    t.nn.init.eye_(layer.weight)
    calls: list[Any] = []

    def double_input(m: Any, args: Any) -> Any:
        calls.append("pre")
        return args[0] * 2

    def with_kwargs(m: Any, args: Any, kwargs: Any) -> Any:
        calls.append(("kwargs", sorted(kwargs)))
        return args, kwargs

    def add_one(m: Any, args: Any, output: Any) -> Any:
        calls.append(("post", args[0].tolist()))
        return output + 1

    handles = [
        layer.register_forward_pre_hook(double_input),
        layer.register_forward_pre_hook(with_kwargs, with_kwargs=True, prepend=True),
        layer.register_forward_hook(add_one),
        layer.register_forward_hook(
            lambda m, a, k, o: calls.append(("kw", o.tolist())), with_kwargs=True, prepend=True
        ),
    ]
    first = layer(t.ones(1, 2)).tolist()
    for handle in handles:
        handle.remove()
    return first, calls, layer(t.ones(1, 2)).tolist()


@program
def hooks_that_are_always_called(t: Any) -> Any:
    class Fails(t.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    calls: list[Any] = []
    module = Fails()
    module.register_forward_hook(lambda m, a, o: calls.append(("always", o)), always_call=True)
    module.register_forward_hook(lambda m, a, o: calls.append("never"))
    return error_of(lambda: module(1)), calls


@program
def full_backward_hooks(t: Any) -> Any:
    net = model(t)
    calls: list[Any] = []

    def note(name: str) -> Any:
        def hook(m: Any, grad_input: Any, grad_output: Any) -> None:
            calls.append((name, [None if g is None else list(g.shape) for g in grad_input],
                          [list(g.shape) for g in grad_output]))  # fmt: skip

        return hook

    net.first.register_full_backward_hook(note("first"))
    net.last.register_full_backward_hook(note("last"))
    net.last.register_full_backward_hook(lambda m, gi, go: (gi[0] * 0,))
    net.act.register_full_backward_pre_hook(lambda m, go: calls.append(("pre", list(go[0].shape))))
    net(t.ones(5, 3)).sum().backward()
    x = t.ones(5, 3, requires_grad=True)
    net(x).sum().backward()
    return calls, net.first.weight.grad.abs().sum().item(), x.grad.tolist(), net.last.bias.grad.tolist()


@program
def backward_pre_hooks_replace_gradients(t: Any) -> Any:
    layer = t.nn.Linear(2, 1, bias=False)
    t.nn.init.ones_(layer.weight)
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))
    x = t.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    return x.grad.tolist(), layer.weight.grad.tolist(), type(layer(x).grad_fn).__name__


@program
def backward_hook_errors(t: Any) -> Any:
    layer = t.nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda m, gi, go: None)
    other = t.nn.Linear(2, 1)
    other.register_backward_hook(lambda m, gi, go: None)
    wrong = t.nn.Linear(2, 1)
    wrong.register_full_backward_hook(lambda m, gi, go: (t.ones(1, 2),))
    return [
        error_of(lambda: layer.register_backward_hook(lambda m, gi, go: None)),
        error_of(lambda: other.register_full_backward_hook(lambda m, gi, go: None)),
        error_of(lambda: wrong(t.ones(1, 2)).sum().backward()),
    ]


@program
def global_hooks(t: Any) -> Any:
    calls: list[Any] = []
    m = t.nn.modules.module
    handles = [
        m.register_module_forward_pre_hook(lambda module, args: calls.append(("pre", type(module).__name__))),
        m.register_module_forward_hook(lambda module, args, out: calls.append(("post", type(module).__name__))),
        m.register_module_full_backward_hook(lambda module, gi, go: calls.append(("back", type(module).__name__))),
        m.register_module_parameter_registration_hook(lambda module, name, p: calls.append(("param", name))),
    ]
    net = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.Tanh())
    net(t.ones(1, 2, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    net(t.ones(1, 2))
    return calls


@program
def conversions(t: Any) -> Any:
    net = model(t)
    weight = net.first.weight
    net(t.ones(4, 3)).sum().backward()
    net.double()
    kinds = [str(v.dtype) for v in net.state_dict().values()]
    grads = [str(p.grad.dtype) for p in net.parameters()]
    net.to(t.float32)
    net.half()
    net.float()
    return kinds, grads, net.first.weight is weight, str(net.norm.num_batches_tracked.dtype), str(weight.dtype)


@program
def copying_and_pickling(t: Any) -> Any:
    net = model(t)
    net(t.ones(4, 3)).sum().backward()
    copied = copy.deepcopy(net)
    loaded = pickle.loads(pickle.dumps(net))
    tied = t.nn.Linear(2, 2, bias=False)
    tied.other = tied.weight
    twin = copy.deepcopy(tied)
    return [
        (copied.first.weight == net.first.weight).all().item(), copied.first.weight is net.first.weight,
        copied.first.weight.grad is None, repr(loaded), loaded.last.bias.tolist(), twin.other is twin.weight,
        loaded.first.weight.requires_grad, type(loaded.first.weight).__name__,
    ]  # fmt: skip


@program
def modes_and_gradients(t: Any) -> Any:
    net = model(t).eval()
    seen = [net.training, net.norm.training]
    net.train()
    net.requires_grad_(False)
    seen.append([p.requires_grad for p in net.parameters()])
    net.requires_grad_()
    net(t.ones(4, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    seen.append(net.last.bias.grad.tolist())
    net.zero_grad()
    names: list[str] = []
    net.apply(lambda m: names.append(type(m).__name__))
    return [*seen, net.last.bias.grad, names]


@program
def sequential_as_a_list(t: Any) -> Any:
    nn = t.nn
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    net.append(nn.Linear(3, 4)).extend([nn.ReLU()]).insert(1, nn.Sigmoid())
    seen = [repr(net), repr(net[1:3]), repr(net[-1]), len(net)]
    del net[0]
    net[0] = nn.Identity()
    popped = net.pop(-1)
    total = net + nn.Sequential(nn.Tanh())
    return [
        *seen, repr(net), repr(popped), repr(total), repr(nn.Sequential(nn.Tanh()) * 2), error_of(lambda: net[9]),
        error_of(lambda: net + 3), error_of(lambda: net * 0), error_of(lambda: net.insert(9, nn.Tanh())),
    ]  # fmt: skip


@program
def lists_and_dicts(t: Any) -> Any:
    nn = t.nn
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.Tanh()])
    layers.insert(1, nn.ReLU())
    layers += [nn.Tanh(), nn.Tanh()]
    named = nn.ModuleDict([("a", nn.Tanh()), ("b", nn.Linear(1, 2))])
    named["c"] = nn.ReLU()
    params = nn.ParameterList([t.ones(2), nn.Parameter(t.zeros(1)), 3])
    params.append(t.ones(1, 2))
    mapping = nn.ParameterDict({"x": t.ones(2), "y": nn.Parameter(t.zeros(1))})
    mapping["z"] = t.ones(1)
    return [
        repr(layers), repr(layers[1:]), repr(layers.pop(0)), len(layers), repr(named), named.pop("a").__class__.__name__,
        list(named.keys()), repr(params), len(params), [n for n, _ in params.named_parameters()], repr(mapping),
        list(mapping.keys()), list((mapping | nn.ParameterDict({"w": t.ones(1)})).keys()), repr(nn.ModuleList()),
        error_of(lambda: layers(1)), error_of(lambda: params(1)), error_of(lambda: layers[10]),
        error_of(lambda: layers.extend(3)), error_of(lambda: named.update(3)), mapping.get("q", 5),
    ]  # fmt: skip


@program
def lazy_modules(t: Any) -> Any:
    t.manual_seed(2)
    net = t.nn.Sequential(t.nn.LazyConv2d(4, 3), t.nn.ReLU(), t.nn.Flatten(), t.nn.LazyLinear(2))
    before = [repr(net), repr(net[3].weight), net[3].has_uninitialized_params(), error_of(lambda: net[3].weight.shape)]
    output = net(t.ones(1, 3, 5, 5))
    loaded = t.nn.LazyLinear(2)
    loaded.load_state_dict(net[3].state_dict())
    return [*before, repr(net), list(output.shape), list(loaded.weight.shape), type(net[0]).__name__]


@program
def parameters_as_a_vector(t: Any) -> Any:
    net = t.nn.Linear(2, 2)
    vector = t.nn.utils.parameters_to_vector(net.parameters())
    t.nn.utils.vector_to_parameters(t.arange(6.0), net.parameters())
    return list(vector.shape), type(vector.grad_fn).__name__, net.weight.tolist(), net.bias.tolist()


@program
def clipping(t: Any) -> Any:
    utils = t.nn.utils
    params = [t.nn.Parameter(t.zeros(2)) for _ in range(3)]
    params[0].grad, params[1].grad = t.tensor([3.0, 4.0]), t.tensor([0.0, 12.0])
    norms = [utils.get_total_norm([p.grad for p in params[:2]], k).item() for k in (1.0, 2.0, float("inf"))]
    norm = utils.clip_grad_norm_(params, 6.5)
    after = [p.grad.tolist() for p in params[:2]]
    utils.clip_grad_value_(params, 2.0)
    bad = t.nn.Parameter(t.zeros(1))
    bad.grad = t.tensor([float("nan")])
    return [
        norms, norm.item(), after, [p.grad.tolist() for p in params[:2]], utils.clip_grad_norm_([params[2]], 1.0).item(),
        error_of(lambda: utils.clip_grad_norm_([bad], 1.0, error_if_nonfinite=True)),
    ]  # fmt: skip


@program
def parametrization_errors(t: Any) -> Any:
    parametrize = t.nn.utils.parametrize

    class First(t.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[0]

    class Wide(t.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.double()

    return [
        error_of(lambda: parametrize.register_parametrization(t.nn.Linear(2, 2), "x", First())),
        error_of(lambda: parametrize.register_parametrization(t.nn.Linear(2, 2), "weight", First())),
        error_of(lambda: parametrize.register_parametrization(t.nn.Linear(2, 2), "weight", Wide())),
        error_of(lambda: parametrize.remove_parametrizations(t.nn.Linear(2, 2), "weight")),
        repr(t.nn.utils.parametrizations.weight_norm(t.nn.Linear(2, 2))),
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_what_it_gives_on_pytorch(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actual, expected = PROGRAMS[name](pullback), PROGRAMS[name](torch)
    assert eval(spoken(repr(_plain(actual)))) == eval(repr(_plain(expected)))


def _plain(value: Any) -> Any:
    """Nested values with numbers rounded, so that they compare as text."""
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, Failure):
        return value.key_phrase()
    if isinstance(value, float):
        return float(f"{value:.4g}") if abs(value) > 1e-6 else 0.0
    return value
