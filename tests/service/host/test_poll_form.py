"""A poll by a form and by a file: both say the same, mistakes are told in words, and a poll can be made again."""

import re
import tomllib

import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.service.host.measured import MEASURED, measured_advice, measured_words
from crowdveil.service.host.poll_form import data_of_form, empty_form, form_of_data
from crowdveil.service.poll import poll_as_dict, poll_from_dict
from crowdveil.study.translations import languages, words

PARKING = {
    **empty_form(),
    "study": "own",
    "own_title": "Who gets the last parking space?",
    "own_question": "Who should get it?",
    "own_dilemmas": "12",
    "f0_label": "minutes of waiting",
    "f0_values": "0, 10, 30",
    "f0_icon": "clock",
    "f1_label": "vehicle",
    "f1_values": "car, van, motor bike",
    "f1_icon": "🚗",
    "paradigm": "vlcp",
    "budget": "2",
    "destroy_on": "2027-01-31",
    "quota": "50",
    "closes_on": "2026-12-31",
    "consent_en": "Run by us.",
    "consent_ar": "نحن",
    "q0_text": "How old are you?",
    "q0_options": "under 40\n40 or over",
}
KINDS = {
    **PARKING,
    "minimum_age": "18",
    "q0_kind": "single",
    "q0_expected": "40 or over",
    "q1_text": "How do you travel?",
    "q1_kind": "several",
    "q1_options": "By bus\nOn foot",
    "q1_required": "yes",
    "q2_text": "How old?",
    "q2_kind": "number",
    "q2_low": "18",
    "q2_high": "97",
    "q2_step": "10",
    "q3_text": "Do you like it?",
    "q3_kind": "scale",
    "q3_low": "-2",
    "q3_high": "2",
    "q3_options": "not at all\nvery much",
    "q4_text": "Why?",
    "q4_kind": "text",
    "failed_checks": "left-out",
    "t_fr_title": "Qui prend la dernière place ?",
    "t_fr_question": "Qui doit l’avoir ?",
    "t_fr_f0_label": "minutes d’attente",
    "t_fr_f1_label": "véhicule",
    "t_fr_f1_values": "voiture, camionnette, moto",
    "t_fr_q1_text": "Comment voyagez-vous ?",
    "t_fr_q1_options": "En bus\nÀ pied",
    "t_fr_q3_options": "pas du tout\nbeaucoup",
}
RELAYED = {
    **{name: value for name, value in empty_form().items() if not name.startswith("level")},
    "study": "kidney",
    "paradigm": "vldp",
    "level0_name": "shuffled",
    "level0_epsilon": "3",
    "relay": "https://relay.example",
    "batch": "1500",
    "delta": "1e-6",
    "honest": "0.8",
}
FILE = """
name = "parking"
paradigm = "rldp"
[study]
name = "parking"
title = "Who gets the last parking space?"
question = "Who should get it?"
norm_bound = 2.0
drawing = { method = "independent", dilemmas = 10 }
[[study.features]]
name = "children"
label = "children in the car"
low = 0
high = 3
levels = [0, 1, 2, 3]
words = { 0 = "no children", 1 = "a child", other = "{n} children" }
"""


def hidden_token(page):
    return re.search(r'name="form_token" value="(\w+)"', page)[1]


def test_a_form_says_what_a_file_says():
    poll = poll_from_dict(data_of_form(PARKING))
    waiting, *vehicles = poll.study.features
    assert (waiting.low, waiting.high, waiting.unit, waiting.levels) == (0, 30, 10, (0, 10, 30))
    assert [feature.name for feature in vehicles] == ["vehicle-car", "vehicle-van", "vehicle-motor-bike"]
    assert [waiting.icon, *(feature.icon for feature in vehicles)] == ["clock", "🚗", "🚗", "🚗"]
    assert poll.name == "who-gets-the-last-parking-space"
    assert (str(poll.budget), poll.quota, str(poll.destroy_on)) == ("2", 50, "2027-01-31")
    assert dict(poll.consent) == {"en": "Run by us.", "ar": "نحن"}
    assert {question.id: question.levels for question in poll.questions} == {"q1": ("under-40", "40-or-over")}
    assert poll.study.drawing.dilemmas == 12


