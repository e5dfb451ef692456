"""What a served model is: the process with the model, and the front that clients talk to.

Others use nothing by name; the rest is private.
"""
