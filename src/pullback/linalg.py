"""Linear algebra under the names of `torch.linalg`.

>>> import pullback
>>> pullback.linalg.inv(pullback.tensor([[2.0]]))
tensor([[0.5000]])
"""

from __future__ import annotations

import pullback.functions as _functions
from pullback.errors import LinAlgError as LinAlgError

cholesky = _functions.linalg_cholesky
cholesky_ex = _functions.linalg_cholesky_ex
cond = _functions.linalg_cond
cross = _functions.linalg_cross
det = _functions.linalg_det
diagonal = _functions.linalg_diagonal
eig = _functions.linalg_eig
eigh = _functions.linalg_eigh
eigvals = _functions.linalg_eigvals
eigvalsh = _functions.linalg_eigvalsh
householder_product = _functions.linalg_householder_product
inv = _functions.linalg_inv
inv_ex = _functions.linalg_inv_ex
ldl_factor = _functions.linalg_ldl_factor
ldl_factor_ex = _functions.linalg_ldl_factor_ex
ldl_solve = _functions.linalg_ldl_solve
lstsq = _functions.linalg_lstsq
lu = _functions.linalg_lu
lu_factor = _functions.linalg_lu_factor
lu_factor_ex = _functions.linalg_lu_factor_ex
lu_solve = _functions.linalg_lu_solve
matmul = _functions.matmul
matrix_exp = _functions.linalg_matrix_exp
matrix_norm = _functions.linalg_matrix_norm
matrix_power = _functions.linalg_matrix_power
matrix_rank = _functions.linalg_matrix_rank
multi_dot = _functions.linalg_multi_dot
norm = _functions.linalg_norm
pinv = _functions.linalg_pinv
qr = _functions.linalg_qr
slogdet = _functions.linalg_slogdet
solve = _functions.linalg_solve
solve_ex = _functions.linalg_solve_ex
solve_triangular = _functions.linalg_solve_triangular
svd = _functions.linalg_svd
svdvals = _functions.linalg_svdvals
tensorinv = _functions.linalg_tensorinv
tensorsolve = _functions.linalg_tensorsolve
vander = _functions.linalg_vander
vecdot = _functions.linalg_vecdot
vector_norm = _functions.linalg_vector_norm
