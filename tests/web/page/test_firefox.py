"""The main journey in Firefox: what the page needs of a browser is there in another one, too."""

import json

import pytest
from tests.web.firefox import MISSING, find_firefox, open_firefox

from crowdveil.protocol.submission import VoterStep

RIGHT, ENTER = "\ue014", "\ue007"


@pytest.fixture(scope="module")
def tab():
    """A tab of a real Firefox; without one the journey is skipped, and says why."""
    path = find_firefox()
    if path is None:
        pytest.skip(MISSING)
    with open_firefox(path) as opened:
        opened.resize(360, 740)
        yield opened


def test_the_whole_way_in_firefox(tab, address, stored):
    tab.open(f"{address}/p/score/")
    tab.touch("#agree")
    tab.touch(".consent .primary")
    tab.touch("label[for=level-1000000]")
    tab.touch("main button.primary")
    tab.touch(".practice label.left")
    assert tab.evaluate("document.querySelector('.common .group.hit').dataset.side") == "right"
    assert tab.evaluate("getComputedStyle(document.querySelector('.common .hit .crosses')).visibility") == "visible"
    tab.touch("main button.primary")
    for place in range(5):
        tab.wait_for(f".dilemma progress[value='{place + 1}']")
        if place % 2:
            tab.press(RIGHT)
            tab.press(ENTER)
        else:
            tab.touch(".common .group[data-side=left]")
            tab.touch("main button.primary")
    tab.touch("fieldset input[value=middle]")
    tab.touch("main button.primary")
    tab.touch(".sent summary")
    body = tab.evaluate("document.querySelector('.sent pre').textContent")
    assert set(json.loads(body)) >= {"format", "study", "mechanism", "values"}
    told = [request for request in tab.requests if request["method"] != "GET"]
    assert {request["url"] for request in told} == {f"{address}/api/polls/score/steps"}
    assert [request["bodySize"] for request in told] == [len(f'{{"step":"{step}"}}') for step in VoterStep]
    tab.touch("main button.primary")
    tab.wait_for(".facts code")
    report = tab.evaluate("document.querySelector('.facts code').textContent")
    assert stored("score")[report].body == {key: value for key, value in json.loads(body).items() if key != "about"}
    (sent,) = (request for request in tab.requests if request["method"] != "GET" and request not in told)
    assert (sent["method"], sent["bodySize"]) == ("PUT", len(body.encode()))
    assert all(request["url"].startswith(address) for request in tab.requests if request["url"].startswith("http"))
    assert tab.evaluate("document.querySelectorAll('.comparison li').length") == 9
    assert tab.evaluate("document.querySelectorAll('.portraits .portrait').length") == 2
    tab.touch("button.save")
    assert tab.downloaded("crowdveil.png").startswith(b"\x89PNG")
    assert tab.complaints == []
