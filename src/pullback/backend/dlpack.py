"""DLPack's numbers for kinds of devices."""

from __future__ import annotations

from enum import IntEnum


class DLDeviceType(IntEnum):
    """The kind of device that memory lies on, as DLPack numbers it.

    >>> DLDeviceType.kDLCPU == 1
    True
    """

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
