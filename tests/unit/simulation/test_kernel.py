"""Virtual time: order, deaths, pauses, and one history for each seed."""

from __future__ import annotations

from simulation.kernel import Kernel, Process


def run(kernel: Kernel, until: float = 100.0) -> None:
    kernel.run(until, lambda: False)


def test_calls_happen_in_the_order_of_their_time_and_then_of_their_making() -> None:
    kernel, seen = Kernel(0), list[str]()
    for delay, name in ((2.0, "c"), (1.0, "a"), (1.0, "b")):
        kernel.after(delay, None, seen.append, name)
    run(kernel)
    assert (seen, kernel.now) == (["a", "b", "c"], 2.0)


def test_what_was_meant_for_a_former_life_is_dropped() -> None:
    kernel, process, seen = Kernel(0), Process("p"), list[str]()
    kernel.after(1.0, process, seen.append, "former")
    kernel.kill(process)
    kernel.revive(process)
    kernel.after(1.0, process, seen.append, "present")
    run(kernel)
    assert seen == ["present"]


def test_a_paused_process_gets_everything_later_and_in_order() -> None:
    kernel, process, seen = Kernel(0), Process("p"), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, kernel.now))

    kernel.pause(process)
    for delay, name in ((1.0, "a"), (2.0, "b")):
        kernel.after(delay, process, note, name)
    kernel.after(5.0, None, kernel.resume, process)
    run(kernel)
    assert seen == [("a", 5.0), ("b", 5.0)]


def test_a_dead_process_cannot_be_paused_or_resumed() -> None:
    kernel, process = Kernel(0), Process("p")
    kernel.kill(process)
    kernel.pause(process)
    kernel.resume(process)
    assert (process.alive, process.paused) == (False, False)


def test_one_seed_is_one_history() -> None:
    first, second = Kernel(7), Kernel(7)
    assert [first.delay() for _ in range(100)] == [second.delay() for _ in range(100)]
