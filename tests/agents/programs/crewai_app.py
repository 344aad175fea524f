"""A crew of one on CrewAI, with two tools."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import BaseTool, tool


class Price(BaseTool):
    name: str = "price"
    description: str = "What an item costs."

    def _run(self, item: str) -> int:
        return {"cup": 4, "plate": 6}[item]


@tool
def order(item: str, quantity: int) -> str:
    """Order some of an item."""
    return f"ordered {quantity} {item}"


seller = Agent(
    role="seller",
    goal="sell",
    backstory="You sell.",
    llm=LLM(model="openai/gpt-5"),
    tools=[Price(), order],
)
task = Task(description="Three cups, please.", expected_output="What was sold.", agent=seller)
print("agent:", Crew(agents=[seller], tasks=[task]).kickoff())
