"""Effects and groups on the page for everybody: in its language, with what differs, and to be taken away."""

import polars as pl
import pytest

from crowdveil.effect_release import Effect, Effects, GroupDifference, GroupEffects, effects_from_dict
from crowdveil.privacy.mechanisms.group_mechanism import OTHERS
from crowdveil.service.poll import group_labels, poll_from_dict
from crowdveil.service.public.result import GroupTrack, _leaning, _verdict, effects_in_words, read_effects
from crowdveil.service.public.words import words_of
from crowdveil.study.bundled import load_study
from crowdveil.study.translations import INTERFACE_LANGUAGES


def stored(site, question):
    return next(one for one in site.store.effects.all("preferred") if one.read().effects.question == question)


def test_the_page_shows_the_newest_of_everybody_and_of_each_question(site):
    page = site.get("/r/preferred/?lang=en").text
    of_age, newest, older = site.store.effects.all("preferred")[::-1][:1] + site.store.effects.all("preferred")[:2]
    assert page.count('class="part effects"') == 2
    assert f"/r/preferred/effects/{of_age.id}/table.csv" in page
    assert f"/r/preferred/effects/{newest.id}/table.csv" in page
    assert older.id not in page
    assert "By group: How old are you?" in page
    assert "40 or &lt;more&gt;" in page
    assert "Who belongs to which group is protected, too." in page
    german = site.get("/r/preferred/?lang=de").text
    assert "Nach Gruppen: Wie alt sind Sie?" in german
    assert "unter 40" in german


@pytest.mark.parametrize("language", INTERFACE_LANGUAGES)
def test_a_place_is_the_share_of_choices_in_every_language(site, language):
    shown = read_effects(stored(site, "age"), site.store.polls.known("preferred"), words_of(language))
    made = stored(site, "age").read().effects
    at = sorted(one.leaning.at for row in shown.factors for one in row.tracks)
    expected = sorted((1 + e.estimate) / 2 if e.known else 0.5 for g in made.groups for e in g.effects)
    assert at == pytest.approx(expected)
    assert all(row.verdict for row in shown.factors)


@pytest.mark.parametrize(
    ("language", "said"),
    [("en", ["18 to 37", "38 to 57", "all others"]), ("fr", ["18 à 37", "38 à 57", "tous les autres"])],
)
def test_ranges_and_merged_groups_are_told_in_the_page_s_language(language, said):
    years = {"id": "years", "kind": "number", "low": 18, "high": 57, "step": 20, "text": "Years?"}
    poll = poll_from_dict({"name": "p", "study": "kidney", "paradigm": "vlcp", "questions": [years]})
    labels = (*group_labels(poll.questions[0]), OTHERS)
    differ = GroupDifference(poll.study.factors[0].name, labels[0], OTHERS, 0.5, 0.4, 0.6, True)
    made = Effects(poll.study, "years", tuple(GroupEffects(label, 9.0, ()) for label in labels), (differ,))
    shown = effects_in_words(made, poll, words_of(language))
    assert [group.label for group in shown.groups] == said
    assert (shown.differences[0].group, shown.differences[0].other) == (said[0], said[2])


def test_tables_pictures_and_the_file_can_be_taken_away(site, tmp_path):
    one = stored(site, "age")
    base = f"/r/preferred/effects/{one.id}/"
    (tmp_path / "t.csv").write_text(site.get(base + "table.csv").text)
    table = pl.read_csv(tmp_path / "t.csv")
    assert table["group"].unique(maintain_order=True).to_list() == ["under 40", "40 or <more>"]
    assert site.get(base + "picture.png").content.startswith(b"\x89PNG")
    assert b"under 40" in site.get(base + "picture.svg").content
    assert effects_from_dict(site.get(f"/api/effects/{one.id}").json()) == one.read()
    (listed, *_) = site.get("/api/polls/preferred/effects").json()["effects"][::-1]
    assert (listed["id"], listed["question"], listed["groups"]) == (one.id, "age", ["young", "old"])
    assert listed["epsilon"] == 40


@pytest.mark.parametrize(
    "path", ["/r/preferred/effects/none/table.csv", "/r/trusted/effects/{id}/table.csv", "/r/preferred/effects/{id}/x"]
)
def test_what_is_not_there_is_said_not_to_be(site, path):
    site.get(path.format(id=stored(site, "age").id), 404)
    assert "unknown-release" in site.get("/api/effects/none", 404).text


def test_groups_that_differ_agree_or_cannot_be_told_are_said_so():
    study = load_study("kidney")
    words = words_of("en")
    factor = study.factors[0].name

    def effects(first, second, told):
        def of(middle):
            return tuple(
                Effect(one.name, "", middle, 0.1, middle - 0.2, middle + 0.2, 9.0, True) for one in study.factors
            )

        groups = (GroupEffects("a", 9.0, of(first)), GroupEffects("b", 9.0, of(second)))
        gap = first - second
        apart = (GroupDifference(factor, "a", "b", gap, gap - 0.1, gap + 0.1, told),)
        return Effects(study, "team", groups, apart)

    def verdict(first, second, told):
        made = effects(first, second, told)
        tracks = [GroupTrack(g.label, _leaning(g.effects[0], "t", "few", "many", words)) for g in made.groups]
        return _verdict(made, factor, tracks, words)

    assert verdict(0.7, 0.3, told=True) == ("The groups differ: a and b by 20 in 100.", True)
    assert verdict(0.7, 0.3, told=False) == ("The groups agree: all prefer “many”.", False)
    assert verdict(-0.5, -0.3, told=False) == ("The groups agree: all prefer “few”.", False)
    assert verdict(0.1, -0.1, told=False) == ("No difference can be told from noise and chance.", False)
