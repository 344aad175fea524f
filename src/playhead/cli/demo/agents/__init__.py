"""The programs that the demo records. Copied into a folder of their own: nothing imports them."""
