"""crowdveil plan: a table at 80 columns, one JSON object, and a goal that is out of reach said in one line."""

from tests.program import answer, crowdveil, refused


def test_a_forecast_fits_80_columns_and_names_every_factor():
    result = crowdveil("plan", "--study", "kidney", "--voters", "500", "--epsilon", "1")
    assert result.code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert all(name in result.stdout for name in ("vlcp", "rlcp", "vldp", "rldp", "alcp", "aldp", "± "))


def test_the_voters_that_a_goal_needs_are_found():
    order = ("plan", "--study", "kidney", "--paradigm", "vlcp", "--epsilon", "1", "--predicted", "0.7")
    found = answer(*order)["forecasts"]["vlcp"]
    assert found["predicted"] >= 0.7
    assert found["voters"] >= 2


def test_a_goal_out_of_reach_is_said():
    order = ("--study", "kidney", "--paradigm", "vlcp", "--voters", "3", "--predicted", "0.74")
    assert "no epsilon up to 20 reaches it" in answer("plan", *order)["forecasts"]["vlcp"]["out_of_reach"]


def test_a_forecast_says_for_which_dilemmas_it_holds():
    """Of a file, devices' reports leave in doubt what the dilemmas were: bars are wider, and less is decided."""
    order = ("plan", "--paradigm", "rldp", "--voters", "2097", "--records", "10", "--epsilon", "1")
    poll, file = (answer(*order, *design)["forecasts"]["rldp"] for design in (("--design", "study"), ()))
    assert (poll["design"], file["design"]) == ("study", None)
    assert file["decided"] < poll["decided"]
    assert all(file["error_bars"][name] > bar for name, bar in poll["error_bars"].items())
    assert "Of a file, whose dilemmas anybody may have drawn" in crowdveil(*order).stdout
    assert "the study's generator" in crowdveil(*order, "--design", "study").stdout
    refused(crowdveil(*order, "--design", "file"), "the design is 'file'")


def test_nothing_given_is_refused():
    refused(crowdveil("plan", "--study", "kidney"), "one can be found")


def test_a_forecast_says_what_devices_had_best_measure():
    """Of 3,000 voters at epsilon 1, nine factors by bits, and every direction by scores; kidney has no others."""
    order = (
        "--voters",
        "3000",
        "--epsilon",
        "1",
        "--design",
        "study",
        "--paradigm",
        "vldp",
        "--paradigm",
        "rldp",
        "--paradigm",
        "vlcp",
    )
    found = answer("plan", *order)["forecasts"]
    assert {name: one["along"] for name, one in found.items()} == {"vldp": "factors", "rldp": "features", "vlcp": None}
    assert found["rldp"]["decided"] > 0.5 > found["vldp"]["decided"]
    assert 'along = "features"' in crowdveil("plan", *order).stdout
    assert answer("plan", "--study", "kidney", *order)["forecasts"]["rldp"]["along"] is None
