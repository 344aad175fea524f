"""What people look at, made from the model. Never meets the boundaries."""
