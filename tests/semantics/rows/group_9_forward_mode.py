"""Group 9: forward mode."""

from __future__ import annotations

from typing import Any


def row_121_dual_level(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    x, t = torch.tensor([2.0]), torch.tensor([1.0])
    with say.catch("Trying to create a dual Tensor for forward AD but no level exists"):
        fw.make_dual(x, t)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        say(fw.unpack_dual(dual * dual).tangent)
        with say.catch("Nested forward mode AD is not supported at the moment"), fw.dual_level():
            pass
    say(fw.unpack_dual(dual).tangent)
    with fw.dual_level():
        say(fw.unpack_dual(dual).tangent)


def row_122_enter_exit(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    level = fw.enter_dual_level()
    dual = fw.make_dual(torch.ones(1), torch.ones(1))
    say(level, fw.unpack_dual(dual * 3).tangent)
    fw.exit_dual_level()
    with say.catch("Trying to exit a forward AD level" if False else ""):
        fw.exit_dual_level(level=5)


def row_123_make_dual(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        with say.catch("Trying to set a forward gradient that has a different size than that of the original Tensor"):
            fw.make_dual(torch.ones(2), torch.ones(3))
        with say.catch("Expected primal to be floating point or complex, but got"):
            fw.make_dual(torch.ones(2, dtype=torch.int64), torch.ones(2))


def row_124_unpack_dual(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
        unpacked = fw.unpack_dual(dual)
        say(type(unpacked).__name__, unpacked.primal, unpacked.tangent, fw.unpack_dual(torch.ones(1)).tangent)
        say(repr(dual))


def row_125_in_place_and_views(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        work = dual.clone()
        work.mul_(3)
        say(fw.unpack_dual(work).tangent)
        view = work[1:]
        say(fw.unpack_dual(view).tangent)
        view.mul_(2)
        say(fw.unpack_dual(work).tangent, work)
        base = torch.zeros(3)
        base[:2] = dual
        say(fw.unpack_dual(base).tangent)
        work.add_(torch.ones(2))
        say(fw.unpack_dual(work).tangent)


def row_127_forward_over_reverse(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(x, torch.tensor([1.0, 0.5]))
        tangent = fw.unpack_dual((dual**3).sum()).tangent
        say(tangent, torch.autograd.grad(tangent, x))
    with fw.dual_level():
        dual = fw.make_dual(x.detach().requires_grad_(), torch.tensor([1.0, 0.5]))
        (g,) = torch.autograd.grad((dual**3).sum(), dual, create_graph=True)
        say(fw.unpack_dual(g).tangent)


def row_073_forward_mode_and_no_grad(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(1), torch.ones(1))
        with torch.no_grad():
            say(fw.unpack_dual(dual * 2).tangent)
        with torch.inference_mode():
            say(fw.unpack_dual(dual * 2).tangent)
        with fw._set_fwd_grad_enabled(False):
            say(fw.unpack_dual(dual * 2).tangent)


def row_126_missing_formula(torch: Any, say: Any) -> None:
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(1), torch.ones(1))
        with say.catch("that does not support it because it has not been implemented yet."):
            torch.igamma(dual, torch.ones(1))


def row_123_duals_of_duals_and_out(torch: Any, say: Any) -> None:
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(2), torch.ones(2))
        with say.catch(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0"
        ):
            forward_ad.make_dual(dual, torch.ones(2))
        with say.catch("Trying to use forward AD with add_out that does not support it because it is an out= function"):
            torch.add(dual, 1, out=torch.zeros(2))
        with say.catch("Trying to use forward AD with sin_out that does not support it because it is an out= function"):
            torch.sin(torch.ones(2), out=dual)
