"""Effects and results by group from the host's pages: looked at first, charged once, in every paradigm that can."""

import json
import re

import pytest

from crowdveil.effect_release import effects_from_dict
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Amount, Epsilon
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_effects

QUESTION = {
    "id": "age",
    "text": {"en": "How old are you?", "de": "Wie alt sind Sie?"},
    "options": [
        {"id": "young", "text": {"en": "under 40", "de": "unter 40"}},
        {"id": "old", "text": {"en": "40 or more", "de": "40 oder mehr"}},
    ],
}
ASKED = {"study": "kidney", "questions": [QUESTION]}
PLACES = {"c": {"budget": 50}, "d": {"levels": {"only": "2"}, "about_epsilon": "2"}}


def page_of(name):
    return f"/host/polls/{name}/releases"


def look(site, name, **fields):
    return site.submit(page_of(name), f"/host/polls/{name}/effects/preview", **fields).text


def hidden(page):
    form = re.search(r'<form[^>]*action="[^"]*/effects"[^>]*>(.*?)</form>', page, re.DOTALL)[1]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))


@pytest.mark.parametrize("paradigm", ["vlcp", "rlcp", "alcp", "vldp", "rldp", "aldp"])
def test_a_host_makes_effects_by_group_in_every_paradigm(hosted, paradigm):
    """With an epsilon at which noise hides no group of a few voters: elsewhere such groups are merged."""
    hosted.store.polls.add(poll_from_dict({"name": "asked", **ASKED, "paradigm": paradigm, **PLACES[paradigm[2]]}))
    hosted.vote("asked", 10)
    central = paradigm[2] == "c"
    looked = look(hosted, "asked", by="age", **({"epsilon": "49"} if central else {}))
    assert "How old are you?" in looked
    if central:
        assert ("Who is in which group is protected" in looked) == (paradigm == "vlcp")
        assert hosted.store.releases.account("asked").spent == Amount(0)
    fields = hidden(looked)
    page = hosted.post("/host/polls/asked/effects", fields)
    (stored,) = hosted.store.effects.all("asked")
    assert page.url.path == f"/host/effects/{stored.id}"
    assert "under 40 less 40 or more" in page.text
    assert "style=" not in page.text
    made = stored.read()
    assert [group.label for group in made.effects.groups] == ["young", "old"]
    assert made.guarantee.paradigm.name == paradigm
    if central:
        account = hosted.store.releases.account("asked")
        assert [(charge.cost, charge.release) for charge in account.charges] == [(Amount(49_000_000), stored.id)]
        assert made.ledger["entry"] == 1
        assert "in the meantime" in hosted.post("/host/polls/asked/effects", fields, 400).text
        assert f"/host/effects/{stored.id}" in hosted.get(page_of("asked")).text
    else:
        assert "may have reported another answer" in page.text
    assert effects_from_dict(hosted.get(f"/host/effects/{stored.id}/file").json()) == made
    table = hosted.get(f"/host/effects/{stored.id}/table.csv").text
    assert table.startswith("question,group,factor,level,estimate")


def test_decisions_and_releases_do_not_see_effects_and_the_same_reports_give_the_same(hosted):
    hosted.vote("untrusted", 8)
    made = make_effects(hosted.store, "untrusted", hosted.service.today())
    assert make_effects(hosted.store, "untrusted", hosted.service.today()) == made
    assert hosted.store.effects.all("untrusted") == [made]
    assert made.read().facts["read_from"].startswith("the preference that the reports tell")
    assert hosted.store.polls.get("untrusted").current_release is None
    assert hosted.store.releases.all("untrusted") == []
    hosted.store.polls.delete("untrusted")
    assert hosted.store.effects.get(made.id) is None


def test_more_than_the_budget_is_refused_and_nothing_is_spent(hosted):
    hosted.vote("trusted", 4)
    assert "The budget does not cover it" in look(hosted, "trusted", epsilon="3", by="")
    fields = hidden(look(hosted, "trusted", epsilon="1", by="")) | {"epsilon": "3"}
    assert "does not cover" in hosted.post("/host/polls/trusted/effects", fields, 400).text
    assert hosted.store.releases.account("trusted").spent == Amount(0)
    assert hosted.store.effects.all("trusted") == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"paradigm": "vldp", "mechanism": "algorithm-2"}, "which states no probabilities"),
        ({"paradigm": "aldp", "mechanism": "one-choice"}, "fitted one by one"),
    ],
)
def test_what_a_poll_cannot_tell_is_said_in_words(hosted, given, said):
    hosted.store.polls.add(poll_from_dict({"name": "cannot", **ASKED, **PLACES["d"], **given}))
    assert said in hosted.get(page_of("cannot")).text


def test_numbers_make_groups_by_their_ranges_and_other_kinds_make_none(hosted):
    questions = [
        {"id": "years", "kind": "number", "low": 18, "high": 77, "step": 20, "text": "Years?"},
        {"id": "free", "kind": "text", "text": "Why?"},
        {**QUESTION, "id": "several", "kind": "several"},
        {**QUESTION, "id": "check", "expected": "old"},
    ]
    given = {"name": "kinds", "study": "kidney", "paradigm": "rlcp", "budget": 9, "questions": questions}
    hosted.store.polls.add(poll_from_dict(given))
    hosted.vote("kinds", 20)
    page = hosted.get(page_of("kinds")).text
    assert re.findall(r'<option value="(\w+)">', page.split('id="effects"')[1]) == ["years"]
    made = make_effects(hosted.store, "kinds", hosted.service.today(), "years", Epsilon(8)).read()
    assert [group.label for group in made.effects.groups] == ["18 to 37", "38 to 57", "58 to 77"]
    answers = [ballot.about["years"] for batch in hosted.store.submissions.ballots("kinds") for ballot in batch]
    assert [group.voters for group in made.effects.groups] == [answers.count(first) for first in (18, 38, 58)]


def test_progress_is_told_and_ends_at_the_effects(hosted):
    hosted.vote("untrusted", 3)
    fields = hidden(look(hosted, "untrusted", by=""))
    lines = hosted.post("/host/polls/untrusted/effects/progress", fields).text.splitlines()
    (stored,) = hosted.store.effects.all("untrusted")
    assert [json.loads(line) for line in lines] == [
        {"read": 3, "of": 3},
        {"done": {"to": f"/host/effects/{stored.id}"}},
    ]


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("trusted", {"epsilon": "1", "by": "size"}, "has no question &#39;size&#39; that makes groups"),
        ("trusted", {"epsilon": "much", "by": ""}, "epsilon is"),
        ("untrusted", {"by": ""}, "ffects need at least 2 voters"),
    ],
)
def test_wrong_requests_are_told_so(hosted, name, fields, said):
    action = f"/host/polls/{name}/effects/preview"
    assert said in hosted.submit(page_of(name), action, 400, **fields).text


def test_effects_that_spend_where_nothing_is_spent_are_refused(hosted):
    hosted.vote("untrusted", 2)
    with pytest.raises(CrowdveilError, match="this spends none"):
        make_effects(hosted.store, "untrusted", hosted.service.today(), epsilon=Epsilon(1))
