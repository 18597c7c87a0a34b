"""The published JSON Schema of study.yml: `python -m framestorm.study.design.schema` writes docs/study.schema.json."""

import json

from pydantic.json_schema import JsonSchemaValue

from framestorm import paths
from framestorm.model.study import Level, Study
from framestorm.platform.registry import PLATFORMS

FILE = paths.ROOT / "docs" / "study.schema.json"
# What study.yml may have in place of a value: it is calculated for each point.
EXPRESSION = {"type": "string", "pattern": "^="}


def study_schema() -> JsonSchemaValue:
    """The schema: the models that read study.yml, and the settings of a target that platforms declare."""
    schema = Study.model_json_schema()
    schema["$defs"]["Target"] = _target()
    for model in (schema, schema["$defs"][Level.__name__]):
        description = model["properties"]["target"]["description"]
        model["properties"]["target"] = {"description": description, "$ref": "#/$defs/Target"}
    return (
        {"$schema": "https://json-schema.org/draft/2020-12/schema"} | _without_titles(schema) | {"title": "study.yml"}
    )


def text() -> str:
    """The schema as it is published."""
    return json.dumps(study_schema(), indent=1, ensure_ascii=False) + "\n"


def _target() -> JsonSchemaValue:
    """The settings of all platforms; a point has those of its kind."""
    properties: dict[str, JsonSchemaValue] = {
        "kind": {"description": "The platform.", "enum": list(PLATFORMS), "default": next(iter(PLATFORMS))}
    }
    for platform in PLATFORMS.values():
        for name, setting in platform.settings.model_json_schema()["properties"].items():
            about = {key: setting.pop(key) for key in ("description", "default") if key in setting}
            if setting.get("type") == "object":
                setting["additionalProperties"] = {"type": ["string", "number", "boolean"]}
            # A text that looks like a number is written without quotes.
            forms = [setting, EXPRESSION, *([{"type": "number"}] if "string" in str(setting) else [])]
            properties.setdefault(name, about | {"anyOf": forms})
    return {"description": "What is under test.", "additionalProperties": False, "properties": properties}


def _without_titles(schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema without the titles that pydantic makes of the keys themselves."""

    def plain(node: object, *, are_names: bool = False) -> object:
        if isinstance(node, list):
            return [plain(each) for each in node]
        if not isinstance(node, dict):
            return node
        kept = {name: each for name, each in node.items() if are_names or name != "title"}
        return {name: plain(each, are_names=name in ("properties", "$defs")) for name, each in kept.items()}

    return {name: plain(each, are_names=name in ("properties", "$defs")) for name, each in schema.items()}


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
