from framestorm.setup import property_docs


def test_the_document_is_up_to_date() -> None:
    hint = "run python -m framestorm.setup.property_docs"
    assert property_docs.FILE.read_text(encoding="utf-8") == property_docs.text(), hint
