"""mini-swe-agent on a small task, in the folder it was started in."""

from pathlib import Path

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

model = LitellmModel(model_name="anthropic/claude-sonnet-4-5", cost_tracking="ignore_errors")
agent = DefaultAgent(
    model,
    LocalEnvironment(cwd=str(Path.cwd())),
    system_template="You fix things.",
    instance_template="{{task}}",
    # A replay compares it: it has the ids and times of all answers.
    output_path=Path("trajectory.json"),
)
result = agent.run("Count the words of the greeting.")
print("agent:", result)
