"""A shop agent on smolagents' tool-calling agent."""

from smolagents import OpenAIServerModel, ToolCallingAgent, tool


@tool
def price(item: str) -> int:
    """What an item costs.

    Args:
        item: Which one.
    """
    return {"cup": 4, "plate": 6}[item]


@tool
def order(item: str, quantity: int) -> str:
    """Order some of an item.

    Args:
        item: Which one.
        quantity: How many.
    """
    return f"ordered {quantity} {item}"


agent = ToolCallingAgent([price, order], OpenAIServerModel("gpt-5"), verbosity_level=0)
print("agent:", agent.run("Three cups, please."))
