"""Settings of a function that is a container: what platforms that run images have in common."""

from typing import Annotated

from pydantic import Field

from framestorm.model.study import Meaning, Text
from framestorm.platform.base import ListenPort, SettingError, TargetSettings
from framestorm.platform.openfaas.platform import stack_functions, stack_image
from framestorm.platform.quantities import Cores


class ContainerSettings(TargetSettings):
    """Settings of a function made from its image: one of function/stack.yml, or any other."""

    function: Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,40}[a-z0-9])?$")] = Field(
        description="The name of the function: small letters, digits and hyphens."
    )
    image: Text | None = Field(
        None, description="Its image, as the nodes have it or can pull it; without one, that of function/stack.yml."
    )
    port: ListenPort = Field(8080, description="The port on which the function listens.")
    cpu: Cores | None = Field(None, description="CPU limit of a replica: cores or thousandths (250m).")
    environment: Annotated[dict[str, str], Meaning("a mapping")] = Field(
        {}, description="Environment variables of the function."
    )

    def check(self) -> None:
        if self.image is None and self.function not in stack_functions():
            what = f"{self.function} needs target.image: function/stack.yml does not have it"
            raise SettingError("image", what)

    @property
    def image_name(self) -> str:
        """The name of its image."""
        return self.image or stack_image(self.function)

    @property
    def variables(self) -> dict[str, str]:
        """Its environment variables, those of function/stack.yml among them.

        With tell_worker, the functions of function/ name their replica in each answer, which gives its share of the
        requests.
        """
        usual = stack_functions()[self.function].get("environment", {}) if self.image is None else {}
        return {"tell_worker": "1", **usual, **self.environment}
