"""The published JSON Schema of study.yml: `python -m framestorm.study.design.schema` writes docs/study.schema.json."""

import json

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from framestorm import paths
from framestorm.model.study import DEFINITION, Level, Study
from framestorm.platform.registry import PLATFORMS

FILE = paths.ROOT / "docs" / "study.schema.json"
# An expression that study.yml may have instead of a value; it is calculated for each point.
EXPRESSION = {"type": "string", "pattern": "^="}


class Untitled(GenerateJsonSchema):
    """A schema without the titles that pydantic generates from the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Return False: no field has a title."""
        return False


def text() -> str:
    """The text of the schema: the models that read study.yml, and the settings of a target that platforms declare."""
    schema = {"$schema": Untitled.schema_dialect, **Study.model_json_schema(schema_generator=Untitled)}
    schema["$defs"]["Target"] = _target()
    for model in (schema, schema["$defs"][Level.__name__]):
        description = model["properties"]["target"]["description"]
        model["properties"]["target"] = {"description": description, "$ref": "#/$defs/Target"}
    return json.dumps(schema | {"title": DEFINITION}, indent=1, ensure_ascii=False) + "\n"


def _target() -> JsonSchemaValue:
    """Return the settings of all platforms; a point has those of its kind."""
    properties: dict[str, JsonSchemaValue] = {
        "kind": {"description": "The platform.", "enum": list(PLATFORMS), "default": next(iter(PLATFORMS))}
    }
    for platform in PLATFORMS.values():
        for name, setting in platform.settings.model_json_schema(schema_generator=Untitled)["properties"].items():
            about = {key: setting.pop(key) for key in ("description", "default") if key in setting}
            if setting.get("type") == "object":
                setting["additionalProperties"] = {"type": ["string", "number", "boolean"]}
            # A text that looks like a number is written without quotes.
            forms = [setting, EXPRESSION, *([{"type": "number"}] if "string" in str(setting) else [])]
            properties.setdefault(name, about | {"anyOf": forms})
    return {"description": "What is under test.", "additionalProperties": False, "properties": properties}


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
