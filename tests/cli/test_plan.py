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


def test_nothing_given_is_refused():
    refused(crowdveil("plan", "--study", "kidney"), "one can be found")
