"""How much is told of one rule in one file, and of one text."""

from __future__ import annotations

from hybridgpu.check.limit import TOO_MANY, limited
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

ONE = Rule("one", Severity.ERROR, "It breaks.", "Mend it.", "here")
OTHER = Rule("other", Severity.WARNING, "It limps.", "Mend it.", "here")


def test_the_first_thousand_of_a_rule_in_a_file_are_told_and_the_others_counted() -> None:
    many = [Finding(ONE, Place("a", line), "wrong") for line in range(1, 1206)]
    rest = [Finding(ONE, Place("b", 1), "wrong"), Finding(OTHER, Place("a", 1), "odd"), Finding(OTHER, None, "odd")]
    *told, last = limited([*many, *many, *rest])
    assert told == [*many[:1000], *rest]
    assert (last.rule, last.place) == (TOO_MANY, Place("a", 1001))
    assert last.message == "205 more findings of one from here on"


def test_a_thousand_are_no_more_than_are_told() -> None:
    many = [Finding(ONE, Place("a", line), "wrong") for line in range(1, 1001)]
    assert limited(many) == tuple(many)


def test_of_a_long_text_the_beginning_and_the_end_are_told() -> None:
    text = "cannot read '" + "x" * 100_000 + "' here"
    (told,) = limited([Finding(ONE, Place("a", 1), text, text, (Related(Place("a", 2), text),))])
    for cut in (told.message, told.hint, told.related[0].message):
        assert len(cut) < 2100
        assert cut.startswith("cannot read 'xxx")
        assert cut.endswith("xxx' here")
        assert "characters more" in cut


def test_a_text_that_is_not_long_is_told_as_it_is() -> None:
    finding = Finding(ONE, Place("a", 1), "x" * 2000)
    assert limited([finding]) == (finding,)


def test_the_first_hundred_other_places_are_told_and_the_others_counted() -> None:
    places = tuple(Related(Place("a", line), "here") for line in range(2, 152))
    (told,) = limited([Finding(ONE, Place("a", 1), "wrong", "", places)])
    assert told.related == places[:100]
    assert told.message == "wrong (50 more places are not shown)"
