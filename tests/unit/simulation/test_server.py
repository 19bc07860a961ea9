"""The model of JetStream does what field notes measured on the real one."""

from __future__ import annotations

from schemas import events
from simulation.kernel import Kernel, Process
from simulation.server import ACK_WAIT_S, Item, Round, Server
from support.builders import build

FIRST = build(events.TaskSubmitted)


class Puller:
    """Arms rounds and keeps what they bring."""

    def __init__(self, server: Server) -> None:
        self.server, self.process = server, Process("w")
        self.got: list[int] = []

    def arm(self, durable: str = "g", priority: int = 0) -> int:
        now = self.server.kernel.now
        return self.server.arm(Round(self.process, 0, {durable: priority}, now + 5.0, lambda item: self.take(item)))

    def take(self, item: Item) -> None:
        self.got.append(item.seq)


def server() -> Server:
    made = Server(Kernel(1))
    made.consumers.add("g")
    return made


def settle(made: Server) -> None:
    made.kernel.run(made.kernel.now + 1.0, lambda: False)


def test_a_message_id_is_stored_once_and_its_first_event_stands() -> None:
    made = server()
    other = build(events.TaskSubmitted, client="other")
    assert made.publish(FIRST, "t") == (1, FIRST)
    assert made.publish(other, "t") == (1, FIRST)


def test_a_round_gets_one_item_and_the_best_priority_goes_first() -> None:
    made = server()
    slow, fast = Puller(made), Puller(made)
    slow.arm(priority=5)
    fast.arm(priority=1)
    for n in range(3):
        made.put(f"s{n}", "g", None, f"i{n}")
    settle(made)
    assert (fast.got, slow.got, [item.seq for item in made.waiting]) == ([1], [2], [3])


def test_an_item_put_before_its_consumer_is_never_pending() -> None:
    made = server()
    made.put("s", "unknown", None, "i")
    made.consumers.add("unknown")
    puller = Puller(made)
    puller.arm("unknown")
    settle(made)
    assert puller.got == []


def test_what_nobody_acks_comes_back_and_what_was_deleted_does_not() -> None:
    made = server()
    puller = Puller(made)
    puller.arm()
    seq = made.put("s", "g", None, "i")
    settle(made)
    made.kernel.now += ACK_WAIT_S
    made.tick()
    puller.arm()
    settle(made)
    assert puller.got == [seq, seq]
    made.delete(seq)
    made.kernel.now += ACK_WAIT_S
    made.tick()
    assert made.idle()


def test_a_closed_or_expired_round_gets_nothing() -> None:
    made = server()
    closed, expired = Puller(made), Puller(made)
    made.close([closed.arm()])
    expired.arm()
    made.kernel.now += 6.0
    made.tick()
    made.put("s", "g", None, "i")
    settle(made)
    assert (closed.got, expired.got) == ([], [])


def test_the_dispatchers_key_is_taken_by_compare_and_set() -> None:
    made = server()
    assert (made.take("r1", 0), made.take("r2", 0)) == (1, -1)
    assert made.renew("r1", 1) and made.key == ("r1", 1, 2)
    assert made.take("r2", 2) == 3
    assert not made.renew("r1", 1)
