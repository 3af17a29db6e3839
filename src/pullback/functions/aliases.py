"""PyTorch's second names for elementwise functions."""

from __future__ import annotations

import pullback.functions.signs as _signs
import pullback.generated as G
from pullback.facts import declare

subtract = G.sub
subtract_ = G.sub_
multiply = G.mul
multiply_ = G.mul_
negative = G.neg
negative_ = G.neg_
true_divide = G.div
true_divide_ = G.div_
arccos = G.acos
arccos_ = G.acos_
arccosh = G.acosh
arccosh_ = G.acosh_
arcsin = G.asin
arcsin_ = G.asin_
arcsinh = G.asinh
arcsinh_ = G.asinh_
arctan = G.atan
arctan_ = G.atan_
arctan2 = G.atan2
arctan2_ = G.atan2_
arctanh = G.atanh
arctanh_ = G.atanh_
absolute = G.abs
absolute_ = declare(found="method")(_signs.abs_)
fix = G.trunc
fix_ = G.trunc_
greater = G.gt
greater_equal = G.ge
less = G.lt
less_equal = G.le
not_equal = G.ne