def test_a_form_and_its_file_come_from_each_other():
    twice = [{**empty_form(), "study": "kidney", "repeat": "yes"}, {**PARKING, "repeat": "yes"}]
    plain = [{**empty_form(), "name": "x"}, {**empty_form(), "study": "kidney", "entry": "links"}]
    for form in (PARKING, KINDS, RELAYED, *plain, *twice):
        data = poll_as_dict(poll_from_dict(data_of_form(form)))
        again = form_of_data(data)
        assert again is not None
        assert poll_as_dict(poll_from_dict(data_of_form(again))) == data


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ("A+, A-, B+, B-", ["1", "2", "3", "4"]),
        ("C, C++, Python", ["1", "2", "3"]),
        ("男, 女, other", ["1", "2", "3"]),
        ("< 30, > 30, 30", ["1", "2", "3"]),
        ("car, van, car", ["car", "van"]),
    ],
)
def test_no_value_of_a_fact_is_lost(values, levels):
    form = {**PARKING, "f1_values": values, "t_fr_f1_values": ", ".join(f"mot {level}" for level in levels)}
    form |= {f"t_fr_{field}": words for field, words in {"title": "T", "question": "Q"}.items()}
    form |= {"t_fr_f0_label": "minutes", "t_fr_f1_label": "véhicule"}
    poll = poll_from_dict(data_of_form(form))
    (vehicle,) = poll.study.categories
    assert list(vehicle.levels) == levels
    shown = list(dict.fromkeys(values.split(", ")))
    assert [feature.phrase(1) for feature in poll.study.features[1:]] == shown
    said = words(poll.study, "fr", poll.translations)["features"]
    assert [said[name]["words"]["1"] for name in vehicle.feature_names] == [f"mot {level}" for level in levels]
    again = form_of_data(poll_as_dict(poll))
    assert again["f1_values"] == ", ".join(shown)
    assert poll_from_dict(data_of_form(again)) == poll


def test_facts_whose_names_have_no_latin_letters_are_told_apart():
    form = {**PARKING, "f0_label": "车辆", "f0_values": "轿车, 卡车", "f1_label": "等待", "f1_values": "0, 10, 30"}
    poll = poll_from_dict(data_of_form({**form, "f2_label": "城市", "f2_values": "北京, 上海"}))
    assert [one.name for one in poll.study.attributes] == ["fact_1", "fact-2", "fact-3"]
    assert [one.label for one in poll.study.attributes] == ["等待", "车辆", "城市"]
    again = form_of_data(poll_as_dict(poll))
    assert again is not None
    assert poll_from_dict(data_of_form(again)) == poll


def test_a_poll_of_any_study_may_ask_one_dilemma_twice():
    for study in ("kidney", tomllib.loads(FILE)["study"]):
        assert poll_from_dict({"name": "x", "study": study, "repeat": True}).study.repeat
    with pytest.raises(CrowdveilError, match="'repeat' must be a bool"):
        poll_from_dict({"name": "x", "study": "kidney", "repeat": "yes"})
    form = form_of_data({"name": "x", "study": "kidney", "repeat": True, "paradigm": "vlcp", "budget": "1"})
    assert (form["study"], form["repeat"]) == ("kidney", "yes")
    assert data_of_form(form)["repeat"] is True


def test_whatever_a_form_promises_it_may_say_what_is_measured():
    for study in ("moral-machine", "fairness"):
        for paradigm in PARADIGMS:
            form = {**empty_form(), "study": study, "paradigm": paradigm}
            assert poll_from_dict(data_of_form(form)).study.along is None
            for along in ("factors", "features"):
                poll = poll_from_dict(data_of_form({**form, "along": along}))
                assert poll.study.along == along
                assert form_of_data(poll_as_dict(poll))["along"] == along
    with pytest.raises(CrowdveilError, match="along is 'axes': use 'factors' or 'features'"):
        poll_from_dict(data_of_form({**empty_form(), "along": "axes"}))


def test_a_study_whose_factors_leave_nothing_out_is_not_told_what_to_measure():
    for form in ({**empty_form(), "study": "kidney"}, PARKING):
        assert data_of_form({**form, "along": "features"}) == data_of_form(form)
    from_file = poll_from_dict({"name": "x", "study": "kidney", "along": "features"})
    assert form_of_data(poll_as_dict(from_file)) is None  # Nothing of a file is dropped unseen.


