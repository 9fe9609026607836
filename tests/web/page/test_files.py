"""The page's files: every language says everything, and all of it is small and from here."""

import gzip
import hashlib
import json
import re
from base64 import b64encode
from importlib import resources
from pathlib import Path

import pytest

from crowdveil.protocol.voters_page import voters_page
from crowdveil.study.bundled import load_study
from crowdveil.study.features import ICONS
from crowdveil.study.translations import INTERFACE_LANGUAGES

WEB = Path(str(resources.files("crowdveil"))) / "web"
MODULES = sorted(WEB.rglob("*.js"))
ENGLISH = json.loads((WEB / "languages" / "en.json").read_text(encoding="utf-8"))
LARGEST = 150_000


def strings(code):
    return json.loads((WEB / "languages" / f"{code}.json").read_text(encoding="utf-8"))


def holes(text):
    return sorted(re.findall(r"\{(\w+)\}", text))


def test_there_is_a_file_for_every_language():
    assert {file.stem for file in (WEB / "languages").iterdir()} == set(INTERFACE_LANGUAGES)


@pytest.mark.parametrize("code", INTERFACE_LANGUAGES)
def test_every_language_says_everything(code):
    said = strings(code)
    assert list(said) == list(ENGLISH)
    assert [key for key, text in said.items() if not text.strip() or holes(text) != holes(ENGLISH[key])] == []


@pytest.mark.parametrize("code", INTERFACE_LANGUAGES[1:])
def test_nothing_was_left_in_english(code):
    """Words that are the same in two languages are few and short."""
    same = {key for key, text in strings(code).items() if text == ENGLISH[key]}
    assert same <= {
        "direction",
        "comma",
        "tag_left",
        "tag_right",
        "receipt_protection",
        "in_words",
        "dilemma_of",
        "from_to",
        "spared_count",
    }


@pytest.mark.parametrize("code", INTERFACE_LANGUAGES)
def test_what_is_assumed_is_said_in_every_language(code):
    """Random numbers come from ciphers: no promise holds against any computing power."""
    said = strings(code)
    assert all("AES" in said[f"assumed_{place}"] for place in ("central", "distributed"))
    assert "computing power" not in " ".join(said.values())


def test_every_key_that_the_page_asks_for_is_there_and_no_other():
    code = "\n".join(module.read_text(encoding="utf-8") for module in MODULES)
    asked = {key for key in ENGLISH if re.search(rf'"{key}"', code)}
    made = {  # keys that are put together, by what they begin with
        "protected_": ("voter", "record", "choice"),
        "together_": ("record", "choice"),
        "assumed_": ("central", "distributed"),
        "picture_": ("central", "distributed"),
        "bet_": ("central", "distributed"),
        "agree_": ("central", "distributed"),
        "questions_": ("central", "distributed"),
        "short_": ("central", "distributed"),
        "way_": ("central_1", "distributed_1"),
        "how_": ("stays_hits", "swerves_hits", "stays_barrier", "swerves_barrier"),
        "spared_": ("most", "least"),
        "level_": ("strong", "balanced", "light"),
        "refused_": (
            *("unreachable", "closed", "full", "not_open_yet", "unknown_ballot", "different_report"),
            *("withdrawn", "nothing_stored", "handed_over", "too_many_requests"),
        ),
    }
    put_together = {f"{start}{end}" for start, ends in made.items() for end in ends}
    assert all(f"{start}${{" in code for start in made)
    assert asked | put_together == set(ENGLISH)
    literal = set(re.findall(r'\bsay\("(\w+)"', code))
    assert literal <= set(ENGLISH)


def test_every_character_of_the_study_is_drawn():
    drawings = (WEB / "scene" / "characters.svg").read_text(encoding="utf-8")
    drawn = set(re.findall(r'<symbol id="character-(\w+)"', drawings))
    assert drawn == {feature.name for feature in load_study("moral-machine").features if feature.part == "characters"}
    parts = set(re.findall(r'href="#([\w-]+)"', drawings))
    assert parts <= set(re.findall(r'id="([\w-]+)"', drawings))


def test_every_picture_that_a_study_may_name_is_drawn():
    drawn = re.findall(r'^  (\w+):\s+"M', (WEB / "scene" / "icons.js").read_text(encoding="utf-8"), re.M)
    assert sorted(drawn) == sorted(ICONS)


def modules_from(*starts):
    """All modules that these import, directly or not, with themselves."""
    found, waiting = set(), [WEB / start for start in starts]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            named = re.findall(
                r'^(?:import|export|\}) [^;]*?from "(\.[^"]+)";', module.read_text(encoding="utf-8"), re.M
            )
            waiting += [(module.parent / path).resolve() for path in named]
    return found


def test_every_module_is_asked_for_at_once():
    """The page names what the welcome needs, so that no module waits for another; and the rest, for when it is read."""
    first = modules_from("early.js", "main.js")
    rest = modules_from("voting.js") - first
    page = (WEB / "index.html").read_text(encoding="utf-8")
    parts = page.split('<template id="rest">')
    assert '<link rel="modulepreload"' not in parts[0].split('<template id="first">')[0]
    for part, modules in zip(parts, (first, rest), strict=True):
        preloaded = re.findall(r'<link rel="modulepreload" href="../../web/([^"]+)">', part)
        assert sorted(preloaded) == sorted(path.relative_to(WEB).as_posix() for path in modules)
    others = {module for module in MODULES if "vendor" in module.parts}  # needed for relays only
    assert first | rest | others | {WEB / "first.js"} == set(MODULES)


def test_no_noise_is_needed_to_read_the_welcome():
    """What a voter waits for is less than half of the page's code, and not its mathematics."""
    first = modules_from("early.js", "main.js")
    assert not {"noise.js", "coins.js", "report.js", "fit.js"} & {module.name for module in first}
    sizes = {module: len(gzip.compress(module.read_bytes())) for module in MODULES if "vendor" not in module.parts}
    assert sum(sizes[module] for module in first) < sum(sizes.values()) / 2


def test_the_page_is_small():
    """Everything that a voter loads, with the largest language, compressed as it is served."""
    files = [path for path in WEB.rglob("*") if path.is_file() and path.parent.name != "languages"]
    sizes = {path: len(gzip.compress(path.read_bytes())) for path in files}
    largest = max(len(gzip.compress(path.read_bytes())) for path in (WEB / "languages").iterdir())
    assert sum(sizes.values()) + largest < LARGEST


def test_no_file_names_another_place():
    """No third-party origin: the only address is the name of SVG."""
    for path in WEB.rglob("*"):
        if path.is_file():
            found = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", path.read_text(encoding="utf-8")))
            assert found <= {"http://www.w3.org/2000/svg"}, path


def test_no_script_or_style_stands_in_the_page_but_the_two_files_that_are_seen_first():
    page = (WEB / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []
    served = voters_page().html().decode()
    inside = re.findall(r"<(script|style)>(.*?)</\1>", served, re.S)
    assert inside == [("style", (WEB / "first.css").read_text()), ("script", (WEB / "first.js").read_text())]
    assert "/first." not in served
    hashed = [b64encode(hashlib.sha256(content.encode()).digest()).decode() for _, content in inside]
    assert list(voters_page().inside()) == [f"'sha256-{one}'" for one in hashed]
    for module in MODULES:
        code = module.read_text(encoding="utf-8")
        assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", code) == []
        assert re.findall(r"Math\.random\(", code) == []
