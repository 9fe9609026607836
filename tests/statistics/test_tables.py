"""Sweeps write their tables into the docs."""

import pytest
from tables import write_table

PAGE = "# Page\n\nBefore.\n\n<!-- table: bars -->\n<!-- end -->\n\nAfter.\n"


@pytest.fixture
def docs(tmp_path):
    (tmp_path / "hooks.py").touch()
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path


def write(docs, rows, header=("voters", "covered")):
    write_table("page.md", "bars", header, rows, "make test-slow", docs=docs)
    return (docs / "page.md").read_text()


def test_rows_are_sorted_by_size_and_the_page_around_them_stays(docs):
    text = write(docs, [(500, ".95"), (50, ".97")])
    assert text == (
        "# Page\n\nBefore.\n\n<!-- table: bars -->\n`make test-slow` makes this table.\n\n| voters | covered |\n"
        "|---|---|\n| 50 | .97 |\n| 500 | .95 |\n\n<!-- end -->\n\nAfter.\n"
    )


def test_a_row_that_is_measured_anew_takes_the_place_of_the_old(docs):
    write(docs, [(50, ".97"), (500, ".95")])
    text = write(docs, [(500, ".96")])
    assert "| 50 | .97 |\n| 500 | .96 |" in text
    assert ".95" not in text


def test_a_table_of_other_columns_begins_anew(docs):
    write(docs, [(50, ".97")])
    assert ".97" not in write(docs, [(500, "1.2")], header=("voters", "width"))


def test_a_page_without_the_place_is_told(docs):
    with pytest.raises(LookupError, match="no place for a table 'other'"):
        write_table("page.md", "other", ("a",), [(1,)], "make test-slow", docs=docs)
