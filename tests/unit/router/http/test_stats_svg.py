"""The picture is text and rectangles: every number can be read and searched, and a colour says the same in every report."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from schemas.scales import COLOURS, step
from services.router.http.stats_maps import NOT_HELD, Block, HeatMap, MapFilter, MapRow, heat_map
from services.router.http.stats_svg import svg, written
from support.wide_stats import wide

SPACE = "{http://www.w3.org/2000/svg}"


def picture(
    *rows: MapRow, of: str = "decode", columns: tuple[str, ...] = ("desktop", "laptop"), **total: int
) -> HeatMap:
    sizes = {"rows_total": len(rows), "columns_total": len(columns), **total}
    return HeatMap(of=of, title="Speed", columns=columns, rows=rows, row=0, column=0, **sizes)  # type: ignore[arg-type]


def drawn(*maps: HeatMap) -> ElementTree.Element:
    return ElementTree.fromstring(svg(maps, "a note"))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(part for part in text.itertext()) for text in root.iter(f"{SPACE}text")]


def row(*blocks: Block, model: str = "qwen3", domain: str | None = "code") -> MapRow:
    return MapRow(model=model, domain=domain, blocks=blocks)


MEASURED = Block(value=96.4, level="cell", n=30)


def test_every_number_is_text_on_the_colour_of_its_step() -> None:
    root = drawn(picture(row(MEASURED, Block(value=7.0, level="worker", n=3))))
    assert {"96.4", "~7.0", "qwen3", "code", "desktop", "laptop", "a note"} <= set(texts(root))
    fills = [rect.get("fill") for rect in root.iter(f"{SPACE}rect") if rect.get("height") == "25"]
    assert fills == [COLOURS[step("decode", 96.4)], COLOURS[step("decode", 7.0)]]


def test_the_unknown_has_no_colour_and_is_not_a_number() -> None:
    unknown = Block(value=None, reason="nothing like it was measured")
    root = drawn(picture(row(unknown, Block(value=None, reason=NOT_HELD))))
    assert {"?", "–"} <= set(texts(root))
    assert not [text for text in texts(root) if re.fullmatch(r"~?[\d.]+", text)]
    assert len([rect for rect in root.iter(f"{SPACE}rect") if rect.get("class") == "unknown"]) == 1


def test_a_colour_does_not_change_because_a_bad_one_was_added() -> None:
    def colour(*more: Block) -> str | None:
        rects = drawn(picture(row(MEASURED, *more))).iter(f"{SPACE}rect")
        return next(rect.get("fill") for rect in rects if rect.get("height") == "25")

    assert colour() == colour(Block(value=0.1, level="cell", n=1)) == colour(Block(value=9999.0, level="cell", n=1))


def test_nothing_is_loaded_from_elsewhere_and_the_page_follows_light_and_dark() -> None:
    text = svg((picture(row(MEASURED, MEASURED)),), "note")
    assert text.count("http") == 1 and 'xmlns="http://www.w3.org/2000/svg"' in text
    assert "prefers-color-scheme: dark" in text
    assert "@font-face" not in text and "url(" not in text and "<script" not in text


def test_names_with_markup_in_them_are_only_text() -> None:
    root = drawn(picture(row(MEASURED, MEASURED, model="<b>&\"'"), columns=("a<script>", "b")))
    assert {"<b>&\"'", "a<script>"} <= set(texts(root))


def test_what_is_left_out_is_said_in_words() -> None:
    stats, fleet = wide(30, 9, 8)
    found = heat_map("decode", stats, fleet, MapFilter(rows=60, columns=16))
    assert "12 more rows and 14 more machines not shown: choose by model, domain or machine" in texts(drawn(found))


def test_a_long_name_is_cut_with_a_mark_and_the_whole_is_there_for_a_pointer() -> None:
    name = "Qwen/Qwen3-235B-A22B-Instruct-2507-a-very-long-quantisation-name"
    root = drawn(picture(row(MEASURED, MEASURED, model=name)))
    label = next(text for text in root.iter(f"{SPACE}text") if text.get("class") == "model")
    assert [title.text for title in label] == [name]
    assert (label[0].tail or "").endswith("…")


@pytest.mark.parametrize(
    ("of", "value", "said"), [("decode", 96.44, "96.4"), ("decode", 213.2, "213"), ("quality", 0.674, "67")]
)
def test_numbers_are_written_as_people_read_them(of: str, value: float, said: str) -> None:
    assert written(picture(of=of), Block(value=value, level="cell", n=1)) == said
    assert written(picture(of=of), Block(value=value, level="model", n=1)) == f"~{said}"


def test_an_empty_fleet_says_so() -> None:
    assert "Nothing was measured of this yet." in texts(drawn(picture()))
