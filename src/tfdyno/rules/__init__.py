"""Knowledge: from facts, logs and source code to findings."""
