"""Below which no burst can end, whoever plans it: each task whole on one machine, each used model loaded there at least once.

Answers "how good can it get at all?". A mixed-integer program over the true durations; where the solver is stopped early its
dual bound counts, which is a bound as well.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from simulation.fleet.physics import Instance

SOLVER_S = 3.0
GAP = 0.005


def burst_bound_s(instance: Instance) -> float:
    """Seconds from the first arrival; every task of ``instance`` counts as there from the beginning."""
    jobs, machines = instance.jobs, instance.machines
    models = sorted({job.model or "" for job in jobs})
    n, k, m = len(jobs), len(machines), len(models)
    cost = np.zeros(n * k + m * k + 1)
    cost[-1] = 1.0
    once, uses, ends = lil_matrix((n, cost.size)), lil_matrix((n * k, cost.size)), lil_matrix((k, cost.size))
    for i, job in enumerate(jobs):
        for w, machine in enumerate(machines):
            model = job.model or ""
            once[i, i * k + w] = 1.0
            uses[i * k + w, i * k + w], uses[i * k + w, n * k + models.index(model) * k + w] = 1.0, -1.0
            ends[w, i * k + w] = sum(instance.run_s(job, model, machine, 0.0))
    for index, model in enumerate(models):
        for w, machine in enumerate(machines):
            ends[w, n * k + index * k + w] = instance.load_s(model, machine)
    for w in range(k):
        ends[w, cost.size - 1] = -1.0
    solved = milp(
        cost,
        constraints=[
            LinearConstraint(once.tocsr(), 1.0, 1.0),
            LinearConstraint(uses.tocsr(), -np.inf, 0.0),
            LinearConstraint(ends.tocsr(), -np.inf, 0.0),
        ],
        integrality=np.concatenate([np.ones(n * k + m * k), np.zeros(1)]),
        bounds=Bounds(np.zeros(cost.size), np.concatenate([np.ones(n * k + m * k), np.full(1, np.inf)])),
        options={"time_limit": SOLVER_S, "mip_rel_gap": GAP},
    )
    return float(solved.mip_dual_bound)
