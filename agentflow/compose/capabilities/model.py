"""Who answers."""

from agentflow.compose.channels import ModelChannel
from agentflow.core.ports import Model
from agentflow.core.record import Record


class UseModel(Record):
    model: Model
    model_id: str

    def install_model(self, model: ModelChannel) -> None:
        model.use(self.model, self.model_id)
