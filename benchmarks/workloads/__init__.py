"""All workloads, in the order of the report."""

from __future__ import annotations

from benchmarks.workload import Workload
from benchmarks.workloads import elementwise, language_model, networks, objectives, second_order, small_operations

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for family in (small_operations, networks, language_model, elementwise, second_order, objectives)
    for workload in family.WORKLOADS
}