def test_a_mechanism_of_the_papers_society_is_not_told_what_to_measure():
    data = {"name": "x", "study": "moral-machine", "paradigm": "vldp", "mechanism": "algorithm-2"}
    assert measured_words(poll_from_dict(data)) is None
    with pytest.raises(CrowdveilError, match="algorithm-2 estimates the paper's society, over all features: leave"):
        poll_from_dict({**data, "along": "features"})


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "quota", "better"),  # The thresholds are in docs/mechanisms.md.
    [("score", "1", 2400, "factors"), ("score", "1", 2600, "features"), ("one-bit", "3", 3600, "features")],
)
def test_a_preview_says_what_is_better_to_measure_for_as_many_voters_as_a_poll_takes(mechanism, epsilon, quota, better):
    terms = {"paradigm": "vldp" if mechanism == "one-bit" else "rldp", "quota": quota}
    data = {"name": "x", "study": "moral-machine", "levels": {"strong": epsilon, "light": "20"}, **terms}
    words = f"{quota:,} voters at ε = {epsilon}"
    for along in ("factors", "features"):
        advice = measured_advice(poll_from_dict({**data, "along": along}))
        if along == better:
            assert advice == f"That leaves the least error with {words}."
        else:
            assert advice == f"With {words}, less error would be left by measuring {MEASURED[better]}."
    del data["quota"]
    assert measured_advice(poll_from_dict(data)) is None


def test_what_a_poll_measures_is_chosen_in_its_form_shown_and_never_changes(hosted):
    offered = hosted.get("/host/new").text
    assert set(re.findall(r'name="study" value="([a-z-]+)" data-leaves-out', offered)) == {"moral-machine", "fairness"}
    assert re.search(r'name="along" value="" checked', offered)
    axes = {"": 9, "factors": 9, "features": 23}  # The factors and the features of the Moral Machine.
    for along in axes:
        form = {**empty_form(), "name": f"poll-{along}", "along": along, "quota": "1000000"}
        checked = hosted.submit("/host/new", "/host/new", **form).text
        shown = MEASURED[along or "factors"]
        assert f"<dd>{shown}. " in checked
        again = hosted.post("/host/new/again", {"form_token": hidden_token(checked), "text": text_of(checked)}).text
        assert re.search(rf'name="along" value="{along}" checked', again)
        make(hosted, checked, begin="open")
        assert f"<dt>Measured</dt><dd>{shown}</dd>" in hosted.get(f"/host/polls/poll-{along}").text
    hosted.store.polls.close("poll-features")
    hosted.store.polls.reopen("poll-features")
    for along, number in axes.items():
        method = hosted.get(f"/api/polls/poll-{along}").json()["method"]
        assert {len(axis) for axis in method["axes"]} == {number}
    assert "Measured" not in hosted.get("/host/polls/untrusted").text  # A poll of kidney: nothing is left out.


def test_questions_of_every_kind_are_asked_by_the_form():
    check, several, years, scale, text = poll_from_dict(data_of_form(KINDS)).questions
    assert (check.expected, several.required, years.step) == ("40-or-over", True, 10)
    assert dict(several.options[1].text) == {"en": "On foot", "fr": "À pied"}
    assert dict(several.text) == {"en": "How do you travel?", "fr": "Comment voyagez-vous ?"}
    assert (scale.low, scale.high) == (-2, 2)
    assert [dict(end) for end in scale.ends] == [
        {"en": "not at all", "fr": "pas du tout"},
        {"en": "very much", "fr": "beaucoup"},
    ]
    assert text.kind == "text"
    poll = poll_from_dict(data_of_form(KINDS))
    assert (poll.attention.checks, poll.attention.left_out, poll.minimum_age) == (1, True, 18)


def test_a_study_of_ones_own_speaks_the_languages_that_were_filled_in():
    poll = poll_from_dict(data_of_form(KINDS))
    assert languages(poll.study, poll.translations) == ("en", "fr")
    said = words(poll.study, "fr", poll.translations)
    assert (said["title"], said["direction"]) == ("Qui prend la dernière place ?", "ltr")
    assert said["features"]["vehicle-van"] == {"label": "véhicule: camionnette", "words": {"0": "", "1": "camionnette"}}
    assert said["features"]["minutes_of_waiting"]["label"] == "minutes d’attente"


def test_the_terms_of_a_relay_are_in_the_form():
    poll = poll_from_dict(data_of_form(RELAYED))
    relay = poll.relay
    assert (relay.url, relay.batch, relay.delta, relay.honest) == ("https://relay.example", 1500, 1e-6, 0.8)
    assert poll.mechanism == "one-bit"


