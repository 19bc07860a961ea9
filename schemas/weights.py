"""How much does a sample still count? Integers that are the same on any machine; never the present time."""

from __future__ import annotations

WEIGHT_BITS = 30
WEIGHT_ONE = 1 << WEIGHT_BITS
HALF_LIFE_SAMPLES = 20
HALF_LIFE_US = 14 * 86_400 * 1_000_000
"""A sample weighs half as much for every 20 younger ones of its cell and kind, and for every 14 days up to the youngest."""

STEPS = 64
FRACTIONS = (
    1073741824, 1062175491, 1050733751, 1039415261, 1028218693, 1017142735, 1006186087, 995347464,
    984625594, 974019220, 963527098, 953147997, 942880699, 932724001, 922676710, 912737649,
    902905651, 893179563, 883558244, 874040567, 864625413, 855311680, 846098274, 836984114,
    827968132, 819049271, 810226483, 801498734, 792865000, 784324269, 775875538, 767517817,
    759250125, 751071493, 742980960, 734977579, 727060411, 719228525, 711481005, 703816941,
    696235434, 688735596, 681316545, 673977412, 666717336, 659535466, 652430958, 645402981,
    638450708, 631573326, 624770026, 618040012, 611382493, 604796689, 598281827, 591837143,
    585461881, 579155293, 572916640, 566745190, 560640218, 554601009, 548626854, 542717053,
)  # fmt: skip
"""2^30 · 2^(−i/64), written out: ``pow`` may differ in its last bit between C libraries, and then so would every sum."""


def weight(younger: int, age_us: int) -> int:
    """2^30 · 2^−(younger/20 + age/14 d), in 64 steps per half-life, and 0 after 30 of them."""
    step = younger * STEPS // HALF_LIFE_SAMPLES + age_us * STEPS // HALF_LIFE_US
    return FRACTIONS[step % STEPS] >> (step // STEPS) if step < WEIGHT_BITS * STEPS else 0
