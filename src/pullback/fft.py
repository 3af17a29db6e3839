"""Fourier transforms under the names of `torch.fft`.

>>> import pullback
>>> pullback.fft.rfft(pullback.ones(4))
tensor([4.+0.j, 0.+0.j, 0.+0.j])
"""

from __future__ import annotations

import pullback.functions as _functions
from pullback.tensor.foreign_arguments import offer_all as _offer_all

fft = _functions.fft_fft
ifft = _functions.fft_ifft
fft2 = _functions.fft_fft2
ifft2 = _functions.fft_ifft2
fftn = _functions.fft_fftn
ifftn = _functions.fft_ifftn
rfft = _functions.fft_rfft
irfft = _functions.fft_irfft
rfft2 = _functions.fft_rfft2
irfft2 = _functions.fft_irfft2
rfftn = _functions.fft_rfftn
irfftn = _functions.fft_irfftn
hfft = _functions.fft_hfft
ihfft = _functions.fft_ihfft
hfft2 = _functions.fft_hfft2
ihfft2 = _functions.fft_ihfft2
hfftn = _functions.fft_hfftn
ihfftn = _functions.fft_ihfftn
fftfreq = _functions.fft_fftfreq
rfftfreq = _functions.fft_rfftfreq
fftshift = _functions.fft_fftshift
ifftshift = _functions.fft_ifftshift

_offer_all(globals())
