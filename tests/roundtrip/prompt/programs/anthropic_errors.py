"""Four questions on the Anthropic SDK without retries; prints each answer, or the class of the error."""

import anthropic

client = anthropic.Anthropic(max_retries=0)
for number in range(1, 5):
    try:
        answer = client.messages.create(
            model="claude-sonnet-5-5",
            max_tokens=99,
            messages=[{"role": "user", "content": f"Question {number}?"}],
        )
    except anthropic.APIError as error:
        print(type(error).__name__, flush=True)
    else:
        print(answer.content[0].text, flush=True)
