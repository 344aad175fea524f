"""A divergence as data: what a report and the tape have of it."""

from playhead.replay.matching.nearest import Difference, Nearest
from playhead.replay.report.divergence import Parting


def test_a_changed_upload_of_megabytes_is_reported_by_the_surroundings_of_the_change():
    taped, asked = f"{'A' * 2_000_000}taped{'B' * 9}", f"{'A' * 2_000_000}asked{'B' * 9}"
    near = Nearest(
        number=1,
        ref="1:1",
        name="POST",
        lane="main",
        served=False,
        request={"body": {"b64": taped}},
        differences=(Difference(path="body.b64", taped=taped, asked=asked),),
    )
    made = Parting(kind="missed", request={"body": {"b64": asked}}, nearest=near).as_json()
    found = made["nearest"]["differences"][0]
    assert found["taped"] == f"…{'A' * 40}taped{'B' * 9}"
    assert found["asked"] == f"…{'A' * 40}asked{'B' * 9}"
    assert made["request"]["body"]["b64"].endswith("… (2,000,014 characters)")
    assert len(made["nearest"]["request"]["body"]["b64"]) < 2000
