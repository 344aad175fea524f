"""A shop agent on LangGraph: the prebuilt loop of LangChain, with tools that run in threads."""

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool


@tool
def price(item: str) -> int:
    """What an item costs."""
    return {"cup": 4, "plate": 6}[item]


@tool
def order(item: str, quantity: int) -> str:
    """Order some of an item."""
    return f"ordered {quantity} {item}"


model = ChatAnthropic(model="claude-sonnet-4-5", max_tokens=500)
agent = create_agent(model, [price, order], system_prompt="You sell.")
state = agent.invoke({"messages": [{"role": "user", "content": "Three cups, please."}]})
for message in state["messages"]:
    if isinstance(message, ToolMessage):
        print("tool:", message.name, message.content)
print("agent:", state["messages"][-1].text)
