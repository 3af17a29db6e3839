"""Linear algebra under the names of `torch.linalg`.

>>> import pullback
>>> pullback.linalg.inv(pullback.tensor([[2.0]]))
tensor([[0.5000]])
"""

from __future__ import annotations

import pullback.functions as _functions
from pullback.errors import LinAlgError as LinAlgError
from pullback.tensor.arguments import with_keywords as _with_keywords
from pullback.tensor.foreign_arguments import offer_all as _offer_all

cholesky = _with_keywords(_functions.linalg_cholesky, input="A")
cholesky_ex = _with_keywords(_functions.linalg_cholesky_ex, input="A")
cond = _with_keywords(_functions.linalg_cond, input="A")
cross = _functions.linalg_cross
det = _functions.linalg_det
diagonal = _functions.linalg_diagonal
eig = _with_keywords(_functions.linalg_eig, input="A")
eigh = _with_keywords(_functions.linalg_eigh, input="A")
eigvals = _with_keywords(_functions.linalg_eigvals, input="A")
eigvalsh = _with_keywords(_functions.linalg_eigvalsh, input="A")
householder_product = _functions.linalg_householder_product
inv = _functions.linalg_inv
inv_ex = _functions.linalg_inv_ex
ldl_factor = _with_keywords(_functions.linalg_ldl_factor, input="A")
ldl_factor_ex = _with_keywords(_functions.linalg_ldl_factor_ex, input="A")
ldl_solve = _functions.linalg_ldl_solve
lstsq = _with_keywords(_functions.linalg_lstsq, input="A", b="B")
lu = _functions.linalg_lu
lu_factor = _functions.linalg_lu_factor
lu_factor_ex = _functions.linalg_lu_factor_ex
lu_solve = _functions.linalg_lu_solve
matmul = _functions.matmul
matrix_exp = _with_keywords(_functions.linalg_matrix_exp, input="A")
matrix_norm = _with_keywords(_functions.linalg_matrix_norm, input="A")
matrix_power = _with_keywords(_functions.linalg_matrix_power, input="A")
matrix_rank = _functions.linalg_matrix_rank
multi_dot = _functions.linalg_multi_dot
norm = _with_keywords(_functions.linalg_norm, input="A")
pinv = _with_keywords(_functions.linalg_pinv, input="A")
qr = _functions.linalg_qr
slogdet = _functions.linalg_slogdet
solve = _functions.linalg_solve
solve_ex = _functions.linalg_solve_ex
solve_triangular = _with_keywords(_functions.linalg_solve_triangular, input="A")
svd = _functions.linalg_svd
svdvals = _functions.linalg_svdvals
tensorinv = _with_keywords(_functions.linalg_tensorinv, input="A")
tensorsolve = _with_keywords(_functions.linalg_tensorsolve, input="A", other="B")
vander = _functions.linalg_vander
vecdot = _functions.linalg_vecdot
vector_norm = _with_keywords(_functions.linalg_vector_norm, input="x")

_offer_all(globals())
