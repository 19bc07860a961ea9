"""Where could a suite be run now? Every model that makes text, on every machine that is there and takes work."""

from __future__ import annotations

from services.benchmarker.budget import not_there
from services.benchmarker.debts import answers, resident
from services.benchmarker.runs import Place
from services.benchmarker.state import Fleet


def places(fleet: Fleet, now_us: int) -> list[Place]:
    return [
        Place(
            model=info.name,
            worker=worker,
            worker_name=machine.report.name,
            machine=machine.place,
            loaded=resident(machine, info),
        )
        for worker, machine in sorted(fleet.machines.items())
        if not_there(machine, now_us) is None
        for info in machine.report.models
        if answers(machine, info)
    ]
