"""How long collectives wait unless a program says otherwise."""

from pullback.distributed.process_group import default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout = default_pg_timeout