@pytest.mark.parametrize("paradigm", ["rldp", "vlcp"])
def test_the_fields_of_a_relay_are_not_read_where_the_form_hides_them(paradigm):
    form = {**RELAYED, "paradigm": paradigm}
    without = {name: value for name, value in form.items() if name not in ("relay", "batch", "delta", "honest")}
    poll = poll_from_dict(data_of_form(form))
    assert poll.relay is None
    assert poll == poll_from_dict(data_of_form(without))


def test_what_the_form_has_no_field_for_is_left_to_the_file():
    assert form_of_data(tomllib.loads(FILE)) is None
    assert form_of_data({"name": "x", "study": "kidney", "mechanism": "algorithm-2", "paradigm": "vldp"}) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"paradigm": ""}, "choose one of the promises"),
        ({"study": "nothing"}, "choose a study"),
        ({"own_title": " "}, "needs a title"),
        ({"f0_label": "", "f0_values": "", "f1_label": "", "f1_values": ""}, "needs a fact"),
        ({"f1_values": "car"}, "fact 2 needs a name and two or more different values"),
        ({"f1_label": ""}, "fact 2 needs a name"),
        ({"f0_values": "1, 1.0"}, "fact 1 needs a name and two or more different values"),
        ({"quota": "many"}, "give a whole number"),
        ({"q0_options": "only one"}, "question 1 needs"),
        ({"q0_kind": "slider"}, "question 1: say how it is answered"),
        ({"q2_high": "old"}, "question 3, the highest number: give a whole number, got 'old'"),
        ({"q0_expected": "blue"}, "the answer that passes must be one of its answers, got 'blue'"),
        ({"q4_expected": "x"}, "a free text cannot be an attention check"),
        ({"t_fr_q1_options": "En bus"}, "question 2 in French has 1 answer and 2 in English"),
        ({"t_fr_title": ""}, "the study in French: the title is missing"),
        ({"t_fr_f0_label": ""}, "in French: the name of fact 1 is missing"),
        ({"t_fr_f1_values": "voiture, moto"}, "fact 2 has 2 values and 3 in English"),
        ({"paradigm": "vldp", "relay": "https://relay.example"}, "a relay needs the fewest reports"),
        (
            {"paradigm": "vldp", "relay": "https://relay.example", "batch": "9", "honest": "all"},
            "give a number, got 'all'",
        ),
        ({"paradigm": "rldp", "level0_epsilon": ""}, "each with a name and an epsilon"),
    ],
)
def test_a_mistake_in_the_form_is_told_in_words(changed, said):
    with pytest.raises(CrowdveilError, match=said):
        data_of_form({**KINDS, **changed})


def test_a_wrong_form_comes_back_with_what_was_filled_in(shared_hosted):
    page = shared_hosted.submit("/host/new", "/host/new", 400, **{**PARKING, "quota": "0", "own_title": "<b>&"}).text
    assert "the quota must be 1 or more" in page
    assert 'value="&lt;b&gt;&amp;"' in page
    assert "minutes of waiting" in page


def test_values_that_cannot_be_measured_are_refused_in_the_form(shared_hosted):
    page = shared_hosted.submit("/host/new", "/host/new", 400, **{**PARKING, "f0_values": "0, 1e-320, 1"}).text
    assert "minutes_of_waiting" in page[page.index('role="alert"') :][:200]
    assert 'value="0, 1e-320, 1"' in page


def text_of(checked):
    text = re.search(r'<textarea name="text" hidden>\n(.*?)</textarea>', checked, re.DOTALL)[1]
    return text.replace("&#34;", '"').replace("&#39;", "'").replace("&amp;", "&")


def make(site, checked, **fields):
    return site.post("/host/new/create", {"form_token": hidden_token(checked), "text": text_of(checked), **fields})


def test_a_poll_is_made_by_a_form_tried_out_and_opened(hosted):
    checked = hosted.submit("/host/new", "/host/new", **{**PARKING, "name": "parking"}).text
    assert checked.count("data-dilemma=") == 4
    assert "Run by us." in checked
    assert hosted.store.polls.get("parking") is None
    assert make(hosted, checked, begin="pilot").url.path == "/host/polls/parking"
    assert hosted.store.polls.get("parking").pilot
    assert "parking" not in hosted.get("/").text
    hosted.vote("parking", 2)
    page = hosted.get("/host/polls/parking").text
    assert "being tried out" in page
    assert "2 were sent so far" in page
    assert "vote in a private window" in page
    hosted.submit("/host/polls/parking", "/host/polls/parking/start")
    status = hosted.store.polls.get("parking")
    assert (status.pilot, status.participants) == (False, 0)
    token = hidden_token(hosted.get("/host/polls/parking").text)
    assert "not being tried out" in hosted.post("/host/polls/parking/start", {"form_token": token}, 400).text
    assert "already" in hosted.submit("/host/new", "/host/new", 400, **{**PARKING, "name": "parking"}).text


