"""The kind `image`: what it declares, and what it is refused for."""

import pytest

from understudy.errors import SchemaError
from understudy.schema import Image, Schema

TEXT = """\
format: 1
rows: 60000
label: digit
columns:
  digit: {kind: categorical, values: [0, 1, 2]}
  image: {kind: image, height: 28, width: 20}
"""


def test_images_are_columns_of_their_own():
    schema = Schema.loads(TEXT)
    assert list(schema.modelled) == ["digit"]
    assert schema.images == {"image": Image(height=28, width=20)}
    assert schema.images["image"].pixels == 560
    assert schema.images["image"].shape == (28, 20)
    assert Image(height=2, width=3, channels=3).shape == (2, 3, 3)
    assert schema.dumps() == TEXT
    assert Schema.loads(schema.dumps(style="json")) == schema
    assert "28 x 20 pixels, grey" in schema._repr_html_()


def test_a_schema_of_images_alone():
    schema = Schema.loads("columns: {x: {kind: image, height: 4, width: 4, channels: 3}, key: {kind: id}}")
    assert schema.modelled == {}
    assert list(schema.images) == ["x"]


def test_the_size_is_a_fact_of_the_digest_and_of_the_draft():
    schema = Schema.loads(TEXT)
    assert schema.digest() != Schema.loads(TEXT.replace("width: 20", "width: 21")).digest()
    drafted = Schema.loads(TEXT.replace("width: 20}", "width: 20, source: data}"))
    assert drafted.unconfirmed() == [("image", "kind"), ("image", "height"), ("image", "width")]
    assert "20" not in repr(drafted.columns["image"])
    assert "28 x" not in drafted._repr_html_()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ("height: 0, width: 4", "height must be 1 to 4096 pixels, got 0"),
        ("height: 4, width: 5000", "width must be 1 to 4096"),
        ("height: 4, width: 4, channels: 2", "channels must be 1"),
        ("height: 4, width: 4, channels: true", "channels must be a whole number"),
        ("height: 4", "width is missing"),
        ("height: 4, width: 4, missing: true", "unknown fact 'missing'"),
        ("height: 4.5, width: 4", "height must be a whole number"),
    ],
)
def test_wrong_facts(facts, said):
    with pytest.raises(SchemaError, match=said):
        Schema.loads(f"columns: {{x: {{kind: image, {facts}}}}}")


def test_one_image_a_row_and_no_image_as_label():
    with pytest.raises(SchemaError, match="at most one of kind image, got 2"):
        Schema.loads("columns: {x: {kind: image, height: 4, width: 4}, y: {kind: image, height: 4, width: 4}}")
    with pytest.raises(SchemaError, match="label 'x' is an image"):
        Schema.loads("label: x\ncolumns: {x: {kind: image, height: 4, width: 4}, y: {kind: boolean}}")