def test_a_file_is_checked_previewed_and_opened_at_once(hosted):
    checked = hosted.submit("/host/new/file", "/host/new/file", text=FILE).text
    assert "a child" in checked or "no children" in checked or "children" in checked
    make(hosted, checked, begin="open")
    assert not hosted.store.polls.get("parking").pilot
    again = hosted.get("/host/new?from=parking").text  # The form has no place for words of single values.
    assert "New poll from a file" in again
    assert "parking-2" in again


def test_a_study_file_becomes_a_poll_with_everything_else_as_it_comes(hosted):
    study = FILE.split("[study]\n")[1].replace("[[study.features]]", "[[features]]")
    token = hidden_token(hosted.get("/host/new/file").text)
    answer = hosted.post("/host/new/file", {"form_token": token, "text": ""}, files={"file": ("parking.toml", study)})
    assert "RLDP" in answer.text


def test_two_levels_of_one_name_are_refused(hosted):
    """One of them would be lost."""
    levels = {"level0_name": "own", "level0_epsilon": "0.5", "level1_name": "own", "level1_epsilon": "1"}
    fields = {**empty_form(), "study": "kidney", "paradigm": "rldp", **levels}
    assert "Two levels of privacy have the same name" in hosted.submit("/host/new", "/host/new", 400, **fields).text


@pytest.mark.parametrize("field", ["closes_on", "destroy_on"])
def test_a_poll_whose_last_day_is_over_is_not_made(field, hosted):
    fields = {**PARKING, field: "2026-02-28"}
    assert "2026-02-28 is over" in hosted.submit("/host/new", "/host/new", 400, **fields).text
    hosted.submit("/host/new", "/host/new", **{**PARKING, field: "2026-03-02"})


def test_a_poll_is_made_again_under_another_name(hosted):
    page = hosted.get("/host/new?from=untrusted").text
    assert 'value="untrusted-2"' in page
    assert re.search(r'value="vldp"[^>]* checked', page)
    hosted.get("/host/new?from=nothing", 400)


def test_the_name_of_a_deleted_poll_is_neither_proposed_nor_accepted(hosted):
    hosted.store.polls.add(poll_from_dict({"name": "untrusted-2", "study": "kidney"}))
    hosted.store.polls.delete("untrusted-2")
    assert 'value="untrusted-3"' in hosted.get("/host/new?from=untrusted").text
    refused = hosted.submit("/host/new", "/host/new", 400, **{**PARKING, "name": "untrusted-2"}).text
    assert "is taken already" in refused


def test_a_poll_is_put_away_and_its_results_stay(hosted):
    hosted.vote("untrusted", 3)
    hosted.submit("/host/polls/untrusted/releases", "/host/polls/untrusted/preview")
    hosted.submit("/host/polls/untrusted", "/host/polls/untrusted/archive")
    assert hosted.store.polls.get("untrusted").archived
    assert "untrusted" not in hosted.get("/api/polls").text
    assert "/host/polls/untrusted/open" not in hosted.get("/host/polls/untrusted").text
    assert "archived" in hosted.get("/host/").text
    hosted.get("/r/untrusted/")
    hosted.submit("/host/polls/untrusted", "/host/polls/untrusted/unarchive")
    assert hosted.store.polls.get("untrusted").listed


def test_a_poll_is_deleted_by_its_name_only_and_what_it_would_take_is_shown_first(hosted):
    hosted.vote("untrusted", 3)
    page = "/host/polls/untrusted/delete"
    assert "<li>3 reports</li>" in hosted.get(page).text
    refused = hosted.submit(page, page, 400, name="trusted")
    assert "Nothing was deleted" in refused.text
    assert hosted.store.polls.get("untrusted").participants == 3
    hosted.submit(page, page, name="untrusted")
    assert hosted.store.polls.get("untrusted") is None
    hosted.get("/r/untrusted/", 404)
    deleted = hosted.store.audit_log.latest()[0]
    assert (deleted.action, deleted.poll, deleted.detail) == ("deleted the poll", "untrusted", "3 reports")
